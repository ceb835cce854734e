// Package recipes is the language of recipes: HCL 2 files that declare what to build.
//
// A recipe is every *.hcl file (and *.hcl.json, the same language in JSON) of one folder,
// in any order, or a single file. Each block of a known type with a label declares a
// step, named by both:
//
//	checkpoint "base" { from = "./my-finetune" }
//
//	rotation "signs" {
//	  model = checkpoint.base
//	  seed  = 7
//	}
//
// What a block means is not known here: a rule of the catalogue says it (package rules).
// A reference to a step, such as checkpoint.base, makes the step depend on it. The order
// of blocks never matters; a cycle is reported as its chain.
//
// # Variables and locals
//
//	variable "blocks" {
//	  description = "How many blocks of tokens to calibrate on."
//	  type        = number
//	  default     = 256
//
//	  validation {
//	    condition     = var.blocks >= 1
//	    error_message = "There must be at least one block."
//	  }
//	}
//
//	locals {
//	  half = floor(var.blocks / 2)
//	}
//
// A variable without a default must be given a value. From the weakest to the strongest:
// its default, BONSAI_VAR_blocks in the environment, a file of lines blocks = 128 (a later
// file beats an earlier one), and var.blocks=128 on the command line. Outside files a
// value of type string is taken as it is; any other is an expression.
//
// # Instances
//
//	codes "by_seed" {
//	  for_each    = { a = 1, b = 2 }
//	  model       = checkpoint.base
//	  calibration = calibration.mix
//	  rotation    = rotation.of[each.key]
//	}
//
// A block with for_each, over a map or a set of strings, is one step for each element,
// with the address codes.by_seed["a"]. In it, each.key and each.value are the element's.
//
// # Targets and the recipe block
//
//	recipe {
//	  description = "What it makes"
//	  requires    = ">= 0.1"
//	  numerics    = "shared"
//	}
//
//	target "gguf" {
//	  description = "The file"
//	  steps       = [gguf.model]
//	  out         = "out"
//	}
//
// A target is a name for steps to build; every address is one too. Files that steps of a
// target make are placed in the folder out. At most one recipe block says which versions
// of bonsai it is for, and whether results are shared between backends ("shared") or each
// has its own ("strict").
//
// # Expressions
//
// Expressions are those of HCL: arithmetic, conditions, for, templates. Functions are
// the usual ones for strings, numbers, collections and encodings, and file, fileexists
// and env. A path is relative to the recipe's folder.
//
// Every mistake is a diagnostic with its place, all of them in one run, each once.
//
// Start at [Load].
package recipes
