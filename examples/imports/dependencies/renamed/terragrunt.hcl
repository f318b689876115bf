import "root" {
  config_path = "../root.hcl"
  merge       = true
}

import "vpc_dependency_config" {
  config_path = "../vpc_dependency_config.hcl"
}

inputs = {
  name      = "renamed"
  id_of_vpc = import.vpc_dependency_config.dependency.vpc.outputs.vpc_id
}
