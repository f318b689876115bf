package unit

import (
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// stackConfig is a stack file as an object.
type stackConfig struct{ e *ev }

func (n *stackConfig) open(*calc) node             { return n }
func (n *stackConfig) value(c *calc) cty.Value     { return objectOf(c, n) }
func (n *stackConfig) where() (*ev, *source.Range) { return n.e, nil }

func (n *stackConfig) keys(*calc) ([]string, bool) {
	var names []string
	root := n.e.f.root
	if root.first("locals") != nil {
		names = append(names, "local")
	}
	for _, k := range [...]string{"stack", "unit"} {
		if root.first(k) != nil {
			names = append(names, k)
		}
	}
	return names, true
}

func (n *stackConfig) child(_ *calc, key string) node {
	switch key {
	case "local":
		if n.e.f.root.first("locals") != nil {
			return &plainNode{&locals{n.e}}
		}
	case "unit", "stack":
		bs := n.e.f.root.of(key)
		if len(bs) == 0 {
			return nil
		}
		g := newGroup(n.e, nil)
		for _, b := range bs {
			item := newGroup(n.e, &b.at)
			item.put("name", valueNode{cty.StringVal(b.label), n.e, &b.at})
			for _, a := range b.attrs {
				item.put(a.name, &xprNode{e: n.e, x: a.x, at: &a.at})
			}
			g.put(b.label, &plainNode{item})
		}
		return g
	}
	return nil
}

func (c *calc) stackNode(e *ev, kind string) node { return nil }
