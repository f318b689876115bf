package lint

import "testing"

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
