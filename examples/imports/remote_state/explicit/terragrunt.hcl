import "root" {
  config_path = find_in_parent_folders("root.hcl")
}

terraform {
  source = "${find_in_parent_folders("modules")}//app"
}

remote_state {
  backend  = import.root.remote_state.backend
  generate = import.root.remote_state.generate

  config = merge(
    import.root.remote_state.config,
    {
      path = "${import.root.terragrunt_dir}/state/${relpath(import.root.terragrunt_dir, get_terragrunt_dir())}/terraform.tfstate"
    },
  )
}

inputs = {
  name = "explicit"
}
