package module_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
)

func TestCheckProviders(t *testing.T) {
	const (
		needs = "terraform {\n  required_providers {\n    x = { source = \"a/x\" }\n  }\n}\n"
		alias = "terraform {\n  required_providers {\n    x = {\n      source                = \"a/x\"\n      configuration_aliases = [x.one]\n    }\n  }\n}\n"
		two   = "terraform {\n  required_providers {\n    x = { source = \"a/x\" }\n    y = { source = \"a/y\" }\n  }\n}\nprovider \"x\" {\n  alias = \"one\"\n}\n"
	)
	for _, c := range []struct {
		name, root, child string
		want              []string
	}{
		{"inherited", two + "module \"m\" { source = \"./m\" }", needs, nil},
		{"passed", two + "module \"m\" {\n  source = \"./m\"\n  providers = { x.one = x.one }\n}", alias, nil},
		{"missing", two + "module \"m\" { source = \"./m\" }", alias, []string{"Missing required provider configuration"}},
		{"no such alias here", two + "module \"m\" {\n  source = \"./m\"\n  providers = { x.one = x.two }\n}", alias, []string{"Reference to undefined provider"}},
		{"no such alias there", two + "module \"m\" {\n  source = \"./m\"\n  providers = { x.two = x }\n}", needs, []string{"Reference to undefined provider"}},
		{"another provider", two + "module \"m\" {\n  source = \"./m\"\n  providers = { x = y }\n}", needs, []string{"Provider type mismatch"}},
		{"not declared", two + "module \"m\" {\n  source = \"./m\"\n  providers = { z = z }\n}", needs, []string{"Reference to undefined provider", "Reference to undefined provider"}},
		{"implied there", two + "module \"m\" {\n  source = \"./m\"\n  providers = { z = z }\n}", needs + "resource \"z_a\" \"b\" {}", []string{"Reference to undefined provider", "Reference to undefined provider"}},
		{"not declared there", "terraform {\n  required_providers {\n    z = { source = \"hashicorp/z\" }\n  }\n}\nmodule \"m\" {\n  source = \"./m\"\n  providers = { z = z }\n}", "resource \"z_a\" \"b\" {}", []string{"Reference to undefined provider"}},
		{"not declared here", "provider \"z\" {}\nmodule \"m\" {\n  source = \"./m\"\n  providers = { z = z }\n}", "terraform {\n  required_providers {\n    z = { source = \"hashicorp/z\" }\n  }\n}", []string{"Reference to undefined provider"}},
		{"an alias here", "provider \"z\" { alias = \"k\" }\nmodule \"m\" {\n  source = \"./m\"\n  providers = { z = z.k }\n}", "terraform {\n  required_providers {\n    z = { source = \"hashicorp/z\" }\n  }\n}", nil},
		{"empty block", two + "module \"m\" { source = \"./m\" }", needs + "provider \"x\" {}", []string{"Redundant empty provider block"}},
		{"own block", two + "module \"m\" { source = \"./m\" }", needs + "provider \"x\" { a = 1 }", nil},
		{"own block, count", two + "module \"m\" {\n  source = \"./m\"\n  count = 2\n}", needs + "provider \"x\" { a = 1 }", []string{"Module is incompatible with count, for_each, enabled and depends_on"}},
		{"own block, depends_on", two + "module \"m\" {\n  source = \"./m\"\n  depends_on = [x_a.b]\n}\nresource \"x_a\" \"b\" {}", needs + "provider \"x\" { a = 1 }", []string{"Module is incompatible with count, for_each, enabled and depends_on"}},
		{"the provider's elements", needs + "provider \"x\" {\n  alias    = \"e\"\n  for_each = toset(local.l)\n}\nresource \"x_a\" \"b\" {\n  for_each = toset(local.l)\n  provider = x.e[each.key]\n}", "", []string{"Provider configuration for_each matches resource"}},
		{"meta", "terraform {\n  provider_meta \"x\" {\n    a = 1\n    b = var.q\n  }\n}", "", []string{"Variables not allowed"}},
		{"other elements", needs + "provider \"x\" {\n  alias    = \"e\"\n  for_each = toset(local.l)\n}\nresource \"x_a\" \"b\" {\n  for_each = toset(local.k)\n  provider = x.e[each.key]\n}", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, m := range module.CheckProviders(plantest.Tree(t, c.root+"\n-- m/m.tf --\n"+c.child)) {
				got = append(got, m.Summary)
				if m.At == nil || m.At.Filename == "" {
					t.Errorf("%s: no place", m.Summary)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A message about a provider of another type names the local names of the right one.
func TestPassInstead(t *testing.T) {
	const needs = "terraform {\n  required_providers {\n    x = { source = \"a/x\" }\n  }\n}"
	call := "\nmodule \"m\" {\n  source = \"./m\"\n  providers = { x = y }\n}"
	for names, want := range map[string]string{
		"y = { source = \"a/y\" }\nmine = { source = \"a/x\" }":                               `Here the local name of a/x is "mine": pass that provider.`,
		"y = { source = \"a/y\" }\nmine = { source = \"a/x\" }\nother = { source = \"a/x\" }": `Here the local name of a/x is "mine" or "other": pass that provider.`,
		"y = { source = \"a/y\" }": "No local name here is a/x: add an entry for it to required_providers, and pass that name.",
	} {
		ds := module.CheckProviders(plantest.Tree(t, "terraform {\n  required_providers {\n"+names+"\n}\n}"+call+"\n-- m/m.tf --\n"+needs))
		if len(ds) != 1 || !strings.HasSuffix(ds[0].Detail, want) {
			t.Errorf("%s: %v", names, ds)
		}
	}
}
