package server

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// renameFilesText is an estate in which paths have every form.
const renameFilesText = `
-- .git/HEAD --
ref: refs/heads/main
-- modules/app/main.tf --
module "net" {
  source = "../net"
}
module "part" {
  source = "./part"
}
locals {
  text = file("${path.module}/../shared/a.txt")
}
-- modules/app/override.tf --
locals {
  text = "over"
}
-- modules/app/z_override.tf --
locals {
  text = "last"
}
-- modules/app/part/main.tf --
output "x" {
  value = 1
}
-- modules/app/tests/a.tftest.hcl --
run "setup" {
  module {
    source = "./part"
  }
}
-- modules/net/main.tf --
output "y" {
  value = 1
}
-- modules/shared/a.txt --
text
-- modules/old/main.tf.json --
{"module": {"net": {"source": "../net"}}}
-- live/root.hcl --
locals {
  base = "${get_repo_root()}/modules"
}
-- live/region.hcl --
inputs = {
  region = "eu"
}
-- live/vpc/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
terraform {
  source = "../../modules//net?x=1"
}
-- live/app/terragrunt.hcl --
include {
  path = find_in_parent_folders("root.hcl")
}
terraform {
  source = "${dirname(find_in_parent_folders("root.hcl"))}/../modules/app"
  extra_arguments "a" {
    commands           = ["plan"]
    required_var_files = ["${get_terragrunt_dir()}/../common.tfvars"]
  }
}
dependency "vpc" {
  config_path = "../vpc"
}
dependencies {
  paths = ["../vpc", "${get_terragrunt_dir()}/../db"]
}
locals {
  region = read_terragrunt_config("../region.hcl")
  found  = read_terragrunt_config(find_in_parent_folders("region.hcl")).inputs.region
}
-- live/db/terragrunt.hcl --
import "region" {
  config_path = "../region.hcl"
}
locals {
  modules = "${get_repo_root()}/modules"
}
terraform {
  source = "${local.modules}//net"
}
-- live/env/us.hcl --
module "net" {
  source = "../../modules//net"
}
-- live/stack/terragrunt.stack.hcl --
unit "vpc" {
  source = "../vpc"
  path   = "vpc"
}
-- live/common.tfvars --
`

// willRename requests the edits for renamed files and directories, given as OLD:NEW.
func (c *client) willRename(pairs ...string) *protocol.WorkspaceEdit {
	c.t.Helper()
	var p protocol.RenameFilesParams
	for _, pair := range pairs {
		from, to, _ := strings.Cut(pair, ":")
		p.Files = append(p.Files, protocol.FileRename{OldURI: c.uri(from), NewURI: c.uri(to)})
	}
	var e *protocol.WorkspaceEdit
	c.call("workspace/willRenameFiles", p, &e)
	return e
}

// changed returns the lines that edits change, as "file: line", sorted.
func (c *client) changed(e *protocol.WorkspaceEdit) []string {
	c.t.Helper()
	out := []string{}
	if e == nil {
		return out
	}
	for uri, edits := range e.Changes {
		text, err := os.ReadFile(document.Path(uri))
		if err != nil {
			c.t.Fatal(err)
		}
		x := document.New(text)
		for _, edit := range edits {
			start, end := x.Offset(edit.Range.Start, document.UTF16), x.Offset(edit.Range.End, document.UTF16)
			line := x.LineStart(edit.Range.Start.Line)
			rest := string(x.Line(edit.Range.Start.Line))
			out = append(out, c.name(uri)+": "+strings.TrimSpace(rest[:start-line]+edit.NewText+rest[end-line:]))
		}
	}
	slices.Sort(out)
	return out
}

func TestWillRenameFiles(t *testing.T) {
	for _, test := range []struct {
		name     string
		pairs    []string
		want     []string
		warnings []string
	}{
		{"a module directory", []string{"modules/net:modules/network"}, []string{
			"live/db/terragrunt.hcl: source = \"${local.modules}//network\"",
			"live/env/us.hcl: source = \"../../modules//network\"",
			"live/vpc/terragrunt.hcl: source = \"../../modules//network?x=1\"",
			"modules/app/main.tf: source = \"../network\"",
			"modules/old/main.tf.json: {\"module\": {\"net\": {\"source\": \"../network\"}}}",
		}, nil},
		{"a module to another level", []string{"modules/app:services/web/app"}, []string{
			"live/app/terragrunt.hcl: source = \"${dirname(find_in_parent_folders(\"root.hcl\"))}/../services/web/app\"",
			"modules/app/main.tf: source = \"../../../modules/net\"",
			"modules/app/main.tf: text = file(\"${path.module}/../../../modules/shared/a.txt\")",
		}, nil},
		{"a module inside a module", []string{"modules/app/part:modules/app/piece"}, []string{
			"modules/app/main.tf: source = \"./piece\"",
			"modules/app/tests/a.tftest.hcl: source = \"./piece\"",
		}, nil},
		{"all modules", []string{"modules:tf"}, []string{
			"live/app/terragrunt.hcl: source = \"${dirname(find_in_parent_folders(\"root.hcl\"))}/../tf/app\"",
			"live/db/terragrunt.hcl: modules = \"${get_repo_root()}/tf\"",
			"live/env/us.hcl: source = \"../../tf//net\"",
			"live/root.hcl: base = \"${get_repo_root()}/tf\"",
			"live/vpc/terragrunt.hcl: source = \"../../tf//net?x=1\"",
		}, nil},
		{"a unit", []string{"live/vpc:live/network/vpc"}, []string{
			"live/app/terragrunt.hcl: config_path = \"../network/vpc\"",
			"live/app/terragrunt.hcl: paths = [\"../network/vpc\", \"${get_terragrunt_dir()}/../db\"]",
			"live/stack/terragrunt.stack.hcl: source = \"../network/vpc\"",
			"live/vpc/terragrunt.hcl: source = \"../../../modules//net?x=1\"",
		}, []string{"live/vpc is a unit. If its state is stored under the path of the unit, move the state too."}},
		{"a unit with all forms", []string{"live/app:live/a/b"}, []string{
			"live/app/terragrunt.hcl: config_path = \"../../vpc\"",
			"live/app/terragrunt.hcl: paths = [\"../../vpc\", \"${get_terragrunt_dir()}/../db\"]",
			"live/app/terragrunt.hcl: paths = [\"../vpc\", \"${get_terragrunt_dir()}/../../db\"]",
			"live/app/terragrunt.hcl: region = read_terragrunt_config(\"../../region.hcl\")",
			"live/app/terragrunt.hcl: required_var_files = [\"${get_terragrunt_dir()}/../../common.tfvars\"]",
		}, []string{"live/app is a unit. If its state is stored under the path of the unit, move the state too."}},
		{"a unit out of the reach of its root", []string{"live/db:other/db"}, []string{
			"live/app/terragrunt.hcl: paths = [\"../vpc\", \"${get_terragrunt_dir()}/../../other/db\"]",
			"live/db/terragrunt.hcl: config_path = \"../../live/region.hcl\"",
		}, []string{"live/db is a unit. If its state is stored under the path of the unit, move the state too."}},
		{"an included file", []string{"live/root.hcl:live/common.hcl"}, []string{
			"live/app/terragrunt.hcl: path = find_in_parent_folders(\"common.hcl\")",
			"live/app/terragrunt.hcl: source = \"${dirname(find_in_parent_folders(\"common.hcl\"))}/../modules/app\"",
			"live/vpc/terragrunt.hcl: path = find_in_parent_folders(\"common.hcl\")",
		}, nil},
		{"an included file to a directory that is no parent", []string{"live/root.hcl:shared/root.hcl"}, []string{
			"live/app/terragrunt.hcl: path = \"../../shared/root.hcl\"",
			"live/vpc/terragrunt.hcl: path = \"../../shared/root.hcl\"",
		}, []string{"live/app/terragrunt.hcl, line 5: the path to modules/app cannot be updated."}},
		{"an imported file", []string{"live/region.hcl:live/eu.hcl"}, []string{
			"live/app/terragrunt.hcl: found  = read_terragrunt_config(find_in_parent_folders(\"eu.hcl\")).inputs.region",
			"live/app/terragrunt.hcl: region = read_terragrunt_config(\"../eu.hcl\")",
			"live/db/terragrunt.hcl: config_path = \"../eu.hcl\"",
		}, nil},
		{"a unit and its module at once", []string{"live/vpc:live/net", "modules/net:modules/vpc"}, []string{
			"live/app/terragrunt.hcl: config_path = \"../net\"",
			"live/app/terragrunt.hcl: paths = [\"../net\", \"${get_terragrunt_dir()}/../db\"]",
			"live/db/terragrunt.hcl: source = \"${local.modules}//vpc\"",
			"live/env/us.hcl: source = \"../../modules//vpc\"",
			"live/stack/terragrunt.stack.hcl: source = \"../net\"",
			"live/vpc/terragrunt.hcl: source = \"../../modules//vpc?x=1\"",
			"modules/app/main.tf: source = \"../vpc\"",
			"modules/old/main.tf.json: {\"module\": {\"net\": {\"source\": \"../vpc\"}}}",
		}, []string{"live/vpc is a unit. If its state is stored under the path of the unit, move the state too."}},
		{"a module out of its package", []string{"modules/app:app"}, []string{
			"live/app/terragrunt.hcl: source = \"${dirname(find_in_parent_folders(\"root.hcl\"))}/../app\"",
			"modules/app/main.tf: source = \"../modules/net\"",
			"modules/app/main.tf: text = file(\"${path.module}/../modules/shared/a.txt\")",
		}, nil},
		{"a module of a package", []string{"modules/net:net"}, []string{
			"live/db/terragrunt.hcl: source = \"${local.modules}/..//net\"",
			"live/env/us.hcl: source = \"../..//net\"",
			"live/vpc/terragrunt.hcl: source = \"../..//net?x=1\"",
			"modules/app/main.tf: source = \"../../net\"",
			"modules/old/main.tf.json: {\"module\": {\"net\": {\"source\": \"../../net\"}}}",
		}, nil},
		{"a text file", []string{"modules/shared/a.txt:modules/shared/b.txt"}, []string{"modules/app/main.tf: text = file(\"${path.module}/../shared/b.txt\")"}, nil},
		{"an override file", []string{"modules/app/override.tf:modules/app/more.tf"}, nil, []string{"modules/app/override.tf is no longer an override file: blocks that it has in common with other files become errors."}},
		{"a file that becomes an override file", []string{"modules/app/main.tf:modules/app/main_override.tf"}, nil, []string{"modules/app/main.tf becomes an override file: its blocks change those of other files, and a block that is in no other file is an error."}},
		{"a file that is no configuration any more", []string{"modules/app/main.tf:modules/app/main.txt"}, nil, []string{"modules/app/main.tf is no longer part of its module."}},
		{"an override file in another order", []string{"modules/app/z_override.tf:modules/app/a_override.tf"}, nil, []string{"modules/app/z_override.tf and modules/app/override.tf set the same argument. After the renaming, the other one counts."}},
		{"nothing that is named", []string{"modules/net/main.tf:modules/net/net.tf"}, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := start(t, unpack(t, renameFilesText), nil)
			equal(t, "edits", c.changed(c.willRename(test.pairs...)), test.want...)
			c.call("terrace/viewpoints", map[string]any{"textDocument": map[string]any{"uri": c.uri("live/root.hcl")}}, nil) // messages before have arrived
			c.mu.Lock()
			got := strings.Split(strings.Join(c.messages, "\n"), "\n")
			c.mu.Unlock()
			if len(test.warnings) == 0 {
				test.warnings = []string{""}
			}
			equal(t, "warnings", got, test.warnings...)
		})
	}
}

// Paths in JSON syntax are updated as in native syntax.
func TestWillRenameInJSON(t *testing.T) {
	const files = `
-- .git/HEAD --
ref: refs/heads/main
-- m/main.tf.json --
{
  "module": {
    "net": {
      "source": "..\/net"
    }
  },
  "locals": {
    "text": "${file(\"${path.module}/../net/a.txt\")}"
  }
}
-- net/a.txt --
-- live/root.hcl --
-- live/vpc/terragrunt.hcl.json --
{
  "include": {
    "root": {
      "path": "${find_in_parent_folders(\"root.hcl\")}"
    }
  },
  "terraform": {
    "source": "${get_repo_root()}/net?a=1&b=2"
  },
  "dependencies": {
    "paths": ["../db"]
  }
}
-- live/db/terragrunt.hcl --
-- live/s/terragrunt.stack.hcl --
-- note.json --
{"path": "x/net"}
`
	for _, test := range []struct {
		pair string
		want []string
	}{
		{"net:net \"é\" ${x}", []string{
			`live/vpc/terragrunt.hcl.json: "source": "${get_repo_root()}/net \"é\" $${x}?a=1&b=2"`,
			`m/main.tf.json: "source": "../net \"é\" $${x}"`,
			`m/main.tf.json: "text": "${file(\"${path.module}/../net \\\"é\\\" $${x}/a.txt\")}"`,
		}},
		{"live/root.hcl:live/all.hcl", []string{`live/vpc/terragrunt.hcl.json: "path": "${find_in_parent_folders(\"all.hcl\")}"`}},
		{"live/root.hcl:other/root.hcl", []string{`live/vpc/terragrunt.hcl.json: "path": "${\"../../other/root.hcl\"}"`}},
		{"live/db:live/a/db", []string{`live/vpc/terragrunt.hcl.json: "paths": ["../a/db"]`}},
		{"m:a/m", []string{
			`m/main.tf.json: "source": "../../net"`,
			`m/main.tf.json: "text": "${file(\"${path.module}/../../net/a.txt\")}"`,
		}},
	} {
		c := start(t, unpack(t, files), nil)
		equal(t, test.pair, c.changed(c.willRename(test.pair)), test.want...)
	}
}

// The edits of an open file are those of its unsaved text.
func TestWillRenameUnsaved(t *testing.T) {
	c := start(t, unpack(t, renameFilesText), nil)
	text := c.open("modules/app/main.tf")
	c.change("modules/app/main.tf", "# é\n"+text)
	e := c.willRename("modules/net:modules/network")
	if edits := e.Changes[c.uri("modules/app/main.tf")]; len(edits) != 1 || edits[0].Range.Start.Line != 2 {
		t.Errorf("edits: %s", asJSON(e))
	}
	c.change("modules/app/main.tf", "module \"x\" { source = \"../net\"")
	c.willRename("modules/net:modules/network")
	deadline := time.Now().Add(10 * time.Second)
	for {
		c.mu.Lock()
		got := strings.Join(c.messages, "\n")
		c.mu.Unlock()
		if strings.Contains(got, "modules/app/main.tf has a syntax error, so that its paths are not updated.") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("messages: %q", got)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// MoveSome moves random directories of an estate in a directory, with the edits of the server, and
// returns what it moved. names are the directories that can move.
func MoveSome(t testing.TB, dir string, r *rand.Rand, names map[string]string, n int) (moved []string) {
	c := start(t, dir, nil)
	for i := range n {
		all := slices.Sorted(maps.Keys(names))
		name := all[r.IntN(len(all))]
		from := names[name]
		to := []string{"", "x/", "x/y/", "modules/deep/"}[r.IntN(4)] + name + strings.Repeat("_", r.IntN(2)) + string(rune('a'+i))
		e := c.willRename(from + ":" + to)
		if e != nil {
			apply(t, e)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
		c.notify("workspace/didRenameFiles", map[string]any{"files": []any{map[string]any{"oldUri": c.uri(from), "newUri": c.uri(to)}}})
		names[name] = to
		moved = append(moved, from+" to "+to)
	}
	return moved
}
