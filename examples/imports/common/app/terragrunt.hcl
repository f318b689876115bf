import "region" {
  config_path = "../region.hcl"
}

terraform {
  source = "${find_in_parent_folders("modules")}//app"
}

inputs = {
  name = "${import.region.inputs["region"]}-unique-name"
}
