variable "env" {}
variable "vpc_id" {}
variable "tags" { type = map(string) }
resource "terraform_data" "app" {
  input = { name = "${var.env}-app", vpc = var.vpc_id, tags = var.tags }
}
output "vpc" {
  value = terraform_data.app.output.vpc
}
output "tags" {
  value = var.tags
}
