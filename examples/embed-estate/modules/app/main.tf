variable "name" { type = string }
variable "vpc" { type = string }

locals { tags = { name = var.name } }

resource "terraform_data" "app" { input = { tags = local.tags, vpc = var.vpc } }
