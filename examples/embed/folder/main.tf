terraform {
  required_providers {
    time = {
      source  = "hashicorp/time"
      version = "0.14.2"
    }
  }
}

variable "steps" {
  type    = number
  default = 3
}

resource "time_static" "start" {}

resource "time_sleep" "step" {
  depends_on      = [time_static.start]
  count           = var.steps
  create_duration = "1s"
  triggers        = { step = "step ${count.index}" }
}

resource "time_static" "done" {
  triggers = { steps = join(",", time_sleep.step[*].id) }
}

output "done" {
  value = time_static.done.rfc3339
}
