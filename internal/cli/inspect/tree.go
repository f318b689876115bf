package inspect

import (
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
)

// A twig is one line of a tree.
type twig struct {
	name string
	subs []*twig
	by   map[string]*twig // subs of a folder, by name
}

// treeText draws units as a tree: of their folders, or of what needs what, where
// a unit stands below everything that it needs, and what needs it in turn is
// drawn at the first of these places.
func treeText(list []estate.Entry, dag bool) string {
	root := &twig{name: ".", by: map[string]*twig{}}
	if dag {
		root.subs = needTree(list)
	} else {
		folderTree(root, list)
	}
	var b strings.Builder
	b.WriteString(root.name + "\n")
	root.write(&b, "")
	return b.String()
}

func (t *twig) write(b *strings.Builder, indent string) {
	for i, s := range t.subs {
		turn, below := view.Branch(i == len(t.subs)-1)
		turn = strings.Replace(turn, "└", "╰", 1) // as Terragrunt draws it
		b.WriteString(indent + turn + s.name + "\n")
		s.write(b, indent+below)
	}
}

func folderTree(root *twig, list []estate.Entry) {
	for _, x := range list {
		at := root
		for part := range strings.SplitSeq(x.Name, "/") {
			sub := at.by[part]
			if sub == nil {
				sub = &twig{name: part, by: map[string]*twig{}}
				at.subs, at.by[part] = append(at.subs, sub), sub
			}
			at = sub
		}
	}
}

func needTree(list []estate.Entry) []*twig {
	in := map[*estate.Unit]bool{}
	for _, x := range list {
		in[x.Unit] = true
	}
	drawn := map[*estate.Unit]bool{}
	var draw func(u *estate.Unit) *twig
	draw = func(u *estate.Unit) *twig {
		t := &twig{name: u.Name}
		if drawn[u] {
			return t
		}
		drawn[u] = true
		for _, n := range u.NeededBy {
			if in[n] {
				t.subs = append(t.subs, draw(n))
			}
		}
		return t
	}
	var out []*twig
	for _, x := range list {
		switch {
		case x.Unit == nil:
			out = append(out, &twig{name: x.Name})
		case !slices.ContainsFunc(x.Unit.Needs, func(n *estate.Unit) bool { return in[n] }):
			out = append(out, draw(x.Unit))
		}
	}
	for _, x := range list { // cycles have no beginning
		if x.Unit != nil && !drawn[x.Unit] {
			out = append(out, draw(x.Unit))
		}
	}
	return out
}
