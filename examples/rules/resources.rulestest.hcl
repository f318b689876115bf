# Each run has objects with given values, and the rules that must fail for them.

run "tags" {
  rules = [rule.tags]
  resource "aws_vpc" "good" {
    attrs = { cidr_block = "10.0.0.0/16", tags = { cost = "4711", owner = "net" } }
  }
}

run "tags_missing" {
  rules           = [rule.tags]
  expect_failures = [rule.tags]
  resource "aws_vpc" "bad" {
    attrs = { cidr_block = "10.0.0.0/16", tags = { cost = "4711" } }
  }
}

run "encrypted" {
  rules = [rule.volume-encrypted, rule.database-encrypted, rule.key-rotation]
  resource "aws_ebs_volume" "a" { attrs = { encrypted = true } }
  resource "aws_db_instance" "a" { attrs = { storage_encrypted = true } }
  resource "aws_kms_key" "a" { attrs = { enable_key_rotation = true } }
}

run "not_encrypted" {
  rules           = [rule.volume-encrypted, rule.database-encrypted, rule.key-rotation]
  expect_failures = [rule.volume-encrypted, rule.database-encrypted, rule.key-rotation]
  resource "aws_ebs_volume" "a" { attrs = { size = 10 } }
  resource "aws_rds_cluster" "a" { attrs = { storage_encrypted = false } }
  resource "aws_kms_key" "a" { attrs = { description = "key" } }
}

run "private" {
  rules = [rule.bucket-not-public, rule.database-not-public, rule.no-open-ssh]
  resource "aws_s3_bucket" "a" { attrs = { bucket = "a" } }
  resource "aws_s3_bucket_acl" "a" { attrs = { acl = "private" } }
  resource "aws_db_instance" "a" { attrs = { publicly_accessible = false } }
  resource "aws_security_group" "a" {
    attrs = { ingress = [{ from_port = 22, to_port = 22, protocol = "tcp", cidr_blocks = ["10.0.0.0/8"] }, { from_port = 443, to_port = 443, protocol = "tcp", cidr_blocks = ["0.0.0.0/0"] }] }
  }
  resource "aws_security_group" "closed" { attrs = { name = "closed" } }
}

run "public" {
  rules           = [rule.bucket-not-public, rule.database-not-public, rule.no-open-ssh]
  expect_failures = [rule.bucket-not-public, rule.database-not-public, rule.no-open-ssh]
  resource "aws_s3_bucket_acl" "a" { attrs = { acl = "public-read" } }
  resource "aws_db_instance" "a" { attrs = { publicly_accessible = true } }
  resource "aws_security_group" "a" {
    attrs = { ingress = [{ from_port = 0, to_port = 65535, protocol = "tcp", cidr_blocks = ["0.0.0.0/0"] }] }
  }
}

run "all_traffic" {
  rules           = [rule.no-open-ssh]
  expect_failures = [rule.no-open-ssh]
  resource "aws_security_group" "a" {
    attrs = { ingress = [{ from_port = 0, to_port = 0, protocol = "-1", cidr_blocks = ["0.0.0.0/0"] }] }
  }
}

run "open_to_ipv6" {
  rules           = [rule.no-open-ssh]
  expect_failures = [rule.no-open-ssh]
  resource "aws_security_group" "a" {
    attrs = { ingress = [{ from_port = 22, to_port = 22, protocol = "tcp", cidr_blocks = null, ipv6_cidr_blocks = ["::/0"] }] }
  }
}

run "from_a_group" {
  rules = [rule.no-open-ssh]
  resource "aws_security_group" "a" {
    attrs = { ingress = [{ from_port = 22, to_port = 22, protocol = "tcp", cidr_blocks = [], security_groups = ["sg-1"] }] }
  }
}

run "instance" {
  rules = [rule.instance-size, rule.instance-metadata]
  resource "aws_instance" "a" {
    attrs = { instance_type = "t3.micro", metadata_options = [{ http_tokens = "required" }] }
  }
}

run "large_instance" {
  rules           = [rule.instance-size, rule.instance-metadata]
  expect_failures = [rule.instance-size, rule.instance-metadata]
  resource "aws_instance" "a" { attrs = { instance_type = "x1e.32xlarge" } }
}

run "logs" {
  rules = [rule.log-retention]
  resource "aws_cloudwatch_log_group" "a" { attrs = { retention_in_days = 30 } }
}

run "endless_logs" {
  rules           = [rule.log-retention]
  expect_failures = [rule.log-retention]
  resource "aws_cloudwatch_log_group" "a" { attrs = { name = "a" } }
}

run "policy" {
  rules = [rule.policy-without-wildcard]
  resource "aws_iam_policy" "a" {
    attrs = { policy = jsonencode({ Statement = { Effect = "Allow", Action = ["s3:GetObject"], Resource = "*" } }) }
  }
}

run "policy_without_action" {
  rules = [rule.policy-without-wildcard]
  resource "aws_iam_policy" "a" {
    attrs = { policy = jsonencode({ Statement = [{ Effect = "Deny", NotAction = "s3:*", Resource = "*" }] }) }
  }
}

run "policy_of_everything" {
  rules           = [rule.policy-without-wildcard]
  expect_failures = [rule.policy-without-wildcard]
  resource "aws_iam_policy" "a" {
    attrs = { policy = jsonencode({ Statement = [{ Effect = "Allow", Action = "*", Resource = "*" }] }) }
  }
}

run "protected" {
  rules = [rule.stateful-protected]
  resource "aws_db_instance" "a" {
    attrs = { engine = "postgres" }
    meta  = { prevent_destroy = true }
  }
}

run "not_protected" {
  rules           = [rule.stateful-protected]
  expect_failures = [rule.stateful-protected]
  resource "aws_db_instance" "a" { attrs = { engine = "postgres" } }
}

run "providers" {
  rules = [rule.regions, rule.provider-pinned]
  provider "aws" "aws" {
    attrs = { region = "eu-west-1" }
    meta  = { version_constraint = "~> 6.0" }
  }
}

run "providers_elsewhere" {
  rules           = [rule.regions, rule.provider-pinned]
  expect_failures = [rule.regions, rule.provider-pinned]
  provider "aws" "aws" { attrs = { region = "us-east-1" } }
}

run "modules" {
  rules = [rule.module-source, rule.module-pinned]
  module "./net" "net" {}
  module "git::https://git.example.com/net.git?ref=v1.2.0" "shared" {}
  module "git::https://git.example.com/net.git?depth=1&ref=v1.2.0" "shallow" {}
}

run "foreign_modules" {
  rules           = [rule.module-source, rule.module-pinned]
  expect_failures = [rule.module-source, rule.module-pinned]
  module "terraform-aws-modules/vpc/aws" "vpc" {}
  module "git::https://git.example.com/net.git" "shared" {}
}
