recipe {
  description = "A 4.2 M parameter Qwen3, ternary in a minute or two on two cores"
  requires    = ">= 0.1"
}

variable "model" {
  description = "The folder of the checkpoint."
  type        = string
  default     = "../testdata/models/tiny-qwen3"
}

variable "text" {
  description = "Text to calibrate on; <|endoftext|> stands between documents."
  type        = string
  default     = "../testdata/texts/calibration.txt"
}

variable "heldout" {
  description = "Text to score on: a JSON array of strings that were not calibrated on."
  type        = string
  default     = "../testdata/texts/heldout-stories.json"
}

variable "blocks" {
  description = "How many blocks of tokens to calibrate on."
  type        = number
  default     = 256

  validation {
    condition     = var.blocks >= 1
    error_message = "There must be at least one block of tokens to calibrate on."
  }
}

checkpoint "base" {
  from = var.model
}

dataset "training" {
  kind      = "text"
  path      = var.text
  separator = "<|endoftext|>"
}

calibration "mix" {
  model  = checkpoint.base
  length = 128
  take "training" {
    from = dataset.training
    n    = var.blocks
  }
}

rotation "signs" {
  model = checkpoint.base
  seed  = 7
}

codes "body" {
  model       = checkpoint.base
  calibration = calibration.mix
  rotation    = rotation.signs
  method      = "gptq"
  damping     = 0.01
}

endpoints "ends" {
  codes = codes.body
}

gguf "model" {
  weights = endpoints.ends
  format  = "PTQ1_0"
  name    = "tiny-qwen3"
}

dataset "stories" {
  kind = "json"
  path = var.heldout
}

evaluation "final" {
  model   = gguf.model
  against = checkpoint.base
  window  = 128
  text "stories" {
    from   = dataset.stories
    tokens = 8192
  }
}

target "gguf" {
  description = "The ternary file, written, read back and verified."
  steps       = [gguf.model]
  out         = "out"
}

target "all" {
  description = "The file and its scores beside the original model's."
  steps       = [gguf.model, evaluation.final]
  out         = "out"
}
