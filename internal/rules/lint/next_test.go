package lint

import (
	"reflect"
	"testing"

	"github.com/terrace-iac/terrace/unit/syntax"
)

// The next linter reads only the files that have changed.
func TestNext(t *testing.T) {
	same, changed := File{Path: "/x/a.tf", Text: []byte("locals {}\n")}, File{Path: "/x/b.tf", Text: []byte("locals {}\n")}
	var l *Linter
	l = l.Next(nil, "/x")
	a, b := l.facts(same), l.facts(changed)
	for range 3 {
		changed.Text = append(changed.Text, "# more\n"...)
		l = l.Next(nil, "/x")
		if l.facts(same) != a {
			t.Error("a file that has not changed is read again")
		}
		if after := l.facts(changed); after == b {
			t.Error("a change is ignored")
		} else {
			b = after
		}
	}
	if l.earlier.Load().earlier.Load() != nil {
		t.Error("the facts of all changes stay in memory")
	}
}

// A file whose syntax tree was seen is not parsed again, and has the facts of a file that is read.
func TestSeen(t *testing.T) {
	f := File{Path: "/x/terragrunt.hcl", Text: []byte("locals {\n  a = \"${local.b}\"\n  db_password = \"hunter2hunter2\"\n}\ndependency \"d\" {\n  config_path = \"../d\" # terrace:ignore x\n}\n"), Unit: true}
	on, err := Select([]string{"all"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &Linter{On: on}
	parses := &syntax.Parses{Seen: l.Seen}
	parsed := parses.Parse(f.Path, f.Text, syntax.Language().Unit)
	seen, ok := l.files.Get(key(f))
	if parsed.Diags.HasErrors() || !ok || l.facts(f) != seen {
		t.Fatal(parsed.Diags, ok)
	}
	if want := read(f); !reflect.DeepEqual(seen, want) || len(seen.found) == 0 {
		t.Errorf("got %+v, want %+v", seen, want)
	}
	bad := f
	bad.Text = []byte("locals {")
	parses.Parse(bad.Path, bad.Text, syntax.Language().Unit)
	if _, ok := l.files.Get(key(bad)); ok {
		t.Error("a file with errors was seen")
	}
}
