locals {
  root_config   = read_terragrunt_config("../../root.hcl")
  region_config = read_terragrunt_config("../region.hcl")
}

terraform {
  source = "${find_in_parent_folders("modules")}//vpc"
}

remote_state {
  backend = local.root_config.remote_state.backend

  generate = {
    path      = "backend.tf"
    if_exists = "overwrite"
  }

  config = merge(
    local.root_config.remote_state.config,
    {
      path = "${get_terragrunt_dir()}/terraform.tfstate"
    },
  )
}

inputs = merge(
  local.root_config.inputs,
  local.region_config.inputs,
  {
    vpc_name = "app"
  },
)
