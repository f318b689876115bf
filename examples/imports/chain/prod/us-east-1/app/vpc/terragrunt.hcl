import "env" {
  config_path = "../env.hcl"
}

terraform {
  source = "${find_in_parent_folders("modules")}//vpc"
}

inputs = merge(
  import.env.inputs,
  {
    vpc_name = "app"
  },
)
