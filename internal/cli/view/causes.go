package view

import (
	"strconv"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/plan"
)

// setCauses sets the causes of a change in its tree of nodes. The elements of a list have none,
// since the tree does not contain their indexes.
func (n *node) setCauses(causes []plan.Cause) {
	if len(causes) == 0 {
		return
	}
	texts := make(map[string]string, len(causes))
	for _, c := range causes {
		text := "not set in the configuration"
		if c.File != "" {
			text = c.File + ":" + strconv.Itoa(c.Line)
		}
		texts[value.PathString(c.Path)] = text
	}
	n.causesIn(texts, "")
}

func (n *node) causesIn(texts map[string]string, path string) {
	set := func(k *node, path string) {
		if k.op != same {
			k.cause = texts[path]
		}
		k.causesIn(texts, path)
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
			case texts[at] != "":
			case k.name != "":
				at += "[" + value.Quote(k.name) + "]"
			case !g.single:
				at += "[" + strconv.Itoa(i) + "]"
			}
			set(k.node, at)
		}
	}
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
