// Package recipes reads the HCL files that say what to build.
//
// It knows names, references and expressions: it gives every block to the rule of its
// type, after the blocks that it refers to. It does not know what a block means; that is
// package rules. Start at [Load]. What follows is the reference of the language.
//
// # Files
//
// A recipe is a folder: every *.hcl in it is read, and every *.hcl.json, in which the same
// is written in JSON and an expression is a text "${like.this}". A single file can be a recipe too. The order of files and of the
// blocks in them does not matter. Paths are relative to the folder.
//
// # Steps
//
// A block is a step. It has a type, which says what is done, and a name of letters,
// digits, _ and -. Its address is both, with a dot between: codes.body. Other blocks refer to
// it by that, and so the graph of the recipe is made. A step is passed on whole; its
// attributes are not seen from outside.
//
//	checkpoint "base" {
//	  from = "./my-finetune"
//	}
//
//	rotation "signs" {
//	  model = checkpoint.base
//	  seed  = 7
//	}
//
// References may not form a cycle.
//
// # Targets
//
// A target is a name that can be asked for. It names steps, and the folder in which
// their files are placed. The address of every step is a target as well.
//
//	target "gguf" {
//	  description = "The ternary file"
//	  steps       = [gguf.model]
//	  out         = "out"
//	}
//
//	gguf "model" {
//	  format = "PTQ1_0"
//	}
//
// # Variables
//
// What a variable holds is referred to as var.name. All attributes may be left out: without
// a default it has to be given a value; without a type it has that of its default if that is
// a text, a number or a bool, is a text if there is no default, and else is anything.
// Types are string, number, bool, list(t), set(t), map(t), tuple([t, …]), object({ a = t,
// b = optional(t, default) }) and any. If nullable is false, null is refused.
//
//	variable "blocks" {
//	  description = "How many blocks of text to calibrate on"
//	  type        = number
//	  default     = 256
//	  nullable    = false
//
//	  validation {
//	    condition     = var.blocks >= 1
//	    error_message = "There must be a block to calibrate on."
//	  }
//	}
//
// A default may call functions, but not refer to anything. A validation may refer to
// variables. There may be several, and all are checked.
//
// A variable takes the first of these that is there:
//
//  1. the word var.blocks=512;
//  2. a line blocks = 512 in a file of values, the last such file first;
//  3. the environment variable BONSAI_VAR_blocks;
//  4. what the recipe that includes its recipe gives it;
//  5. its default.
//
// In words and in the environment the value of a string variable is taken as it stands, and
// that of any other as an expression: var.keep=["a", "b"]. Files of values, such as
// large.hclvars or large.hclvars.json, hold expressions. No value refers to anything.
//
// # Including another recipe
//
// An include block takes in the blocks of another recipe: of a folder, a file, or one that
// is built in, whose name from says or else the block's own. They are blocks of this recipe
// then, with the addresses and the targets that they have there; names are unique in all. To try a
// model of your own with a recipe that is there takes five lines:
//
//	include "tiny" {
//	  variables {
//	    model = abspath("my-finetune")
//	  }
//	}
//
// The block variables gives values to variables of what is included, in the place of their
// defaults: words, files of values and the environment still come first. They may refer to
// variables of the recipe that they are written in. A block override replaces in one block
// there the attributes and blocks that it has: a block takes the place of those of the same
// type and labels, and an attribute that is null takes the other away. What a recipe includes may
// include others; the outermost recipe has the last word, as it has on description and numerics.
// To include a recipe a second time, without variables and overrides, changes nothing.
//
//	include "base" {
//	  from = "tiny"
//
//	  variables {
//	    model  = var.mine
//	    blocks = 512
//	  }
//
//	  override "codes" "body" {
//	    damping = 0.02
//	  }
//
//	  override "target" "gguf" { out = "dist" }
//	}
//
//	variable "mine" { default = "../testdata/models/tiny-qwen3" }
//
// Relative paths start from the folder of the recipe whose step or expression they are in, and in
// an override from that of the step; abspath makes a path that means the same anywhere. What a
// built-in recipe says is relative to the folder of the recipe that includes it.
//
// # Locals
//
// A locals block gives names to expressions, which are referred to as local.name. There may
// be several such blocks, and locals may refer to each other, to variables and to steps.
//
//	locals {
//	  seeds  = range(4)
//	  folder = "runs/${local.kind}"
//	  kind   = "plain"
//	}
//
// # Several steps from one block
//
// for_each goes through a map, an object or a set of strings, and expands the block once for
// each element. In it, each.key and each.value stand for the element; an element of a set
// is its own key. The instances have addresses such as codes.body["0.01"], are
// referred to by these, and all together as a map by the address of the block.
//
//	codes "body" {
//	  for_each = { low = 0.01, high = 0.1 }
//	  damping  = each.value
//	}
//
//	gguf "high" { weights = codes.body["high"] }
//
//	gguf "each" {
//	  for_each = codes.body
//	  name     = "model-${each.key}"
//	  weights  = each.value
//	}
//
// # Conditions
//
// The block of any step may say what must be so. A precondition is checked when the recipe is
// read, before anything runs. It may refer to whatever the step may, and facts(step) gives what is
// known of a step then:
//
//   - checkpoint: architecture layers hidden intermediate heads vocabulary context tied tensors
//     parameters bytes; of a GGUF file architecture layers hidden vocabulary context bytes
//   - dataset: bytes
//   - calibration: length blocks tokens
//   - rotation: block widths
//   - codes and endpoints: method damping tensors weights tokens
//   - gguf: format file bytes tensors weights bits_per_weight, as planned
//   - evaluation: texts
//
// A postcondition is about what the step made, which self stands for: self.bytes and self.sha256
// are of its first file; self.files has the same of each, by the name of the action that makes it;
// and self.report, by the same names, the values of those that are JSON, such as verify
// of a gguf step and each text of an evaluation. It is checked by an action of its own, whenever a
// target needs what the step makes; if it is not met the build fails, and places nothing.
//
//	checkpoint "base" { from = "./my-finetune" }
//
//	evaluation "final" {
//	  against = checkpoint.base
//
//	  precondition {
//	    condition     = facts(checkpoint.base).context >= 2048
//	    error_message = "The model is too short-sighted for this recipe."
//	  }
//
//	  postcondition {
//	    condition     = self.report["stories"].model.perplexity < 20
//	    error_message = "The model has forgotten how to tell stories."
//	  }
//	}
//
// # Resources
//
// The block of any step may also say what its actions get, in the place of what its rule
// estimates. No result depends on it, so to change it runs nothing. After timeout an action is given
// up; memory is what it needs at most; retries is how often it is tried again after a failure that
// may pass.
//
//	codes "body" {
//	  resources {
//	    timeout = "2h"
//	    memory  = "8GiB"
//	    retries = 2
//	  }
//	}
//
// # The recipe block
//
// There may be one, and what it says is constant. requires compares the version of bonsai, as
// in ">= 0.1, < 2", with the operators = != > >= < <=. numerics is "shared" unless it is "strict":
// then results of other backends and versions do not count as the same.
//
//	recipe {
//	  description = "Qwen3, calibrated on its own answers"
//	  requires    = ">= 0.1"
//	  numerics    = "strict"
//	}
//
// # Expressions
//
// Expressions are those of HCL: numbers, true, false, null, "text with ${templates}",
// heredocs, [lists], { objects = 1 }, operators, a ? b : c, [for x in list : x if x > 1],
// list[*].attribute, and calls of these functions, which are those of Terraform
// unless said otherwise:
//
//   - numbers: abs ceil floor int log max min parseint pow signum
//   - texts: chomp endswith format formatlist indent join lower regex regexall replace split
//     startswith strcontains strrev substr title trim trimprefix trimspace trimsuffix upper;
//     regexreplace(text, pattern, replacement)
//   - collections: chunklist coalesce coalescelist compact concat contains distinct element flatten
//     keys length lookup merge range reverse setintersection setproduct setsubtract setunion slice
//     sort values zipmap
//   - types: can try tobool tolist tomap tonumber toset tostring
//   - encodings: csvdecode jsondecode jsonencode
//   - files: abspath basename dirname file fileexists
//   - steps: facts(checkpoint.base)
//   - environment: env("HOME"), and env("NAME", "default") if it may not be set
//
// A recipe defines functions of its own, which it alone can call. They see their parameters
// and all functions of the recipe, and may not call themselves. What arguments there are beyond
// params comes as a list in variadic_param, if that is named.
//
//	function "blocks" {
//	  params = [tokens, length]
//	  result = ceil(tokens / length)
//	}
//
// # Mistakes
//
// Every mistake is an HCL diagnostic, and is reported once, with all others: what cannot have
// a value because of a mistake is unknown, and nothing more is said about it.
package recipes
