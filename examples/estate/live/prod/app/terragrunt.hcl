import "env" {
  config_path = "../env.hcl"
  deep_merge  = true
}

terraform {
  source = "../../../modules//app"
}

dependency "vpc" {
  config_path = "../vpc"
}

inputs = {
  vpc_id = dependency.vpc.outputs.id
  tags   = { team = "web" }
}
