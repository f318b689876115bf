package server

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// untrustedFiles run programs that leave a file, wherever a function of a unit file can.
const untrustedFiles = `
-- root.hcl --
locals {
  ran = run_cmd("--terragrunt-quiet", "sh", "-c", "touch ROOT; echo in-root")
}
inputs = {
  root = local.ran
}
-- app/terragrunt.hcl --
include "root" {
  path = find_in_parent_folders("root.hcl")
}
locals {
  name   = run_cmd("--terragrunt-quiet", "sh", "-c", "touch ${get_terragrunt_dir()}/APP; echo in-app")
  secret = sops_decrypt_file("secret.json")
}
inputs = {
  name   = local.name
  secret = local.secret
}
-- app/secret.json --
{"sops": {}}
-- app/main.tf --
variable "name" {}
variable "root" {}
variable "secret" {}
data "external" "x" {
  program = ["sh", "-c", "touch EXTERNAL"]
}
-- bin/sops --
#!/bin/sh
touch "$(dirname "$0")/SOPS"
echo decrypted
`

// left returns the files that programs of untrustedFiles left.
func left(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if base := filepath.Base(path); err == nil && strings.ToUpper(base) == base && base != "" && filepath.Ext(base) == "" && path != dir {
			out = append(out, base)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func needPrograms(t *testing.T) {
	for _, name := range []string{"sh", "touch"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name + " is not installed")
		}
	}
}

// askAll sends every request for every unit file.
func (c *client) askAll() {
	for _, name := range []string{"root.hcl", "app/terragrunt.hcl"} {
		text := []byte(c.open(name))
		doc := map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}
		c.diagnostics(name)
		all := map[string]any{"textDocument": doc["textDocument"], "range": protocol.Range{End: protocol.Position{Line: 99}}, "context": map[string]any{"diagnostics": []any{}}}
		for _, m := range []string{"textDocument/inlayHint", "textDocument/codeAction", "textDocument/codeLens", "terrace/effective", "terrace/viewpoints", "textDocument/documentLink"} {
			_ = c.try(m, all, nil)
		}
		for i := range text {
			if i%7 == 0 {
				c.call("textDocument/hover", c.position(name, text, i), nil)
				c.call("textDocument/completion", c.position(name, text, i), nil)
			}
		}
	}
}

// hoverText returns the text of the hover behind a mark in a file.
func (c *client) hoverText(name, before string) string {
	c.t.Helper()
	var h *protocol.Hover
	c.call("textDocument/hover", c.at(name, before), &h)
	if h == nil {
		return ""
	}
	return h.Contents.Value
}

func (c *client) hintText(name string) string {
	c.t.Helper()
	var r []protocol.InlayHint
	c.call("textDocument/inlayHint", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}, "range": protocol.Range{End: protocol.Position{Line: 99}}}, &r)
	return asJSON(r)
}

// A hostile repository executes nothing, unless the user trusts it.
func TestTrust(t *testing.T) {
	needPrograms(t)
	options := func(dir string) map[string]any {
		return map[string]any{
			"none": nil, "false": false, "wrong": map[string]any{"all": true}, "word": "yes", "other": []string{filepath.Join(dir, "vendor")},
			"relative": []string{"."}, "silent": "configuration",
			"true": true, "path": []string{dir}, "uri": []string{document.URI(dir)}, "above": []string{filepath.Dir(dir)},
		}
	}
	for name := range options("/x") {
		t.Run(name, func(t *testing.T) {
			dir := unpack(t, untrustedFiles)
			if err := os.Chmod(filepath.Join(dir, "bin/sops"), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
			c := startWith(t, dir, nil, map[string]any{"trust": options(dir)[name]}, nil)
			c.askAll()
			got := strings.Join(left(t, dir), " ")
			text, hint := c.hoverText("app/terragrunt.hcl", "local.na"), c.hintText("app/terragrunt.hcl")
			switch name {
			case "true", "path", "uri", "above":
				if got != "APP ROOT SOPS" && got != "APP SOPS ROOT" || !strings.Contains(text, `"in-app`) || strings.Contains(hint, "is not run") {
					t.Errorf("trusted: %q ran; hover: %s; hints: %s", got, text, hint)
				}
			default:
				if got != "" || strings.Contains(text, `"in-app`) || !strings.Contains(text, "not run, because the directory is not trusted") || !strings.Contains(hint, "run_cmd is not run") || !strings.Contains(hint, "sops_decrypt_file is not run") {
					t.Errorf("%q ran; hover: %s; hints: %s", got, text, hint)
				}
			}
		})
	}
}

// The configuration of the client grants trust only if the option says so, and withdraws it always.
func TestTrustConfiguration(t *testing.T) {
	needPrograms(t)
	for _, test := range []struct {
		name           string
		option         any
		answer, second string // the section for the root
		runs           bool
	}{
		{"a repository with settings", nil, `{"trust": true}`, "", false},
		{"granted", "configuration", `{"trust": true}`, "", true},
		{"not granted", "configuration", `{"trust": false}`, "", false},
		{"silent", "configuration", `null`, "", false},
		{"withdrawn", true, `{"trust": false}`, "", false},
		{"granted later", "configuration", `null`, `{"trust": true}`, true},
		{"restricted later", true, `{}`, `{"trust": false}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := unpack(t, untrustedFiles)
			answer := make(chan string, 8)
			answer <- test.answer
			asked := make(chan int, 8)
			c := startWith(t, dir, map[string]any{"workspace": map[string]any{"configuration": true}}, map[string]any{"trust": test.option}, func(method string, p json.RawMessage) any {
				if method != "workspace/configuration" {
					return nil
				}
				var q struct {
					Items []struct{ ScopeURI, Section string }
				}
				if json.Unmarshal(p, &q) != nil || len(q.Items) != 2 || q.Items[1].ScopeURI != document.URI(dir) || q.Items[1].Section != "terrace" {
					t.Errorf("the request is %s", p)
				}
				defer func() { asked <- len(q.Items) }()
				return []json.RawMessage{json.RawMessage("{}"), json.RawMessage(<-answer)}
			})
			<-asked
			if test.second != "" {
				answer <- test.second
				c.notify("workspace/didChangeConfiguration", map[string]any{"settings": nil})
				<-asked
			}
			c.open("app/terragrunt.hcl")
			runs := func() bool { return strings.Contains(c.hoverText("app/terragrunt.hcl", "local.na"), `"in-app`) }
			ran := !test.runs
			for deadline := time.Now().Add(10 * time.Second); ran != test.runs && time.Now().Before(deadline); { // the server has the answer a moment later
				if test.runs || strings.Contains(c.hintText("app/terragrunt.hcl"), "is not run") {
					ran = runs()
				}
			}
			if ran != test.runs {
				t.Errorf("the program runs: %v, want %v; files: %q", ran, test.runs, left(t, dir))
			}
			if test.option != true && !test.runs && len(left(t, dir)) > 0 {
				t.Errorf("files: %q", left(t, dir))
			}
		})
	}
}

// A file outside of the trusted directory runs nothing, also if a trusted unit includes it; and one root
// can be trusted while another is not.
func TestTrustPerRoot(t *testing.T) {
	needPrograms(t)
	dir := unpack(t, untrustedFiles)
	c := startWith(t, dir, nil, map[string]any{"trust": []string{filepath.Join(dir, "app")}}, nil)
	c.askAll()
	if got := left(t, dir); len(got) != 0 {
		t.Errorf("a trusted unit with an untrusted include ran %q", got)
	}
	if text := c.hintText("root.hcl"); !strings.Contains(text, "run_cmd is not run") {
		t.Errorf("hints of root.hcl: %s", text)
	}
}

// While text is not saved, a command does not run. Its last result stays, and it runs after the save.
func TestTrustSaved(t *testing.T) {
	needPrograms(t)
	dir := unpack(t, "-- terragrunt.hcl --\nlocals {\n  x = run_cmd(\"sh\", \"-c\", \"echo one; echo . >> COUNT\")\n}\ninputs = {\n  x = local.x\n}\n-- main.tf --\nvariable \"x\" {}\n")
	c := startWith(t, dir, nil, map[string]any{"trust": true}, nil)
	text := c.open("terragrunt.hcl")
	runs := func() int {
		b, _ := os.ReadFile(filepath.Join(dir, "COUNT"))
		return strings.Count(string(b), ".")
	}
	if got := c.hoverText("terragrunt.hcl", "local."); !strings.Contains(got, `"one`) || runs() != 1 {
		t.Fatalf("%d runs; hover: %s", runs(), got)
	}
	c.change("terragrunt.hcl", text+"# a comment\n")
	if got := c.hoverText("terragrunt.hcl", "local."); !strings.Contains(got, `"one`) || runs() != 1 {
		t.Errorf("after an edit: %d runs; hover: %s", runs(), got)
	}
	next := strings.Replace(text, "echo one", "echo two", 1)
	c.change("terragrunt.hcl", next)
	if got := c.hoverText("terragrunt.hcl", "local."); strings.Contains(got, `"two`) || runs() != 1 {
		t.Errorf("an unsaved command: %d runs; hover: %s", runs(), got)
	}
	if err := os.WriteFile(filepath.Join(dir, "terragrunt.hcl"), []byte(next), 0o644); err != nil {
		t.Fatal(err)
	}
	c.notify("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": c.uri("terragrunt.hcl")}})
	if got := c.hoverText("terragrunt.hcl", "local."); !strings.Contains(got, `"two`) || runs() != 2 {
		t.Errorf("after the save: %d runs; hover: %s", runs(), got)
	}
}

// A program that does not end is ended by the next edit.
func TestTrustCanceled(t *testing.T) {
	needPrograms(t)
	dir := unpack(t, "-- terragrunt.hcl --\nlocals {\n  x = run_cmd(\"sh\", \"-c\", \"touch STARTED; exec sleep 100\")\n}\ninputs = {\n  x = local.x\n}\n-- main.tf --\nvariable \"x\" {}\n")
	c := startWith(t, dir, nil, map[string]any{"trust": true}, nil)
	c.open("terragrunt.hcl")
	for deadline := time.Now().Add(20 * time.Second); len(left(t, dir)) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the program does not start")
		}
	}
	at := time.Now()
	c.change("terragrunt.hcl", "inputs = {}\n")
	c.diagnostics("terragrunt.hcl")
	if took := time.Since(at); took > 20*time.Second {
		t.Errorf("the answer after the edit took %s", took)
	}
}
