import "root" {
  config_path = "../../../root.hcl"
  merge       = true
}

import "region" {
  config_path = "../../region.hcl"
  merge       = true
}

import "env" {
  config_path = "../env.hcl"
  merge       = true
}

terraform {
  source = "${find_in_parent_folders("modules")}//vpc"
}

inputs = {
  vpc_name = "app"
}
