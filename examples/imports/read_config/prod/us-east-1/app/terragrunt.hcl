locals {
  common_deps = read_terragrunt_config("../vpc_dependency_config.hcl")
}

terraform {
  source = "${find_in_parent_folders("modules")}//app"
}

dependency = local.common_deps.dependency

inputs = {
  name   = "unique-name"
  vpc_id = dependency.vpc.outputs.vpc_id
}
