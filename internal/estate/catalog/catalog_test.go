package catalog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/estate/catalog"
)

// discover returns one line for each component: its kind, directory and title.
func discover(t *testing.T, root, below string) string {
	t.Helper()
	ignored, err := catalog.Committed(root)
	if err != nil {
		t.Fatal(err)
	}
	all, err := catalog.Discover(root, below, "Repository", ignored)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range all {
		lines = append(lines, string(c.Kind)+" "+c.Dir+": "+c.Title)
	}
	return strings.Join(lines, "\n")
}

const repository = `
-- main.tf --
-- modules/net/main.tf --
-- modules/net/sub/main.tofu --
-- modules/net/.hidden/main.tf --
-- modules/old/main.tf --
-- modules/kept/main.tf --
-- stacks/all/terragrunt.stack.hcl --
-- stacks/all/terragrunt.hcl --
-- stacks/all/inside/main.tf --
-- templates/x/boilerplate.yml --
-- templates/x/terragrunt.hcl --
-- units/app/terragrunt.hcl --
-- units/app/main.tf --
-- docs/README.md --
-- .terragrunt-catalog-ignore --
# comment
modules/*
!modules/kept
!modules/net/**
`

// Components are sorted by path. Directories in a component belong to it, except in a module. The
// last rule of the ignore file that matches decides; an excluded directory may contain components.
func TestDiscover(t *testing.T) {
	root := testkit.Files(t, repository)
	want := `module : Repository
module modules/kept: kept
module modules/net/sub: sub
stack stacks/all: all
template templates/x: x
unit units/app: app`
	if d := cmp.Diff(want, discover(t, root, "")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("unit units/app: app", discover(t, root, "units")); d != "" {
		t.Error(d)
	}
}

// A directory without components has none, and one that does not exist is an error.
func TestNothing(t *testing.T) {
	if got := discover(t, t.TempDir(), ""); got != "" {
		t.Error(got)
	}
	if _, err := catalog.Discover(t.TempDir(), "missing", "", nil); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// The front matter of a README takes precedence over its headings and text. A README that is
// not valid UTF-8, or whose front matter is not YAML, is no error.
func TestReadme(t *testing.T) {
	for _, tt := range []struct{ name, readme, title, description, tags string }{
		{"text", "![badge](x)\n# The **net**\n\nA [network](y).\n```\n# no heading\n```\nMore.\n", "The net", "A network. More.", ""},
		{"front", "---\nname: Front\ndescription: Text\ntags: [a, unit]\n---\n# Heading\n\nBody.\n", "Front", "Text", "a unit"},
		{"broken", "---\n: : [\n---\n# Heading\n\nBody\xff.\n", "Heading", "Body�.", ""},
		{"empty", "", "m", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := testkit.Files(t, "-- m/main.tf --\n")
			if err := os.WriteFile(filepath.Join(root, "m", "README.md"), []byte(tt.readme), 0o644); err != nil {
				t.Fatal(err)
			}
			all, err := catalog.Discover(root, "", "", nil)
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			c := all[0]
			if d := cmp.Diff([]string{tt.title, tt.description, tt.tags}, []string{c.Title, c.Description, strings.Join(c.Tags, " ")}); d != "" {
				t.Error(d)
			}
			if is := c.Is(catalog.Unit); is != strings.Contains(tt.tags, "unit") || !c.Is(catalog.Module) {
				t.Errorf("the component is a unit: %v", is)
			}
		})
	}
}
