terraform {
  required_providers {
    time = {
      source = "hashicorp/time"
    }
  }
}

variable "days" {
  type    = number
  default = 30
}

resource "time_static" "created" {}

resource "time_offset" "expires" {
  base_rfc3339 = time_static.created.rfc3339
  offset_days  = var.days
}

output "created" {
  value = time_static.created.rfc3339
}

output "expires" {
  value = time_offset.expires.rfc3339
}
