locals {
  region = "eu-west-1"
}

module "vpc" {
  source   = "${find_in_parent_folders("modules")}//vpc"
  vpc_name = "${local.region}-main"
  region   = local.region
}

module "app" {
  source = "${find_in_parent_folders("modules")}//app"
  name   = "${local.region}-app"
  vpc_id = module.vpc.outputs.vpc_id
}

module "mysql" {
  source = "${find_in_parent_folders("modules")}//app"
  name   = "${local.region}-mysql"
  vpc_id = module.vpc.outputs.vpc_id
}
