# Rules about the values of resources.

locals {
  tags    = ["cost", "owner"]
  regions = ["eu-central-1", "eu-west-1"]
  sizes   = ["t3.micro", "t3.small", "t3.medium", "m6i.large"]
}

rule "tags" {
  resource = ["aws_instance", "aws_vpc", "aws_subnet", "aws_s3_bucket", "aws_db_instance", "aws_ebs_volume"]
  enforce {
    condition     = alltrue([for name in local.tags : try(attrs.tags[name], null) != null])
    error_message = "${meta.address} needs the tags ${join(" and ", local.tags)}."
  }
}

rule "volume-encrypted" {
  resource = "aws_ebs_volume"
  enforce {
    condition     = coalesce(attrs.encrypted, false)
    error_message = "The volume ${meta.address} is not encrypted."
  }
}

rule "database-encrypted" {
  resource = ["aws_db_instance", "aws_rds_cluster"]
  enforce {
    condition     = coalesce(attrs.storage_encrypted, false)
    error_message = "The database ${meta.address} is not encrypted."
  }
}

rule "key-rotation" {
  resource = "aws_kms_key"
  level    = "warning"
  enforce {
    condition     = coalesce(attrs.enable_key_rotation, false)
    error_message = "The key ${meta.address} is not rotated."
  }
}

rule "bucket-not-public" {
  resource = ["aws_s3_bucket", "aws_s3_bucket_acl"]
  enforce {
    condition     = !startswith(coalesce(attrs.acl, "private"), "public")
    error_message = "${meta.address} can be read by everybody: its ACL is ${attrs.acl}."
  }
}

rule "database-not-public" {
  resource = "aws_db_instance"
  enforce {
    condition     = !coalesce(attrs.publicly_accessible, false)
    error_message = "The database ${meta.address} has a public address."
  }
}

rule "no-open-ssh" {
  resource = "aws_security_group"
  enforce {
    condition = !anytrue([
      for r in coalesce(attrs.ingress, []) :
      length(setintersection(concat(coalesce(try(r.cidr_blocks, null), []), coalesce(try(r.ipv6_cidr_blocks, null), [])), ["0.0.0.0/0", "::/0"])) > 0 &&
      (r.protocol == "-1" || r.from_port <= 22 && r.to_port >= 22) # the protocol -1 is all traffic
    ])
    error_message = "${meta.address} opens SSH to the internet."
  }
}

rule "instance-size" {
  resource = "aws_instance"
  enforce {
    condition     = contains(local.sizes, attrs.instance_type)
    error_message = "${meta.address} has the size ${attrs.instance_type}. Allowed are ${join(", ", local.sizes)}."
  }
}

rule "instance-metadata" {
  resource = "aws_instance"
  level    = "warning"
  enforce {
    condition     = try(attrs.metadata_options[0].http_tokens, null) == "required"
    error_message = "${meta.address} allows requests for metadata without a token."
  }
}

rule "log-retention" {
  resource = "aws_cloudwatch_log_group"
  level    = "advice"
  enforce {
    condition     = coalesce(attrs.retention_in_days, 0) > 0
    error_message = "${meta.address} keeps its logs forever."
  }
}

rule "policy-without-wildcard" {
  resource = "aws_iam_policy"
  enforce {
    condition = !anytrue([
      for s in flatten([jsondecode(attrs.policy).Statement]) :
      s.Effect == "Allow" && contains(flatten([try(s.Action, [])]), "*") # a statement can have NotAction
    ])
    error_message = "The policy ${meta.address} allows all actions."
  }
}

rule "stateful-protected" {
  resource = ["aws_db_instance", "aws_dynamodb_table", "aws_efs_file_system"]
  level    = "warning"
  enforce {
    condition     = meta.prevent_destroy
    error_message = "${meta.address} contains data, and its lifecycle does not set prevent_destroy."
  }
}

rule "regions" {
  provider = "aws"
  filter   = attrs.region != null
  enforce {
    condition     = contains(local.regions, attrs.region)
    error_message = "${meta.address} uses the region ${attrs.region}. Allowed are ${join(", ", local.regions)}."
  }
}

rule "provider-pinned" {
  provider = "*"
  filter   = meta.alias == null && meta.module == ""
  enforce {
    condition     = meta.version_constraint != null
    error_message = "The provider ${meta.name} has no version constraint."
  }
}

rule "module-source" {
  module = "*"
  enforce {
    condition     = startswith(meta.source, "./") || startswith(meta.source, "../") || startswith(meta.source, "git::https://git.example.com/")
    error_message = "The module ${meta.address} comes from ${meta.source}. Modules come from git.example.com."
  }
}

rule "module-pinned" {
  module = ["git::*"]
  enforce {
    condition     = can(regex("[?&]ref=", meta.source))
    error_message = "The source of the module ${meta.address} has no ref."
  }
}
