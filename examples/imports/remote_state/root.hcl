remote_state {
  backend = "local"

  generate = {
    path      = "backend.tf"
    if_exists = "overwrite"
  }

  config = {
    workspace_dir = "${get_terragrunt_dir()}/workspaces"
    # path is set by those who import this file
  }
}
