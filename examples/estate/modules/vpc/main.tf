variable "env" {}
variable "cidr" {}
variable "tags" { type = map(string) }
resource "terraform_data" "vpc" {
  input = { name = "${var.env}-vpc", cidr = var.cidr, tags = var.tags }
}
output "id" {
  value = terraform_data.vpc.id
}
