import "root" {
  config_path = find_in_parent_folders("root.hcl")
  deep_merge  = true
}

terraform {
  source = "${find_in_parent_folders("modules")}//app"
}

remote_state {
  config = {
    # The path from the directory of root.hcl to this one, with the suffix that the
    # key of the include form has: without it, the state would move.
    path = "${import.root.terragrunt_dir}/state/${relpath(import.root.terragrunt_dir, get_terragrunt_dir())}/terraform.tfstate"
  }
}

inputs = {
  name = "deep"
}
