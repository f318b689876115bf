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

// PrintOptions configures Print.
type PrintOptions struct {
	Origins bool // add to each argument and block where it was set and what it replaced
	JSON    bool // write JSON syntax

	// Hide omits arguments that may be secret: those of backend, cloud and encryption blocks,
	// and credentials in addresses.
	Hide bool

	// Addr selects one object: TYPE.NAME, data.TYPE.NAME, ephemeral.TYPE.NAME, var.NAME,
	// local.NAME, module.NAME, provider.NAME[.ALIAS], check.NAME or output.NAME. It can also
	// select all blocks of a kind without names: terraform, language, locals, moved, removed,
	// import. Instance keys are ignored, because all instances of an object have the same
	// configuration.
	Addr string
}

// Print writes the module with merged override files as configuration that could replace the
// files of the directory.
//
// In JSON syntax the output is one object, which can be saved as a .tf.json file. In native
// syntax it is the text of a .tf file. However, only a provider's schema can distinguish
// whether some JSON properties are arguments or blocks; they remain in JSON. Blocks with such
// properties are in a second part. Each part then has a heading, "-- main.tf --" and "--
// main.tf.json --", as in a txtar archive.
//
// With Origins each argument and each block has its file and line, and what it replaced: in a
// comment in native syntax, and in the comment property "//" of its block in JSON:
//
//	"//": {
//	  "block": [PLACE, ...],         the blocks that were merged, base first
//	  "overrides": [PLACE, ...],     what it replaced, nearest first
//	  "arguments": {"NAME": {PLACE and "overrides"}, ...}
//	}
//
// PLACE is {"file", "line", "column", "layer"}, where layer is "base" or "override n".
//
// Print returns an error if the module does not define the address, and the errors of w. A
// module with errors is printed as far as it could be decoded.
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

// render returns the native part and the JSON part of the output.
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

// withoutKeys converts an address to the form of outBlock.addr: without instance keys, and
// without the optional word resource before a managed resource.
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
	m       *Module // only the collected blocks
	c       *collector
	origins bool
}

// printer returns a printer for the module. It parses the text again, so that a module need not
// store information that is only needed for printing.
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
	heads  []source.Range // headers of the merged blocks, base first
	gone   []Overridden   // the blocks that it replaced, nearest first
	addr   string         // its address in PrintOptions.Addr
}

// hideBackends hides the arguments of blocks in a terraform block that configure where state is
// stored and how it is encrypted.
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

// outBody is the content of a block in output order.
type outBody struct {
	items []outItem
}

// outItem is an argument, a block, or a JSON property that may be either.
type outItem struct {
	set   *Setting
	form  form
	sure  bool // it is known to be an argument
	raw   bool // a JSON property
	clash bool // JSON syntax would confuse its name with one that the kind defines
	block *outBlock
	gone  []Overridden // the settings that an argument replaced, if set does not contain them

	native, json string // the text, if it differs from that of set
	addr         string // address of an item that can be selected, such as a local value
}

// keep removes everything from the block that an address does not select. It returns false if
// nothing remains.
func (b *outBlock) keep(addr string) bool {
	switch {
	case b.addr == addr || b.typ == addr && b.addr == "":
		return true
	case b.typ == "check": // its data source has its own address
		return slices.ContainsFunc(b.body.items, func(it outItem) bool { return it.block != nil && it.block.addr == addr })
	case b.typ != "locals":
		return false
	}
	b.body.items = slices.DeleteFunc(b.body.items, func(it outItem) bool { return it.addr != addr })
	return len(b.body.items) > 0
}

// blocks returns the blocks of the whole module.
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

// inOrderOfKind sorts objects by kind in the usual order, and then by source range.
func inOrderOfKind(objects []*object) []*object {
	kinds := []string{"provider", "variable", "module", "data", "ephemeral", "resource", "output", "check", "moved", "removed", "import"}
	out := slices.Clone(objects)
	slices.SortStableFunc(out, func(a, b *object) int {
		return cmp.Compare(slices.Index(kinds, a.key.kind), slices.Index(kinds, b.key.kind))
	})
	return out
}

// object builds one declared object. data is the data source of a check block.
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

// address returns the address of an object in PrintOptions.Addr.
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

// locals builds one block with all local values.
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
