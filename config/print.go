package config

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/source"
)

// PrintOptions says how to write a module.
type PrintOptions struct {
	Origins bool // tell with each argument and block where it was set, and what it replaced
	JSON    bool // JSON syntax

	// Hide leaves out what may be secret: the arguments of backend, cloud and encryption
	// blocks, and the credentials in addresses.
	Hide bool

	// Addr names one object only: TYPE.NAME, data.TYPE.NAME, ephemeral.TYPE.NAME,
	// var.NAME, local.NAME, module.NAME, provider.NAME[.ALIAS], check.NAME or
	// output.NAME; or all blocks of a kind that have no name: terraform, language,
	// locals, moved, removed, import. Instance keys mean nothing here: all instances
	// of an object have the same configuration.
	Addr string
}

// Print writes the module, with its override files merged in, as configuration
// that could replace the files of the folder.
//
// In JSON syntax that is one object, which can be saved as a .tf.json file. In
// native syntax it is text for a .tf file; but a JSON property that a provider's
// schema alone could tell to be an argument or a block stays in JSON. The blocks
// that have one follow in a second part, and each part has a heading line,
// "-- main.tf --" and "-- main.tf.json --", in the manner of a txtar archive.
//
// With Origins each argument and each block tells its file and line, and what it
// replaced: in a comment in native syntax, under the comment property "//" of
// its block in JSON:
//
//	"//": {
//	  "block": [PLACE, ...],         the blocks that it was merged from, base first
//	  "overrides": [PLACE, ...],     what it took the place of, the nearest first
//	  "arguments": {"NAME": {PLACE and "overrides"}, ...}
//	}
//
// where PLACE is {"file", "line", "column", "layer"} and layer is "base" or
// "override n".
//
// Print returns an error for an address that the module does not define, and
// the errors of w. A module with errors is printed as far as it was understood.
func (m *Module) Print(w io.Writer, o PrintOptions) error {
	native, js, err := m.render(o)
	if err != nil {
		return err
	}
	text := native
	switch {
	case o.JSON:
		text = js
	case js != "" && native != "":
		text = "-- main.tf --\n" + native + "-- main.tf.json --\n" + js
	case js != "":
		text = "-- main.tf.json --\n" + js
	}
	if o.Hide {
		text = source.HideCredentials(text)
	}
	_, err = io.WriteString(w, text)
	return err
}

// render returns the native and the JSON part of the output.
func (m *Module) render(o PrintOptions) (native, js string, err error) {
	p := m.printer(o.Origins)
	blocks := p.blocks()
	if o.Hide {
		for _, b := range blocks {
			b.hideBackends()
		}
	}
	if o.Addr != "" {
		want := withoutKeys(o.Addr)
		blocks = slices.DeleteFunc(blocks, func(b *outBlock) bool { return !b.keep(want) })
		if len(blocks) == 0 {
			return "", "", fmt.Errorf("this module defines no %s", o.Addr)
		}
	}
	var text strings.Builder
	var rest []*outBlock
	for _, b := range blocks {
		if o.JSON || b.body.ambiguous(p) {
			rest = append(rest, b)
			continue
		}
		if text.Len() > 0 {
			text.WriteByte('\n')
		}
		p.writeNative(&text, b)
	}
	if len(rest) > 0 || o.JSON {
		js = p.writeJSON(rest)
	}
	return string(hclwrite.Format([]byte(text.String()))), js, nil
}

// withoutKeys is an address as outBlock.addr has it: without instance keys, and
// without the optional word in front of a managed resource.
func withoutKeys(address string) string {
	t, diags := hclsyntax.ParseTraversalAbs([]byte(address), "", hcl.InitialPos)
	if diags.HasErrors() {
		return address
	}
	names := []string{t.RootName()}
	for _, s := range t[1:] {
		if a, ok := s.(hcl.TraverseAttr); ok {
			names = append(names, a.Name)
		}
	}
	if len(names) == 3 && names[0] == "resource" {
		names = names[1:]
	}
	return strings.Join(names, ".")
}

// printer writes one module.
type printer struct {
	m       *Module // as far as collected
	c       *collector
	origins bool
}

// printer reads the text again, so that a module need not keep what only
// writing needs.
func (m *Module) printer(origins bool) *printer {
	names := make([]string, len(m.Files))
	for i, f := range m.Files {
		names[i] = f.name
	}
	read := func(name string) ([]byte, error) {
		if f := m.Set.File(filepath.Join(m.Dir, name)); f != nil {
			return f.Bytes, nil
		}
		return nil, nil
	}
	c := collect(m.Dir, names, read, Options{}.withDefaults())
	return &printer{m: c.m, c: c, origins: origins}
}

// outBlock is a block to be written.
type outBlock struct {
	typ    string
	labels []string
	body   *outBody
	heads  []source.Range // of the blocks that it was merged from, base first
	gone   []Place        // what it took the place of, the nearest first
	addr   string         // what PrintOptions.Addr calls it
}

// hideBackends hides the arguments of those blocks in a terraform block that say where
// state lies and how it is sealed.
func (b *outBlock) hideBackends() {
	if b.typ != "terraform" {
		return
	}
	for _, it := range b.body.items {
		if it.block != nil && slices.Contains([]string{"backend", "cloud", "encryption"}, it.block.typ) {
			it.block.body.hide()
		}
	}
}

func (b *outBody) hide() {
	for i := range b.items {
		it := &b.items[i]
		if it.block != nil {
			it.block.body.hide()
			continue
		}
		it.native, it.json, it.raw = quotedTemplate(source.HiddenText), jsonString(source.HiddenText), false
	}
}

// outBody is the content of a block, in the order in which it is written.
type outBody struct {
	items []outItem
}

// outItem is an argument, a block, or a JSON property that may be either.
type outItem struct {
	set   *Setting
	form  form
	sure  bool // whether it is known to be an argument
	raw   bool // a JSON property
	clash bool // whether JSON would take it for one of the kind's own names
	block *outBlock
	gone  []Place // what an argument took the place of, where set does not tell

	native, json string // the text, where it is not that of set
	addr         string // for an item that can be asked for, as a local value
}

// keep reduces the block to what an address names and reports whether that is anything.
func (b *outBlock) keep(addr string) bool {
	switch {
	case b.addr == addr || b.typ == addr && b.addr == "":
		return true
	case b.typ == "check": // its data source is asked for by a name of its own
		return slices.ContainsFunc(b.body.items, func(it outItem) bool { return it.block != nil && it.block.addr == addr })
	case b.typ != "locals":
		return false
	}
	b.body.items = slices.DeleteFunc(b.body.items, func(it outItem) bool { return it.addr != addr })
	return len(b.body.items) > 0
}

// blocks returns the whole module.
func (p *printer) blocks() []*outBlock {
	var out []*outBlock
	out = append(out, p.terraform(&p.c.tf)...)
	objects := slices.Concat(p.c.objects, p.c.once)
	inCheck := map[string]*object{}
	for _, o := range objects {
		if o.check != "" {
			inCheck[o.check] = o
		}
	}
	for _, o := range inOrderOfKind(objects) {
		if o.check == "" {
			out = append(out, p.object(o, inCheck[o.key.a]))
		}
	}
	if len(p.m.Locals) > 0 {
		out = append(out, p.locals())
	}
	return out
}

// inOrderOfKind sorts objects by kind, in a usual order, and then by place.
func inOrderOfKind(objects []*object) []*object {
	kinds := []string{"provider", "variable", "module", "data", "ephemeral", "resource", "output", "check", "moved", "removed", "import"}
	out := slices.Clone(objects)
	slices.SortStableFunc(out, func(a, b *object) int {
		return cmp.Compare(slices.Index(kinds, a.key.kind), slices.Index(kinds, b.key.kind))
	})
	return out
}

// object builds one declared thing; data is that of a check block.
func (p *printer) object(o, data *object) *outBlock {
	k, labels := kindOf(o.key.kind), o.parts[0].labels
	b := &outBlock{typ: o.key.kind, labels: labels, addr: o.key.address()}
	for _, part := range o.parts {
		b.heads = append(b.heads, part.head)
	}
	c, _ := k.merge(o.parts)
	b.body = p.content(c, o.key.kind == "module")
	if o.key.kind == "check" && data != nil {
		b.body.items = slices.DeleteFunc(b.body.items, func(it outItem) bool { return it.block != nil && it.block.typ == "data" })
		b.body.items = slices.Insert(b.body.items, 0, outItem{block: p.object(data, nil)})
	}
	return b
}

// address is what PrintOptions.Addr calls an object.
func (k objectKey) address() string {
	switch k.kind {
	case "resource", "data", "ephemeral":
		return k.resource().String()
	case "variable":
		return "var." + k.a
	case "provider":
		return "provider." + ProviderRef{Name: k.a, Alias: k.b}.String()
	case "moved", "removed", "import":
		return ""
	}
	return k.kind + "." + k.a
}

func kindOf(name string) *kind {
	k := kinds()
	switch name {
	case "resource":
		return k.resource
	case "data":
		return k.data
	case "ephemeral":
		return k.ephemeral
	case "module":
		return k.module
	case "provider":
		return k.provider
	case "variable":
		return k.variable
	case "output":
		return k.output
	case "moved":
		return k.moved
	case "removed":
		return k.removed
	case "import":
		return k.imports
	default:
		return k.check
	}
}

// locals builds one block of all local values.
func (p *printer) locals() *outBlock {
	b := &outBlock{typ: "locals", body: &outBody{}}
	rank := map[string]int{}
	for i, f := range p.m.Files {
		rank[f.Path] = i
	}
	locals := make([]*Local, 0, len(p.m.Locals))
	for _, l := range p.m.Locals {
		locals = append(locals, l)
	}
	slices.SortFunc(locals, func(a, b *Local) int {
		return cmp.Or(cmp.Compare(rank[a.At.Filename], rank[b.At.Filename]), cmp.Compare(a.At.Start.Byte, b.At.Start.Byte))
	})
	for _, l := range locals {
		b.body.items = append(b.body.items, outItem{set: l.Value, sure: true, addr: "local." + l.Name})
	}
	return b
}
