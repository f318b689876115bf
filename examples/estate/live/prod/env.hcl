locals {
  env = "prod"
}

inputs = {
  env  = local.env
  tags = { env = local.env }
}
