terraform { source = "../../modules//app" }

dependency "vpc" { config_path = "../vpc" }

inputs = {
  name = "web"
  vpc  = dependency.vpc.outputs.id
}
