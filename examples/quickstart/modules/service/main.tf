variable "name" {
  type = string
}

variable "port" {
  type = number
}

variable "replicas" {
  type = number
}

variable "network" {
  type = string
}

variable "tags" {
  type = map(string)
}

resource "terraform_data" "replica" {
  count = var.replicas
  input = {
    name    = "${var.name}-${count.index}"
    network = var.network
    tags    = merge(var.tags, { service = var.name })
  }
}

output "address" {
  value = "${var.name}.${var.network}:${var.port}"
}

output "replicas" {
  value = terraform_data.replica[*].output.name
}
