package inspect

import (
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
)

// A node is one line of a tree.
type node struct {
	name     string
	children []*node
	by       map[string]*node // children of a directory, by name
}

// treeText draws units as a tree of their directories or, with dag, of their dependencies. A
// unit is below each of its dependencies. The children of a unit are drawn at its first
// occurrence only.
func treeText(list []estate.Entry, dag bool) string {
	root := &node{name: ".", by: map[string]*node{}}
	if dag {
		root.children = needTree(list)
	} else {
		folderTree(root, list)
	}
	var b strings.Builder
	b.WriteString(root.name + "\n")
	root.write(&b, "")
	return b.String()
}

func (t *node) write(b *strings.Builder, indent string) {
	for i, s := range t.children {
		turn, below := view.Branch(i == len(t.children)-1)
		turn = strings.Replace(turn, "└", "╰", 1) // as Terragrunt draws it
		b.WriteString(indent + turn + s.name + "\n")
		s.write(b, indent+below)
	}
}

func folderTree(root *node, list []estate.Entry) {
	for _, x := range list {
		at := root
		for part := range strings.SplitSeq(x.Name, "/") {
			sub := at.by[part]
			if sub == nil {
				sub = &node{name: part, by: map[string]*node{}}
				at.children, at.by[part] = append(at.children, sub), sub
			}
			at = sub
		}
	}
}

func needTree(list []estate.Entry) []*node {
	in := map[*estate.Unit]bool{}
	for _, x := range list {
		in[x.Unit] = true
	}
	drawn := map[*estate.Unit]bool{}
	var draw func(u *estate.Unit) *node
	draw = func(u *estate.Unit) *node {
		t := &node{name: u.Name}
		if drawn[u] {
			return t
		}
		drawn[u] = true
		for _, n := range u.NeededBy {
			if in[n] {
				t.children = append(t.children, draw(n))
			}
		}
		return t
	}
	var out []*node
	for _, x := range list {
		switch {
		case x.Unit == nil:
			out = append(out, &node{name: x.Name})
		case !slices.ContainsFunc(x.Unit.Needs, func(n *estate.Unit) bool { return in[n] }):
			out = append(out, draw(x.Unit))
		}
	}
	for _, x := range list { // units in a cycle have no first unit
		if x.Unit != nil && !drawn[x.Unit] {
			out = append(out, draw(x.Unit))
		}
	}
	return out
}
