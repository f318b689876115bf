package view

import (
	"maps"
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
		switch {
		case k.op == same:
		case texts[path] != "":
			k.cause = texts[path]
		case k.kind != blockBody && k.kind != object && k.kind != mapping:
			k.cause = causesBelow(texts, path)
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

// causesBelow returns the different causes of the parts of a value.
func causesBelow(texts map[string]string, path string) string {
	found := map[string]bool{}
	for at, text := range texts {
		if strings.HasPrefix(at, path+".") || strings.HasPrefix(at, path+"[") {
			found[text] = true
		}
	}
	all := slices.Sorted(maps.Keys(found))
	if more := len(all) - mostCauses; more > 0 {
		all = append(all[:mostCauses], "and "+strconv.Itoa(more)+" more")
	}
	return strings.Join(all, ", ")
}

// mostCauses is the largest number of causes in one line.
const mostCauses = 3

// cause writes the line above a part that names the place of its new value.
func (p *printer) cause(n *node, indent int) {
	if n.cause == "" {
		return
	}
	p.indent(indent)
	p.dressed(gray, "  # "+n.cause)
	p.str("\n")
}
