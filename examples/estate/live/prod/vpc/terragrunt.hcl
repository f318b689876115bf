import "env" {
  config_path = "../env.hcl"
  deep_merge  = true
}

terraform {
  source = "../../../modules//vpc"
}

inputs = {
  cidr = "10.0.0.0/16"
}
