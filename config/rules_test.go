package config

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"golang.org/x/tools/txtar"
)

// The conformance suite. Each archive in testdata/rules is one rule; its first line is the
// rule's text. The files of a case are in a directory with the case's name, together with the
// expectations:
//
//	# ERROR "text"  in a line of a file: an error there, whose text has that part
//	# WARNING "text", # NOTE "text"  the same for warnings and notes
//	CASE/messages    the same for files that cannot have comments: FILE:LINE: error: text
//	CASE/as-if/...   files without overrides that mean the same
//	CASE/files       the files of the directory with their roles, in load order
//	CASE/schema      the names that a provider knows (attr, required, block), to decode resources with
//	CASE/origin      lines "ADDRESS.ARGUMENT: origin"
type ruleCase struct {
	files, asIf  map[string][]byte
	special      map[string]string // messages, files, schema, origin
	expectations []expectation
}

type expectation struct {
	file string
	line int
	kind string // error, warning, note
	text string
}

func ruleFiles(t testing.TB) []string {
	names, err := filepath.Glob("testdata/rules/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no rules found", err)
	}
	return names
}

func TestRules(t *testing.T) {
	for _, name := range ruleFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			cases := ruleCases(t, text)
			if len(cases) == 0 {
				t.Fatal("no cases")
			}
			for _, c := range slices.Sorted(maps.Keys(cases)) {
				t.Run(c, func(t *testing.T) { cases[c].run(t) })
			}
		})
	}
}

var mark = regexp.MustCompile(`(ERROR|WARNING|NOTE) "([^"]*)"`)

func ruleCases(t *testing.T, text []byte) map[string]*ruleCase {
	out := map[string]*ruleCase{}
	for _, f := range txtar.Parse(text).Files {
		name, rest, ok := strings.Cut(f.Name, "/")
		if !ok {
			t.Fatalf("file %s belongs to no case", f.Name)
		}
		c := out[name]
		if c == nil {
			c = &ruleCase{files: map[string][]byte{}, asIf: map[string][]byte{}, special: map[string]string{}}
			out[name] = c
		}
		switch {
		case rest == "messages" || rest == "files" || rest == "schema" || rest == "origin":
			c.special[rest] = string(f.Data)
		case strings.HasPrefix(rest, "as-if/"):
			c.asIf[path.Base(rest)] = f.Data
		default:
			c.files[rest] = f.Data
			for i, line := range strings.Split(string(f.Data), "\n") {
				for _, m := range mark.FindAllStringSubmatch(line, -1) {
					c.expectations = append(c.expectations, expectation{rest, i + 1, strings.ToLower(m[1]), m[2]})
				}
			}
		}
	}
	for _, c := range out {
		for _, line := range strings.Split(strings.TrimSpace(c.special["messages"]), "\n") {
			if line == "" {
				continue
			}
			parts := strings.SplitN(line, ": ", 3)
			var e expectation
			if n, err := fmt.Sscanf(strings.Replace(parts[0], ":", " ", 1), "%s %d", &e.file, &e.line); n != 2 || len(parts) != 3 {
				t.Fatalf("message %q: %v", line, err)
			}
			e.kind, e.text = parts[1], parts[2]
			c.expectations = append(c.expectations, e)
		}
	}
	return out
}

func (c *ruleCase) run(t *testing.T) {
	m, ds := LoadFiles(".", c.files, Options{})
	if s := c.special["schema"]; s != "" {
		ds = append(ds, decodeAll(m, s)...)
	}
	c.checkMessages(t, ds)
	if want, ok := c.special["files"]; ok {
		if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(fileList(m))); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(c.special["origin"]), "\n") {
		if line != "" {
			checkOrigin(t, m, line)
		}
	}
	if ds.HasErrors() {
		return
	}
	roundTrip(t, m)
	if len(c.asIf) == 0 {
		return
	}
	want, ds := LoadFiles(".", c.asIf, Options{})
	if ds.HasErrors() {
		t.Fatalf("the as-if files have errors: %v", ds.Err())
	}
	if diff := cmp.Diff(meaning(t, want), meaning(t, m)); diff != "" {
		t.Errorf("the merged module is not as if it had been written so (-as-if +merged):\n%s", diff)
	}
}

// checkMessages compares messages with expectations in both directions.
func (c *ruleCase) checkMessages(t *testing.T, ds diag.List) {
	left := slices.Clone(c.expectations)
	met := func(kind, file string, line int, text string) bool {
		i := slices.IndexFunc(left, func(e expectation) bool {
			return e.kind == kind && e.file == file && e.line == line && strings.Contains(text, e.text)
		})
		if i >= 0 {
			left = slices.Delete(left, i, i+1)
		}
		return i >= 0
	}
	for _, d := range ds {
		if d.At == nil || !met(d.Severity.String(), d.At.Filename, d.At.Start.Line, d.Summary+": "+d.Detail) {
			t.Errorf("unexpected %s", report(d))
		}
		for _, n := range d.Notes {
			if n.At != nil {
				met("note", n.At.Filename, n.At.Start.Line, n.Text)
			}
		}
	}
	for _, e := range left {
		t.Errorf("%s:%d: no %s with %q", e.file, e.line, e.kind, e.text)
	}
}

// decodeAll decodes the bodies of all resources with one schema.
func decodeAll(m *Module, lines string) (ds diag.List) {
	schema := &hcl.BodySchema{}
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		what, name, _ := strings.Cut(line, " ")
		if what == "block" {
			schema.Blocks = append(schema.Blocks, hcl.BlockHeaderSchema{Type: name})
		} else {
			schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: name, Required: what == "required"})
		}
	}
	for _, r := range m.Resources {
		_, diags := r.Body.Content(schema)
		ds = append(ds, diag.FromHCL(diags)...)
	}
	return ds
}

func fileList(m *Module) string {
	var b strings.Builder
	for _, f := range m.Files {
		fmt.Fprintf(&b, "%s ", f.Path)
		switch f.Role {
		case RoleBase:
			b.WriteString("base\n")
		case RoleOverride:
			fmt.Fprintf(&b, "override %d\n", f.N)
		case RoleShadowed:
			fmt.Fprintf(&b, "shadowed by %s\n", f.By)
		case RoleIgnored:
			fmt.Fprintf(&b, "ignored: %s\n", f.Why)
		case RoleTest:
			b.WriteString("test\n")
		}
	}
	return b.String()
}

func checkOrigin(t *testing.T, m *Module, line string) {
	t.Helper()
	what, want, _ := strings.Cut(line, ": ")
	address, arg := what, ""
	if i := strings.LastIndex(what, "."); i > 0 {
		address, arg = what[:i], what[i+1:]
	}
	p := m.printer(true)
	for _, b := range p.blocks() {
		if !b.keep(address) {
			continue
		}
		for _, it := range b.body.items {
			if it.block == nil && it.set.Name == arg {
				if got := p.origin(it); got != want {
					t.Errorf("the origin of %s is %q, want %q", what, got, want)
				}
				return
			}
		}
	}
	t.Errorf("there is no %s", what)
}

// meaning returns the content of a module without positions.
func meaning(t testing.TB, m *Module) map[string]any {
	t.Helper()
	out := unordered(t, printed(t, m, PrintOptions{JSON: true}))
	for name, v := range m.Variables {
		out["decoded var."+name] = fmt.Sprintf("%#v %#v literal=%t sensitive=%t ephemeral=%t nullable=%t %q %q", v.Type, v.Default, v.Literal, v.Sensitive, v.Ephemeral, v.Nullable, v.Description, v.Deprecated)
	}
	for name, rp := range m.RequiredProviders {
		out["decoded provider "+name] = rp.Source.String()
	}
	for _, r := range m.Resources {
		l := r.Lifecycle
		out["decoded "+r.Addr.String()] = fmt.Sprintf("%d ignored, all=%t, %d triggers, %d provisioners, connection=%t, provider=%s",
			len(l.IgnoreChanges), l.IgnoreAll, len(l.ReplaceTriggeredBy), len(r.Provisioners), r.Connection != nil, r.LocalProvider())
	}
	return out
}

// TestRulesTable checks that the table in the documentation and the suite contain the same
// rules in the same words.
func TestRulesTable(t *testing.T) {
	doc, err := os.ReadFile("../docs/override-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	inDoc := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| (.*) \\|$").FindAllStringSubmatch(string(doc), -1) {
		if inDoc[m[1]] != "" {
			t.Errorf("the table names %s twice", m[1])
		}
		inDoc[m[1]] = m[2]
	}
	inSuite := map[string]string{}
	for _, name := range ruleFiles(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		inSuite[strings.TrimSuffix(filepath.Base(name), ".txtar")] = first
	}
	if diff := cmp.Diff(inSuite, inDoc); diff != "" {
		t.Errorf("docs/override-rules.md and testdata/rules differ (-suite +table):\n%s", diff)
	}
}
