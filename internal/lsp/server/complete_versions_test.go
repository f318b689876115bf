package server

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/internal/provider/schemacache"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// Sources and versions come from installed modules, lock files and the plugin cache of the workspace.
func TestCompletionOfVersions(t *testing.T) {
	dir := unpack(t, `
-- main.tf --
module "vpc" {
  source  = "example/vpc/none//modules/a"
  version = "2.10.0"
}
module "git" {
  source = "git::https://example.com/m.git?ref=v1"
}
module "secret" {
  source = "git::https://user:password@example.com/m.git"
}
module "here" {
  source = "./here"
}
-- here/main.tf --
-- .terraform/modules/modules.json --
{"Modules": [
  {"Key": "", "Source": "", "Dir": "."},
  {"Key": "vpc", "Source": "registry.opentofu.org/example/vpc/none//modules/a", "Version": "2.10.0", "Dir": ".terraform/modules/vpc"}
]}
-- .terraform.lock.hcl --
provider "registry.opentofu.org/example/one" {
  version = "1.9.0"
}
-- other/main.tf --
-- other/.terraform/modules/modules.json --
{"Modules": [
  {"Key": "vpc", "Source": "registry.opentofu.org/example/vpc/none", "Version": "2.9.0", "Dir": ".terraform/modules/vpc"},
  {"Key": "more", "Source": "registry.opentofu.org/example/more/none", "Version": "1.0.0", "Dir": ".terraform/modules/more"}
]}
-- other/.terraform.lock.hcl --
provider "registry.opentofu.org/example/one" {
  version = "1.10.0"
}
provider "example.com/example/two" {
  version = "0.1.0"
}
-- unit/terragrunt.hcl --
`)
	cache := t.TempDir()
	if err := os.MkdirAll(filepath.Join(cache, addr.DefaultHost, "example", "one", "2.0.0-beta1", "any_any"), 0o755); err != nil {
		t.Fatal(err)
	}
	d, who, err := workdir.Embedded(workdir.Embedding{Dir: dir, Environ: []string{"HOME=" + t.TempDir(), "TF_PLUGIN_CACHE_DIR=" + cache}, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	d.Schemas = schemacache.Cache{Dir: t.TempDir(), Now: time.Now}
	d.Schemas.Keep("releases of "+addr.DefaultHost+"/example/one", schemacache.Sections{"release": {"1.9.5": []byte("key")}})
	c := startServer(t, dir, nil, nil, nil, func(o *Options) { o.Session = workspace.New(d, who) })
	for _, x := range []struct{ name, text, want string }{
		{"new.tf", "module \"x\" {\n  source = \"|\"\n}\n", "../ ./ example/more/none example/vpc/none example/vpc/none//modules/a git::https://example.com/m.git?ref=v1"},
		{"new.tf", "module \"x\" {\n  source = \"./h|\"\n}\n", "here other unit"},
		{"new.tf", "module \"x\" {\n  source  = \"example/vpc/none\"\n  version = \"|\"\n}\n", "2.10.0 2.9.0"},
		{"new.tf", "module \"x\" {\n  version = \"~> 2.|\"\n  source  = \"example/vpc/none//modules/b\"\n}\n", "2.10.0 2.9.0"},
		{"new.tf", "module \"x\" {\n  source  = \"example/none/none\"\n  version = \"|\"\n}\n", ""},
		{"new.tf", "terraform {\n  required_providers {\n    one = {\n      source  = \"example/one\"\n      version = \"|\"\n    }\n  }\n}\n", "VERSIONS"},
		{"new.tf", "terraform {\n  required_providers {\n    one = { source = \"example/one\", version = \"|\" }\n  }\n}\n", "VERSIONS"},
		{"new.tf", "terraform {\n  required_providers {\n    two = { version = \"|\", source = \"example.com/example/two\" }\n  }\n}\n", "0.1.0"},
		{"new.tf", "terraform {\n  required_providers {\n    one = { source = \"|\" }\n  }\n}\n", "example.com/example/two example/one"},
		{"unit/terragrunt.hcl", "terraform {\n  source = \"|\"\n}\n", "../ ./ git::https://example.com/m.git?ref=v1"},
	} {
		var got []string
		for _, i := range c.completed(x.name, x.text) {
			got = append(got, i.Label)
		}
		want := strings.Replace(x.want, "VERSIONS", "2.0.0-beta1 1.10.0 1.9.5 1.9.0", 1)
		if strings.Join(got, " ") != want {
			t.Errorf("%s\n%q\nwant %s", x.text, got, want)
		}
	}
	const text = "module \"x\" {\n  source  = \"example/vpc/none\"\n  version = \"~> 2.|\"\n}\n"
	for _, i := range c.completed("new.tf", text) {
		if i.TextEdit == nil || i.TextEdit.NewText != i.Label || i.TextEdit.Range.Start.Character != 16 || i.TextEdit.Range.End.Character != 18 {
			t.Errorf("%s", asJSON(i))
		}
	}
}
