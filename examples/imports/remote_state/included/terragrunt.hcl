include "root" {
  path = find_in_parent_folders("included.hcl")
}

terraform {
  source = "${find_in_parent_folders("modules")}//app"
}

inputs = {
  name = "included"
}
