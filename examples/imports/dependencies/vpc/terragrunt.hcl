terraform {
  source = "${find_in_parent_folders("modules")}//vpc"
}
