// Package lint contains the built-in lint: rules about the text of a configuration that apply to
// every estate.
//
// Main types: Rule, a row of the table of rules, Selection, the rules that are on, and Linter,
// which checks modules and unit files. The one rule: a rule reports only what it can show from
// the files, so that a file that was not read never causes a finding.
package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/similar"
	"github.com/terrace-iac/terrace/internal/rules/finding"
)

// A Rule is one rule of the built-in lint.
type Rule struct {
	Code  string
	Level finding.Level
	On    bool   // the rule is on by default
	Fixes bool   // -fix can mend its findings
	Finds string // what the rule finds, a noun phrase
	// Example is a configuration with a finding, and Instead what to write.
	Example, Instead string
}

// The codes of the rules. A rule that OpenTofu 1.13 has too has its name.
const (
	DeprecatedIndex           = "deprecated-index"
	DeprecatedInterpolation   = "deprecated-interpolation"
	DeprecatedLookup          = "deprecated-lookup"
	DeprecatedProviderVersion = "deprecated-provider-version"
	DeprecatedQuotes          = "deprecated-quotes"
	CountInsteadEnabled       = "count-instead-enabled"
	IgnoreReason              = "ignore-reason"
	ImpureFunc                = "impurefunc"
	IncludeAsImport           = "include-as-import"
	IneffEq                   = "ineffeq"
	NoTypeVariable            = "no-type-variable"
	OverriddenValue           = "overridden-value"
	PlaintextSecret           = "plaintext-secret"
	QuotedRef                 = "quotedref"
	SecretToken               = "secret-token"
	UnpinnedModule            = "unpinned-module"
	UnpinnedProvider          = "unpinned-provider"
	UnreadDependency          = "unread-dependency"
	UnusedDeps                = "unuseddeps"
	UnusedLocal               = "unused-local"
	UnusedOutput              = "unused-output"
	UnusedProvider            = "unused-provider"
	UnusedVariable            = "unused-variable"
)

// Rules returns the table of rules, sorted by code.
func Rules() []Rule {
	return []Rule{
		{CountInsteadEnabled, finding.Advice, false, false, "`count` that is 1 or 0 by a condition", "count = var.on ? 1 : 0", "`enabled = var.on` in `lifecycle`; the address loses its index, so that a `moved` block is needed"},
		{DeprecatedIndex, finding.Warning, true, true, "an index after a dot", "aws_x.y.0.id", "aws_x.y[0].id"},
		{DeprecatedInterpolation, finding.Advice, true, true, "a template that is one interpolation", `"${var.x}"`, "var.x"},
		{DeprecatedLookup, finding.Advice, false, true, "`lookup` without a default", `lookup(var.m, "k")`, `var.m["k"]`},
		{DeprecatedProviderVersion, finding.Warning, true, false, "`version` in a `provider` block", `provider "aws" { version = "~> 5.0" }`, "the constraint in `required_providers`"},
		{DeprecatedQuotes, finding.Warning, true, true, "a reference in quotes where only references are allowed", `depends_on = ["aws_x.y"]`, "depends_on = [aws_x.y]"},
		{IgnoreReason, finding.Warning, true, false, "a comment `terrace:ignore` without a code or a reason", "# terrace:ignore unused-local", "`# terrace:ignore unused-local read by a script`"},
		{ImpureFunc, finding.Warning, true, false, "`timestamp`, `plantimestamp`, `uuid` or `bcrypt` in an argument of a resource, also through local values", "name = uuid()", "`random_uuid` or `time_static`, or the argument in `ignore_changes`"},
		{IncludeAsImport, finding.Advice, false, true, "an `include` block that can be an `import` block with the same result", `include "root" { path = find_in_parent_folders("root.hcl") }`, "an `import` block; see [Coming from Terragrunt](from-terragrunt.md)"},
		{IneffEq, finding.Warning, true, false, "a comparison whose result is always the same, because the types differ or both sides are the same", "var.list == []", "length(var.list) == 0"},
		{NoTypeVariable, finding.Advice, false, false, "a variable without `type`", `variable "x" {}`, `variable "x" { type = string }`},
		{OverriddenValue, finding.Advice, false, false, "an argument that an override file replaces; in a file that units import, an argument or block that a later layer of the unit replaces", "`size = 1` in main.tf, `size = 2` in main_override.tf", "one of the two"},
		{PlaintextSecret, finding.Warning, true, false, "a password or key as literal text, judged by the argument's name", `password = "hunter2"`, "a sensitive variable, or a secret store"},
		{QuotedRef, finding.Warning, true, false, "a text that is a reference to a variable, a local value or an attribute of the module", `subnet_id = "aws_subnet.a.id"`, "subnet_id = aws_subnet.a.id"},
		{SecretToken, finding.Error, true, false, "a text in the form of a private key or of a service's access token", `key = "-----BEGIN RSA PRIVATE KEY-----…"`, "a sensitive variable, or a secret store; revoke the token"},
		{UnpinnedModule, finding.Warning, true, false, "a module from a registry without `version`, or from a repository without a tag or commit", `source = "git::https://example.com/m.git"`, "`?ref=v1.2.0` in the source, or `version`"},
		{UnpinnedProvider, finding.Advice, false, false, "a provider in use without a version constraint", `resource "aws_x" "y" {}`, "an entry in `required_providers` with `version`"},
		{UnreadDependency, finding.Advice, false, false, "a `dependency` block of a unit whose outputs nothing reads", `dependency "vpc" { config_path = "../vpc" }`, "`dependencies`, if only the order matters"},
		{UnusedLocal, finding.Warning, true, true, "a local value that nothing refers to", "locals { x = 1 }", "no such local value"},
		{UnusedOutput, finding.Advice, false, false, "in an estate: an output of a unit that no unit reads", `output "x" { value = 1 }`, "no such output, if nothing outside of the estate reads it"},
		{UnusedProvider, finding.Warning, true, false, "an entry of `required_providers`, or an aliased provider configuration, that no module uses", `required_providers { null = {} }`, "no such entry"},
		{UnusedVariable, finding.Warning, true, false, "a variable that nothing refers to", `variable "x" {}`, "no such variable"},
		{UnusedDeps, finding.Warning, true, true, "an element of `depends_on` to which the block refers anyway, or that occurs twice", "`depends_on = [aws_x.y]` beside `id = aws_x.y.id`", "no `depends_on`"},
	}
}

// A Selection is the set of the rules that are on.
type Selection map[string]bool

// None reports whether no rule is on.
func (s Selection) None() bool {
	for _, on := range s {
		if on {
			return false
		}
	}
	return true
}

// Select returns the rules that are on: those that are on by default and those in enable, without
// those in disable; or only those in only. Each name is a code, also with OpenTofu's prefix
// "core:", or "all". err names an unknown code.
func Select(only, enable, disable []string) (s Selection, err error) {
	s = Selection{}
	set := func(names []string, on bool) {
		for _, name := range names {
			known := name == "all"
			for _, r := range Rules() {
				if name == "all" || r.Code == strings.TrimPrefix(name, "core:") {
					s[r.Code], known = on, true
				}
			}
			if !known && err == nil {
				err = unknown(name)
			}
		}
	}
	for _, r := range Rules() {
		s[r.Code] = r.On && len(only) == 0
	}
	set(only, true)
	set(enable, true)
	set(disable, false)
	return s, err
}

func unknown(name string) error {
	var codes []string
	for _, r := range Rules() {
		codes = append(codes, r.Code)
	}
	if near := similar.Nearest(name, slices.Values(codes)); near != "" {
		return fmt.Errorf("there is no lint %q; did you mean %q?", name, near)
	}
	return fmt.Errorf("there is no lint %q", name)
}

// rule returns the rule with a code.
func rule(code string) Rule {
	all := Rules()
	return all[slices.IndexFunc(all, func(r Rule) bool { return r.Code == code })]
}
