inputs = {
  account_id = "0000000"
}

remote_state {
  backend = "local"
  config = {
    workspace_dir = "${get_terragrunt_dir()}/workspaces"
  }
}
