package server

import (
	"testing"
)

// A module next to a unit file may use what a generate block of the unit, or of a file that it includes, declares.
func TestGeneratedDeclarations(t *testing.T) {
	c := start(t, unpack(t, `
-- main.hcl --
generate "variables" {
  path      = "variables.tf"
  if_exists = "overwrite"
  contents  = <<EOT
variable "org" {}
EOT
}
-- app/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("main.hcl")
}
inputs = {
  org = "acme"
}
-- app/main.tf --
output "org" {
  value = "${var.org} ${var.ogr} ${local.org}"
}
-- web/terragrunt.hcl --
generate "locals" {
  path      = "locals.tf"
  if_exists = "overwrite"
  contents  = templatefile("locals.tftpl", {})
}
-- web/main.tf --
output "org" {
  value = local.anything
}
-- plain/main.tf --
output "org" {
  value = var.org
}
`), nil)
	const (
		undeclared = `2 1 eval/undeclared Reference to undeclared input variable: An input variable with the name `
		local      = `2 1 eval/undeclared Reference to undeclared local value: A local value with the name "org" has not been declared.`
	)
	equal(t, "app", c.diagnostics("app/main.tf"), undeclared+`"ogr" has not been declared.`, local)
	equal(t, "web", c.diagnostics("web/main.tf"))
	equal(t, "plain", c.diagnostics("plain/main.tf"), undeclared+`"org" has not been declared.`)
	c.open("main.hcl")
	c.change("main.hcl", "inputs = {}\n")
	equal(t, "app without the block", c.diagnostics("app/main.tf"), undeclared+`"ogr" has not been declared.`, undeclared+`"org" has not been declared.`, local)
}
