package server

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

func indexOf(path string, text []byte) *index.File { return index.Of(path, text) }

// After random edits, a server gives the same answers as one that was started with the result.
func TestRandomEdits(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 1
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		dir := unpack(t, moduleFiles+unitFiles)
		c := start(t, dir, nil)
		names := []string{"main.tf", "web_override.tf", "m/main.tf", "root.hcl", "app/terragrunt.hcl", "modules/app/main.tf"}
		texts, before := map[string]string{}, map[string][]string{}
		for _, name := range names {
			texts[name] = c.open(name)
		}
		for step := range 40 {
			name := names[r.IntN(len(names))]
			text := []byte(texts[name])
			before[name] = append(before[name], string(text))
			switch r.IntN(6) {
			case 0: // undo
				past := before[name]
				texts[name] = past[r.IntN(len(past))]
				c.change(name, texts[name])
			case 1: // save
				if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
					t.Fatal(err)
				}
				c.notify("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}})
			default: // insert, delete or replace, as the change of a range
				x := document.New(text)
				from := r.IntN(len(text) + 1)
				to := min(from+r.IntN(12)*r.IntN(2), len(text))
				insert := []string{"", "x", "\n", "variable \"y\" {}\n", "${", "}", "local.name", "\"", "é😀", " = 1\n"}[r.IntN(10)]
				at := x.Range(from, to, document.UTF16)
				from, to = x.Offset(at.Start, document.UTF16), x.Offset(at.End, document.UTF16) // not inside a character
				texts[name] = string(text[:from]) + insert + string(text[to:])
				c.versions[name]++
				c.notify("textDocument/didChange", map[string]any{
					"textDocument": map[string]any{"uri": c.uri(name), "version": c.versions[name]}, "contentChanges": []any{map[string]any{"range": at, "text": insert}},
				})
			}
			if step%8 == 0 {
				c.diagnostics(names[r.IntN(len(names))])
			}
		}
		got := c.answers(names, texts)
		fresh := start(t, dir, nil)
		for _, name := range names {
			fresh.open(name)
			fresh.change(name, texts[name])
		}
		want := fresh.answers(names, texts)
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("seed %d: after the edits\n%s\na fresh server\n%s", seed, got[i], want[i])
			}
		}
	}
}

// answers returns the answers about all files.
func (c *client) answers(names []string, texts map[string]string) (out []string) {
	c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []any{}})
	for _, name := range names {
		doc := map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}
		out = append(out, name+" diagnostics "+strings.Join(c.diagnostics(name), "; "))
		for _, method := range []string{"documentSymbol", "foldingRange", "semanticTokens/full"} {
			var r any
			c.call("textDocument/"+method, doc, &r)
			out = append(out, name+" "+method+" "+asJSON(r))
		}
		text := []byte(texts[name])
		for i := 0; i < len(text); i += 17 {
			var locations []protocol.Location
			c.call("textDocument/definition", c.position(name, text, i), &locations)
			p := c.position(name, text, i)
			p["context"] = map[string]any{"includeDeclaration": true}
			var refs []protocol.Location
			c.call("textDocument/references", p, &refs)
			slices.SortFunc(locations, compareLocations)
			out = append(out, fmt.Sprintf("%s:%d %s %s", name, i, asJSON(locations), asJSON(refs)))
		}
	}
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], c.dir, "")
	}
	return out
}
