dependency = {
  vpc = {
    config_path = "${get_terragrunt_dir()}/vpc"
  }
}
