locals {
  base = { team = "core", cost = 2 }
}
resource "terraform_data" "x" {
  input = { n = count.index * 10, t = local.tags.tier, s = var.secret }
}
