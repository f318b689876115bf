run "networks" {
  rules = [rule.no-network-overlap]
  resource "aws_vpc" "main" {
    unit  = "prod/net"
    attrs = { cidr_block = "10.1.0.0/16" }
  }
  resource "aws_vpc" "main2" {
    unit  = "dev/net"
    attrs = { cidr_block = "10.2.0.0/16" }
  }
  resource "aws_vpc" "from_pool" {
    attrs = { ipv4_ipam_pool_id = "ipam-pool-1" }
  }
}

run "overlapping_networks" {
  rules           = [rule.no-network-overlap]
  expect_failures = [rule.no-network-overlap]
  resource "aws_vpc" "main" {
    unit  = "prod/net"
    attrs = { cidr_block = "10.1.0.0/16" }
  }
  resource "aws_vpc" "main2" {
    unit  = "dev/net"
    attrs = { cidr_block = "10.1.128.0/20" }
  }
}

run "buckets" {
  rules = [rule.unique-bucket]
  resource "aws_s3_bucket" "a" { attrs = { bucket = "a" } }
  resource "aws_s3_bucket" "b" { attrs = { bucket = "b" } }
}

run "same_bucket" {
  rules           = [rule.unique-bucket]
  expect_failures = [rule.unique-bucket]
  resource "aws_s3_bucket" "a" {
    unit  = "prod/data"
    attrs = { bucket = "data" }
  }
  resource "aws_s3_bucket" "a2" {
    unit  = "dev/data"
    attrs = { bucket = "data" }
  }
}

run "edges" {
  rules = [rule.production-reads-no-development]
  unit "prod/app" { dependencies = ["prod/net"] }
  unit "dev/app" { dependencies = ["prod/net", "dev/net"] }
}

run "edge_to_development" {
  rules           = [rule.production-reads-no-development]
  expect_failures = [rule.production-reads-no-development]
  unit "prod/app" { dependencies = ["dev/net"] }
}

run "data_kept" {
  rules = [rule.no-data-deleted, rule.few-deletions]
  resource "aws_db_instance" "a" {
    prior_attrs = { engine = "postgres" }
    attrs       = { engine = "postgres" }
  }
  resource "aws_instance" "a" { prior_attrs = { id = "i-1" } }
}

run "data_deleted" {
  rules           = [rule.no-data-deleted]
  expect_failures = [rule.no-data-deleted]
  resource "aws_db_instance" "a" { prior_attrs = { engine = "postgres" } }
}

run "before_a_plan" {
  rules          = [rule.no-data-deleted, rule.few-deletions]
  planned        = false
  expect_unknown = [rule.no-data-deleted, rule.few-deletions]
  resource "aws_db_instance" "a" { attrs = { engine = "postgres" } }
}

run "many_deletions" {
  rules           = [rule.few-deletions]
  expect_failures = [rule.few-deletions]
  resource "aws_instance" "a01" { prior_attrs = { id = "1" } }
  resource "aws_instance" "a02" { prior_attrs = { id = "2" } }
  resource "aws_instance" "a03" { prior_attrs = { id = "3" } }
  resource "aws_instance" "a04" { prior_attrs = { id = "4" } }
  resource "aws_instance" "a05" { prior_attrs = { id = "5" } }
  resource "aws_instance" "a06" { prior_attrs = { id = "6" } }
  resource "aws_instance" "a07" { prior_attrs = { id = "7" } }
  resource "aws_instance" "a08" { prior_attrs = { id = "8" } }
  resource "aws_instance" "a09" { prior_attrs = { id = "9" } }
  resource "aws_instance" "a10" { prior_attrs = { id = "10" } }
  resource "aws_instance" "a11" { prior_attrs = { id = "11" } }
}
