package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// A client that accepts versions gets the edits of a rename with the version of each open document.
func TestRenameVersions(t *testing.T) {
	c := start(t, unpack(t, moduleFiles), map[string]any{"workspace": map[string]any{"workspaceEdit": map[string]any{"documentChanges": true}}})
	text := c.open("main.tf")
	c.change("main.tf", "# é😀\r\n"+text)
	at := c.position("main.tf", []byte("# é😀\r\n"+text), len("# é😀\r\n")+strings.Index(text, "size"))
	at["newName"] = "count_of"
	var raw json.RawMessage
	c.call("textDocument/rename", at, &raw)
	var e struct {
		Changes         map[string]any
		DocumentChanges []struct {
			TextDocument struct {
				URI     string
				Version *int
			}
			Edits []protocol.TextEdit
		}
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, d := range e.DocumentChanges {
		version := "on disk"
		if d.TextDocument.Version != nil {
			version = fmt.Sprint(*d.TextDocument.Version)
		}
		got = append(got, fmt.Sprintf("%s %s %d", c.name(d.TextDocument.URI), version, len(d.Edits)))
	}
	equal(t, "documents", got, "main.tf 2 2", "terraform.tfvars on disk 1")
	if e.Changes != nil {
		t.Errorf("the edits are given twice: %s", raw)
	}
	if r := e.DocumentChanges[0].Edits[0].Range; r.Start.Line != 1 || r.Start.Character != len(`variable "`) {
		t.Errorf("the first edit is at %v", r)
	}
}

// An input from a parent file with the same name as the unit file has a hint.
func TestHintOfParentFile(t *testing.T) {
	c := start(t, unpack(t, "-- terragrunt.hcl --\nlocals {\n  region = \"eu\"\n}\n-- app/terragrunt.hcl --\ninclude \"root\" {\n  path   = find_in_parent_folders()\n  expose = true\n}\ninputs = {\n  region = include.root.locals.region\n}\n-- app/main.tf --\nvariable \"region\" {}\n"), nil)
	if got := c.hintText("app/terragrunt.hcl"); !strings.Contains(got, "from ../terragrunt.hcl:2") {
		t.Errorf("hints: %s", got)
	}
}

// The links of an effective module lead to files whose names contain spaces.
func TestLinkToNameWithSpaces(t *testing.T) {
	c := start(t, unpack(t, "-- a b.tf --\nvariable \"x\" {\n  default = 1\n}\n"), nil)
	var r effectiveResult
	c.call("terrace/effective", map[string]any{"textDocument": map[string]any{"uri": c.uri("a b.tf")}}, &r)
	if len(r.Links) != 2 || !strings.HasSuffix(r.Links[0].Target, "/a%20b.tf#L1") {
		t.Errorf("links: %s\n%s", asJSON(r.Links), r.Text)
	}
}

// A program whose arguments come from a data file does not run before the file is saved.
func TestTrustSavedData(t *testing.T) {
	needPrograms(t)
	dir := unpack(t, "-- cmd.yaml --\nrun: one\n-- terragrunt.hcl --\nlocals {\n  cmd = yamldecode(file(\"cmd.yaml\")).run\n  x   = run_cmd(\"sh\", \"-c\", \"echo ${local.cmd}; echo . >> COUNT\")\n}\ninputs = {\n  x = local.x\n}\n-- main.tf --\nvariable \"x\" {}\n")
	c := startWith(t, dir, nil, map[string]any{"trust": true}, nil)
	runs := func() int {
		b, _ := os.ReadFile(filepath.Join(dir, "COUNT"))
		return strings.Count(string(b), ".")
	}
	if got := c.hoverText("terragrunt.hcl", "x = local."); !strings.Contains(got, `"one`) || runs() != 1 {
		t.Fatalf("%d runs; hover: %s", runs(), got)
	}
	c.open("cmd.yaml")
	c.change("cmd.yaml", "run: two\n")
	if got := c.hoverText("terragrunt.hcl", "x = local."); strings.Contains(got, `"two`) || runs() != 1 {
		t.Errorf("an unsaved file: %d runs; hover: %s", runs(), got)
	}
	if err := os.WriteFile(filepath.Join(dir, "cmd.yaml"), []byte("run: two\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.notify("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": c.uri("cmd.yaml")}})
	if got := c.hoverText("terragrunt.hcl", "x = local."); !strings.Contains(got, `"two`) || runs() != 2 {
		t.Errorf("after the save: %d runs; hover: %s", runs(), got)
	}
}

// Inputs are arguments of the modules of an environment file.
func TestCompletionOfEnvironment(t *testing.T) {
	files := "-- m/main.tf --\nvariable \"name\" {\n  type = string\n}\nvariable \"size\" {\n  type    = number\n  default = 1\n}\n-- prod.hcl --\nmodule \"app\" {\n  source = \"./m\"\n  \n}\n"
	c := start(t, unpack(t, files), nil)
	var r protocol.CompletionList
	c.call("textDocument/completion", c.at("prod.hcl", "./m\"\n  "), &r)
	got := []string{}
	for _, i := range r.Items {
		if i.Detail != "" && i.Detail != "block" {
			got = append(got, i.Label+": "+i.Detail)
		}
	}
	equal(t, "completion", got, "name: string, required", "size: number")
	other := start(t, unpack(t, "-- m/main.tf --\nvariable \"name\" {}\n-- region.hcl --\nlocals {\n  name = \"eu\"\n}\n-- prod.hcl --\nimport \"region\" {\n  config_path = \"./region.hcl\"\n}\nmodule \"app\" {\n  source = \"./m\"\n  name   = \"x\"\n}\nmodule \"web\" {\n  source = \"./m\"\n  name   = import.region.locals.name\n}\n"), nil)
	if got := other.hintText("prod.hcl"); strings.Count(got, "from region.hcl:2") != 1 || !strings.Contains(got, `"line":9`) {
		t.Errorf("hints: %s", got)
	}
	var h *protocol.Hover
	c.open("prod.hcl")
	c.change("prod.hcl", "module \"app\" {\n  source = \"./m\"\n  name   = \"x\"\n}\n")
	p := map[string]any{"textDocument": map[string]any{"uri": c.uri("prod.hcl")}, "position": protocol.Position{Line: 2, Character: 4}}
	if c.call("textDocument/hover", p, &h); h == nil || !strings.Contains(h.Contents.Value, "`name`: `string`, required") || !strings.Contains(h.Contents.Value, `= "x"`) {
		t.Errorf("hover: %s", asJSON(h))
	}
	var l []protocol.Location
	c.call("textDocument/definition", p, &l)
	equal(t, "definition", c.places(l), "m/main.tf:1 name")
}
