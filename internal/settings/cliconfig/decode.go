package cliconfig

import (
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

const summary = "Invalid CLI configuration"

// A block is an object with labels.
type block struct {
	labels []string
	items  []item
	at     source.Range
}

// blocks returns the objects with a name and n labels. They may be written as blocks, as nested
// objects, or as arrays of objects.
func blocks(items []item, name string, n int) ([]block, diag.List) {
	var out []block
	var ds diag.List
	for _, it := range items {
		if it.keys[0] != name {
			continue
		}
		bs, more := unfold(it.keys[1:], it.value, it.at, name, n)
		out = append(out, bs...)
		ds = append(ds, more...)
	}
	return out, ds
}

func unfold(labels []string, v *node, at source.Range, name string, n int) ([]block, diag.List) {
	var out []block
	var ds diag.List
	switch {
	case v.kind == listNode:
		for _, e := range v.list {
			bs, more := unfold(labels, e, at, name, n)
			out = append(out, bs...)
			ds = append(ds, more...)
		}
		return out, ds
	case v.kind != objectNode:
		return nil, diag.Errorf(diag.CodeCLIConfiguration, &at, summary, "%q must be a block, not a single value.", name)
	case len(labels) > n:
		return nil, diag.Errorf(diag.CodeCLIConfiguration, &at, summary, "A %q block has %s.", name, labelCount(n))
	case len(labels) == n:
		return []block{{labels: labels, items: v.items, at: at}}, nil
	}
	for _, it := range v.items {
		if it.value.kind != objectNode && it.value.kind != listNode {
			return nil, diag.Errorf(diag.CodeCLIConfiguration, &at, summary, "A %q block has %s.", name, labelCount(n))
		}
		bs, more := unfold(append(append([]string(nil), labels...), it.keys...), it.value, it.at, name, n)
		out = append(out, bs...)
		ds = append(ds, more...)
	}
	return out, ds
}

func labelCount(n int) string {
	switch n {
	case 0:
		return "no labels"
	case 1:
		return "exactly one label"
	default:
		return strconv.Itoa(n) + " labels"
	}
}

// attrs contains the settings of a block, and collects errors in them.
type attrs struct {
	of string
	m  map[string]*node
	ds diag.List
}

// settings reads a block that may contain settings with the given names. Others are warnings,
// since the file may be written for another program too. Without names, all are allowed.
func settings(of string, items []item, names ...string) *attrs {
	a := &attrs{of: of, m: make(map[string]*node)}
	for _, it := range items {
		known := len(names) == 0
		for _, n := range names {
			known = known || n == it.keys[0]
		}
		if !known {
			a.ds = append(a.ds, diag.Warnf(diag.CodeCLIConfiguration, &it.at, summary, "A %q block has no setting named %q, so it is ignored; it may hold %s.", of, it.keys[0], strings.Join(names, ", "))...)
			continue
		}
		a.m[it.keys[0]] = it.value
	}
	return a
}

func (a *attrs) bad(n *node, name, want string) {
	a.ds = append(a.ds, diag.Errorf(diag.CodeCLIConfiguration, &n.at, summary, "The setting %q must be %s.", name, want)...)
}

func (a *attrs) has(name string) bool { return a.m[name] != nil }

// str returns a string setting, or "" if it is missing.
func (a *attrs) str(name string) string {
	n := a.m[name]
	if n == nil {
		return ""
	}
	if n.kind == listNode || n.kind == objectNode {
		a.bad(n, name, "a string")
		return ""
	}
	return n.text
}

func (a *attrs) boolean(name string) bool {
	n := a.m[name]
	if n == nil {
		return false
	}
	v, err := strconv.ParseBool(n.text)
	if err != nil || n.kind > boolNode {
		a.bad(n, name, "true or false")
	}
	return v
}

// number returns a non-negative integer. It returns unset if the setting is missing or negative.
func (a *attrs) number(name string, unset int) int {
	n := a.m[name]
	if n == nil {
		return unset
	}
	v, err := strconv.ParseInt(n.text, 10, 32)
	if err != nil || n.kind > boolNode {
		a.bad(n, name, "a whole number")
		return unset
	}
	if v < 0 {
		return unset
	}
	return int(v)
}

func (a *attrs) list(name string) []string {
	n := a.m[name]
	if n == nil {
		return nil
	}
	if n.kind != listNode {
		a.bad(n, name, "a list of strings")
		return nil
	}
	out := []string{}
	for _, e := range n.list {
		if e.kind > boolNode {
			a.bad(e, name, "a list of strings")
			continue
		}
		out = append(out, e.text)
	}
	return out
}

// plain converts a node to plain Go values, as JSON decoding does.
func plain(n *node) any {
	switch n.kind {
	case boolNode:
		return n.text == "true"
	case numberNode:
		f, err := strconv.ParseFloat(n.text, 64)
		if err != nil {
			return n.text
		}
		return f
	case listNode:
		out := make([]any, 0, len(n.list))
		for _, e := range n.list {
			out = append(out, plain(e))
		}
		return out
	case objectNode:
		out := make(map[string]any)
		for _, it := range n.items {
			out[strings.Join(it.keys, ".")] = plain(it.value)
		}
		return out
	default:
		return n.text
	}
}
