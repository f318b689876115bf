terraform {
  required_version = ">= 1.6.0"
}

variable "environment" {
  description = "Where the services run."
  type        = string
  default     = "staging"

  validation {
    condition     = contains(["staging", "production"], var.environment)
    error_message = "The environment must be staging or production."
  }
}

variable "services" {
  description = "The services to run, by name."
  type = map(object({
    port     = number
    replicas = optional(number, 2)
  }))
  default = {
    web = { port = 8080 }
    api = { port = 9090, replicas = 3 }
  }
}

locals {
  prefix = "demo-${var.environment}"
  tags   = { managed_by = "terrace" }
}

resource "terraform_data" "network" {
  input = {
    name = "${local.prefix}-network"
    cidr = "10.0.0.0/16"
    tags = local.tags
  }
}

module "service" {
  source   = "./modules/service"
  for_each = var.services

  name     = "${local.prefix}-${each.key}"
  port     = each.value.port
  replicas = each.value.replicas
  network  = terraform_data.network.output.name
  tags     = local.tags
}

output "addresses" {
  description = "Where each service listens."
  value       = { for name, s in module.service : name => s.address }
}

output "network" {
  value = terraform_data.network.output
}
