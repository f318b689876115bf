package view

import (
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/plan"
)

// setCauses sets the causes of a change in its tree of nodes. A list has the causes of all of its
// elements, since the tree does not contain their indexes.
func (n *node) setCauses(causes []plan.Cause) {
	if len(causes) == 0 {
		return
	}
	t := causeTexts{exact: make(map[string]string, len(causes)), below: map[string][]string{}}
	for _, c := range causes {
		text := "not set in the configuration"
		if c.File != "" {
			text = c.File + ":" + strconv.Itoa(c.Line)
		}
		t.exact[value.PathString(c.Path)] = text
		for i := 1; i < len(c.Path); i++ {
			above := value.PathString(c.Path[:i])
			if all := t.below[above]; len(all) <= mostCauses && !slices.Contains(all, text) {
				t.below[above] = append(all, text)
			}
		}
	}
	n.causesIn(t, "")
}

// causeTexts contains the texts of causes by path.
type causeTexts struct {
	exact map[string]string
	below map[string][]string // different causes of the parts of a value: mostCauses and one more
}

// mostCauses is the largest number of causes in one line.
const mostCauses = 3

func (n *node) causesIn(t causeTexts, path string) {
	set := func(k *node, path string) {
		switch {
		case k.op == same:
		case t.exact[path] != "":
			k.cause = t.exact[path]
		case k.kind != blockBody && k.kind != object && k.kind != mapping:
			k.cause = t.list(path)
		}
		k.causesIn(t, path)
	}
	for _, k := range n.children {
		switch n.kind {
		case blockBody, object:
			set(k.node, path+"."+k.name)
		case mapping:
			set(k.node, path+"["+value.Quote(k.name)+"]")
		}
	}
	for _, g := range n.groups {
		for i, k := range g.children {
			at := path + "." + g.name
			switch {
			case t.exact[at] != "":
			case k.name != "":
				at += "[" + value.Quote(k.name) + "]"
			case !g.single:
				at += "[" + strconv.Itoa(i) + "]"
			}
			set(k.node, at)
		}
	}
}

// list returns the causes of the parts of the value at a path, in one line.
func (t causeTexts) list(path string) string {
	all := t.below[path]
	if len(all) > mostCauses {
		return strings.Join(all[:mostCauses], ", ") + ", …"
	}
	return strings.Join(all, ", ")
}

// cause writes the line above a part that names the place of its new value.
func (p *printer) cause(n *node, indent int) {
	if n.cause == "" {
		return
	}
	p.indent(indent)
	p.dressed(gray, "  # "+n.cause)
	p.str("\n")
}
