import "root" {
  config_path = "../root.hcl"
  merge       = true
}

import "vpc_dependency_config" {
  config_path = "../vpc_dependency_config.hcl"
}

inputs = merge(
  import.vpc_dependency_config.inputs,
  {
    name = "explicit"
  },
)
