# Rules about the whole estate, and about plans.

locals {
  # The prefix of a VPC has at least 16 bits: two overlap only if their first 16 bits are equal. A VPC
  # whose network comes from a pool has no cidr_block.
  networks = { for v in resources("aws_vpc") : join(".", slice(split(".", v.attrs.cidr_block), 0, 2)) => v... if try(v.attrs.cidr_block, null) != null }
  buckets  = { for b in resources("aws_s3_bucket") : b.attrs.bucket => "${b.unit} ${b.address}"... if b.attrs.bucket != null }
}

rule "no-network-overlap" {
  resource = "aws_vpc"
  filter   = attrs.cidr_block != null
  locals {
    others = [
      for v in local.networks[join(".", slice(split(".", attrs.cidr_block), 0, 2))] : v
      if v.unit != unit.name || v.address != meta.address
    ]
    overlapping = [
      for v in local.others : "${v.unit} ${v.address}"
      if cidrcontains(v.attrs.cidr_block, attrs.cidr_block) || cidrcontains(attrs.cidr_block, v.attrs.cidr_block)
    ]
  }
  enforce {
    condition     = length(local.overlapping) == 0
    error_message = "The network ${attrs.cidr_block} overlaps with ${join(", ", local.overlapping)}."
  }
}

rule "unique-bucket" {
  resource = "aws_s3_bucket"
  filter   = attrs.bucket != null
  enforce {
    condition     = length(local.buckets[attrs.bucket]) == 1
    error_message = "The bucket name ${attrs.bucket} is used by ${join(" and ", local.buckets[attrs.bucket])}."
  }
}

rule "production-reads-no-development" {
  edge = "prod/* -> dev/*"
  enforce {
    condition     = false
    error_message = "The production unit ${meta.from} reads outputs of ${meta.to}."
  }
}

rule "no-data-deleted" {
  resource   = ["aws_db_instance", "aws_dynamodb_table", "aws_efs_file_system", "aws_s3_bucket"]
  operations = ["delete"]
  enforce {
    condition     = false
    error_message = "The plan deletes ${meta.address}, which contains data."
  }
}

rule "few-deletions" {
  enforce {
    condition     = length([for c in changes("*") : c if contains(["delete", "replace"], c.operation)]) <= 10
    error_message = "The plan deletes more than ten objects. Split the change."
  }
}
