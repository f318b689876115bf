# An override file: its arguments replace those of the block with the same
# header, wherever that stands. `terrace explain local.tags` shows the effect.

locals {
  tags = { managed_by = "terrace", team = "platform" }
}

resource "terraform_data" "network" {
  input = {
    name = "${local.prefix}-network"
    cidr = "10.42.0.0/16"
    tags = local.tags
  }
}
