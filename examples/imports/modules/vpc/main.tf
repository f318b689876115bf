variable "vpc_name" {
  type    = string
  default = "main"
}

variable "account_id" {
  type    = string
  default = null
}

variable "region" {
  type    = string
  default = null
}

variable "env" {
  type    = string
  default = null
}

resource "terraform_data" "vpc" {
  input = var.vpc_name
}

output "vpc_id" {
  value = "vpc-${terraform_data.vpc.output}"
}

output "where" {
  value = compact([var.account_id, var.region, var.env])
}
