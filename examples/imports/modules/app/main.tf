variable "name" {
  type = string
}

variable "vpc_id" {
  type    = string
  default = null
}

variable "id_of_vpc" {
  type    = string
  default = null
}

output "name" {
  value = var.name
}

output "vpc" {
  value = coalesce(var.vpc_id, var.id_of_vpc, "none")
}
