package server

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/unit"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// # Where the cursor is
//
// The text at the cursor usually has a syntax error, so that the blocks around the cursor are found in
// the tokens before it.

// enclosing is a block around the cursor.
type enclosing struct {
	typ    string
	labels []string
	object bool // the braces are those of an object
	start  int  // offset of the brace
}

// cursor describes the text before the cursor.
type cursor struct {
	blocks []enclosing // outermost first
	value  bool        // behind "=" in the line of an argument, or inside parentheses or brackets
	name   string      // the argument that gets the value
	text   string      // the unfinished reference or word before the cursor
	quoted bool        // inside a string, outside of an interpolation
	prefix string      // with quoted: the text of the string before the cursor
}

var unfinished = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_-]*(\[[^\[\]\s]*\]|\.[A-Za-z0-9_*-]*)*$`)
})

func cursorAt(text []byte, offset int) cursor {
	var c cursor
	before := text[:offset]
	tokens, _ := hclsyntax.LexConfig(before, "", hcl.InitialPos)
	var line []hclsyntax.Token // tokens of the current statement
	depth, interpolations := 0, 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenNewline, hclsyntax.TokenComment:
			if depth == 0 {
				line, c.value, c.name = nil, false, ""
			}
			continue
		case hclsyntax.TokenEOF:
			continue
		case hclsyntax.TokenOQuote:
			c.quoted, c.prefix = true, ""
		case hclsyntax.TokenQuotedLit:
			c.prefix += string(t.Bytes)
		case hclsyntax.TokenCQuote:
			c.quoted = false
		case hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			interpolations++
			c.quoted = false
		case hclsyntax.TokenTemplateSeqEnd:
			interpolations--
			c.quoted = true
		case hclsyntax.TokenOParen, hclsyntax.TokenOBrack:
			depth++
		case hclsyntax.TokenCParen, hclsyntax.TokenCBrack:
			depth = max(depth-1, 0)
		case hclsyntax.TokenComma:
			if depth == 0 && interpolations == 0 { // the next key of an object
				line, c.value, c.name = nil, false, ""
				continue
			}
		case hclsyntax.TokenEqual, hclsyntax.TokenColon:
			if !c.value && len(line) > 0 {
				c.value, c.name = true, strings.Trim(string(line[0].Bytes), `"`)
			}
		case hclsyntax.TokenOBrace:
			b := enclosing{object: c.value || depth > 0, start: t.Range.Start.Byte, typ: c.name}
			if !b.object && len(line) > 0 {
				b.typ = string(line[0].Bytes)
				for _, l := range line[1:] {
					if l.Type == hclsyntax.TokenQuotedLit || l.Type == hclsyntax.TokenIdent {
						b.labels = append(b.labels, string(l.Bytes))
					}
				}
			}
			c.blocks = append(c.blocks, b)
			line, c.value, c.name = nil, false, ""
			continue
		case hclsyntax.TokenCBrace:
			if len(c.blocks) > 0 {
				c.blocks = c.blocks[:len(c.blocks)-1]
			}
			line, c.value, c.name = nil, false, ""
			continue
		}
		line = append(line, t)
	}
	c.value = c.value || depth > 0 || interpolations > 0
	c.text = string(unfinished().Find(before[bytes.LastIndexByte(before, '\n')+1:])) // a reference has no line break
	return c
}

// block returns the innermost block that is not an object, with the blocks around it, or nil.
func (c *cursor) block() []enclosing {
	out := c.blocks
	for len(out) > 0 && out[len(out)-1].object {
		out = out[:len(out)-1]
	}
	return out
}

func (s *Server) completion(ctx context.Context, p *protocol.CompletionParams) (*protocol.CompletionList, error) {
	path, text, f, err := s.open(p.TextDocument)
	if err != nil {
		return nil, err
	}
	offset := text.Offset(p.Position, s.encoding)
	w := &completer{s: s, ctx: ctx, path: path, file: f, text: text, at: offset, cursor: cursorAt(text.Bytes, offset), snippets: s.client.TextDocument.Completion.CompletionItem.SnippetSupport}
	switch f.Kind {
	case index.Module:
		w.module()
	case index.Test:
		if index.IsJSON(path) {
			w.json()
		} else {
			w.test()
		}
	case index.JSON:
		w.json()
	case index.Unit, index.Stack:
		if index.IsJSON(path) {
			w.json()
		} else {
			w.unit()
		}
	case index.Values:
		if index.IsJSON(path) {
			w.json()
		} else if !w.cursor.value {
			w.variables(filepath.Dir(path))
		}
	}
	slices.SortStableFunc(w.items, func(a, b protocol.CompletionItem) int {
		return cmp.Or(strings.Compare(a.SortText, b.SortText), strings.Compare(a.Label, b.Label))
	})
	w.items = slices.CompactFunc(w.items, func(a, b protocol.CompletionItem) bool { return a.Label == b.Label })
	return &protocol.CompletionList{Items: append([]protocol.CompletionItem{}, w.items...)}, ctx.Err()
}

type completer struct {
	s        *Server
	ctx      context.Context
	path     string
	file     *index.File
	at       int // offset of the cursor
	text     *document.Text
	cursor   cursor
	snippets bool
	items    []protocol.CompletionItem
	types    *typer // nil until a type is needed
}

func (w *completer) add(label, detail string, kind protocol.CompletionItemKind, first bool) *protocol.CompletionItem {
	order := "1"
	if first {
		order = "0"
	}
	w.items = append(w.items, protocol.CompletionItem{Label: label, Detail: detail, Kind: kind, SortText: order + label})
	return &w.items[len(w.items)-1]
}

// target returns the directory or file to which a source or path of the document refers, or "".
func (w *completer) target(via string) string {
	if w.file.Last != nil && w.file.Paths[via] == "" {
		return w.s.target(w.ctx, w.file.Last, via)
	}
	return w.s.target(w.ctx, w.file, via)
}

// argument adds an argument, with " = " behind it.
func (w *completer) argument(name, detail, doc string, required bool) {
	i := w.add(name, detail, protocol.CompletionItemKindProperty, required)
	i.InsertText = name + " = "
	if doc != "" {
		i.Documentation = &protocol.MarkupContent{Kind: protocol.MarkupKindMarkdown, Value: doc}
	}
}

// blockItem adds a block with labels.
func (w *completer) blockItem(name, doc string, labels int, required bool) {
	i := w.add(name, "block", protocol.CompletionItemKindStruct, required)
	if doc != "" {
		i.Documentation = &protocol.MarkupContent{Kind: protocol.MarkupKindMarkdown, Value: doc}
	}
	if w.snippets {
		i.InsertTextFormat = protocol.InsertTextFormatSnippet
		i.InsertText = name
		for n := range labels {
			i.InsertText += ` "${` + string(rune('1'+n)) + `}"`
		}
		i.InsertText += " {\n  $0\n}"
	}
}

// moduleBlocks returns the blocks of a module file with the number of their labels.
func moduleBlocks() map[string]int {
	return map[string]int{"resource": 2, "data": 2, "ephemeral": 2, "module": 1, "variable": 1, "output": 1, "locals": 0, "provider": 1, "terraform": 0, "moved": 0, "removed": 0, "import": 0, "check": 1}
}

// languageArguments returns the arguments and blocks that the language defines in blocks of a type. A
// name with "{" is a block.
func languageArguments(block string) []string {
	switch block {
	case "resource":
		return []string{"count", "for_each", "provider", "depends_on", "lifecycle{", "connection{", "provisioner{"}
	case "data":
		return []string{"count", "for_each", "provider", "depends_on", "lifecycle{"}
	case "ephemeral":
		return []string{"count", "for_each", "provider", "depends_on", "lifecycle{"}
	case "module":
		return []string{"source", "version", "count", "for_each", "providers", "depends_on"}
	case "variable":
		return []string{"type", "default", "description", "sensitive", "nullable", "ephemeral", "deprecated", "validation{"}
	case "output":
		return []string{"type", "value", "description", "sensitive", "ephemeral", "depends_on", "deprecated", "precondition{"}
	case "lifecycle":
		return []string{"create_before_destroy", "prevent_destroy", "ignore_changes", "replace_triggered_by", "enabled", "precondition{", "postcondition{"}
	case "validation", "precondition", "postcondition", "assert":
		return []string{"condition", "error_message"}
	case "terraform":
		return []string{"required_version", "required_providers{", "backend{", "cloud{", "encryption{"}
	case "moved":
		return []string{"from", "to"}
	case "import":
		return []string{"to", "id", "for_each", "provider", "identity"}
	case "removed":
		return []string{"from", "lifecycle{"}
	case "provider":
		return []string{"alias", "for_each"}
	case "check":
		return []string{"assert{", "data{"}
	}
	return nil
}

func (w *completer) language(block string) {
	for _, name := range languageArguments(block) {
		if name, isBlock := strings.CutSuffix(name, "{"); isBlock {
			w.blockItem(name, "", 0, false)
		} else {
			w.argument(name, "", "", false)
		}
	}
}

func (w *completer) module() {
	c := &w.cursor
	dir := filepath.Dir(w.path)
	blocks := c.block()
	switch {
	case c.quoted && (c.name == "source" || c.name == "version") && w.inRequired():
		w.requiredProvider()
	case c.quoted && c.name == "source":
		w.paths(c.prefix)
		w.moduleSources()
	case c.quoted && c.name == "version" && len(blocks) == 1 && blocks[0].typ == "module":
		if in := w.installed(); in != nil {
			w.versions(in.ModuleVersions(w.sourceBeside()))
		}
	case c.quoted && len(blocks) == 0:
		w.labelTypes()
	case c.quoted:
	case c.value:
		w.references(dir)
	case len(c.blocks) == 0:
		for name, labels := range moduleBlocks() {
			w.blockItem(name, "", labels, false)
		}
	case c.blocks[len(c.blocks)-1].object:
	default:
		w.inBlock(dir, blocks)
	}
}

// inBlock adds the arguments and nested blocks of the innermost block that are not set yet.
func (w *completer) inBlock(dir string, blocks []enclosing) {
	outer, inner := blocks[0], blocks[len(blocks)-1]
	switch {
	case len(blocks) == 1 && outer.typ == "module" && len(outer.labels) == 1:
		if to := w.target("module." + outer.labels[0]); to != "" {
			w.variables(to)
		}
	case len(outer.labels) == 2 || outer.typ == "provider" && len(outer.labels) == 1:
		if b := w.schemaOf(dir, blocks); b != nil {
			w.schema(b)
		}
	}
	if len(blocks) == 1 || config.Defines(outer.typ, inner.typ) {
		w.language(inner.typ)
	}
}

// schemaOf returns the schema of the innermost block, or nil.
func (w *completer) schemaOf(dir string, blocks []enclosing) *schema.Block {
	m := w.s.Session.Module(w.ctx, dir)
	if m == nil {
		return nil
	}
	outer := blocks[0]
	var b *schema.Block
	if outer.typ == "provider" {
		if p := m.Schema(w.ctx, m.Config.Source(outer.labels[0])); p != nil {
			b = p.Config
		}
	} else if rs := m.Resource(w.ctx, modeOf(outer.typ), outer.labels[0], ""); rs != nil {
		b = rs.Block
	}
	for _, e := range blocks[1:] {
		if b == nil {
			return nil
		}
		if e.typ == "dynamic" && len(e.labels) == 1 || e.typ == "content" {
			continue
		}
		nested := b.Blocks[e.typ]
		if nested == nil {
			return nil
		}
		b = nested.Block
	}
	return b
}

func (w *completer) schema(b *schema.Block) {
	for name, a := range b.Attributes {
		if a.Required || a.Optional {
			detail := funcs.TypeString(a.Type)
			if a.Required {
				detail += ", required"
			}
			w.argument(name, detail, a.Description, a.Required)
		}
	}
	for name, n := range b.Blocks {
		w.blockItem(name, n.Description, 0, n.MinItems > 0)
	}
}

// variables adds the variables of the module in a directory.
func (w *completer) variables(dir string) {
	m := w.s.Session.Module(w.ctx, dir)
	if m == nil {
		return
	}
	for name, v := range m.Config.Variables {
		detail := funcs.TypeString(v.Type)
		if v.Default == cty.NilVal {
			detail += ", required"
		}
		w.argument(name, detail, v.Description, v.Default == cty.NilVal)
	}
}

// labelTypes adds the types of resources for the first label of a block.
func (w *completer) labelTypes() {
	line := string(w.text.Bytes[w.text.LineStart(w.text.Position(w.at, document.UTF8).Line):w.at])
	block, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	if strings.Count(line, `"`) == 1 {
		w.typesOf(block)
	}
}

// typesOf adds the types of resources that a block can declare.
func (w *completer) typesOf(block string) {
	if block != "resource" && block != "data" && block != "ephemeral" {
		return
	}
	m := w.s.Session.Module(w.ctx, filepath.Dir(w.path))
	if m == nil {
		return
	}
	names := map[string]bool{"terraform": true}
	for name := range m.Config.RequiredProviders {
		names[name] = true
	}
	for name := range m.Config.Providers {
		name, _, _ = strings.Cut(name, ".")
		names[name] = true
	}
	for name := range names {
		if p := m.Schema(w.ctx, m.Config.Source(name)); p != nil {
			for _, t := range p.Types[modeOf(block)] {
				w.add(t, name, protocol.CompletionItemKindClass, false)
			}
		}
	}
}

// paths adds the directories and files below the directory of an unfinished path.
func (w *completer) paths(prefix string) {
	if !strings.HasPrefix(prefix, ".") {
		w.add("./", "", protocol.CompletionItemKindFolder, true)
		w.add("../", "", protocol.CompletionItemKindFolder, true)
		return
	}
	dir := prefix[:strings.LastIndexByte(prefix, '/')+1]
	base := filepath.Dir(w.path)
	if w.file.Kind == index.Test {
		base = w.s.Session.Index.Tested(w.file)
	}
	entries, err := os.ReadDir(filepath.Join(base, dir))
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			w.add(e.Name(), "", protocol.CompletionItemKindFolder, false)
		} else if w.file.Kind == index.Unit && strings.HasSuffix(e.Name(), ".hcl") {
			w.add(e.Name(), "", protocol.CompletionItemKindFile, false)
		}
	}
}

// references adds what an unfinished reference may continue with.
func (w *completer) references(dir string) {
	steps := strings.Split(w.cursor.text, ".")
	root := steps[0]
	want := w.expected(dir)
	if len(steps) == 1 {
		w.functions(want)
		for _, r := range []string{"var", "local", "module", "data", "each", "count", "path", "terraform", "self"} {
			w.add(r, "", protocol.CompletionItemKindKeyword, false)
		}
		w.declared(workspace.Symbol{Scope: dir}, "")
		return
	}
	without := func(s string) string { name, _, _ := strings.Cut(s, "["); return name }
	switch root {
	case "var", "local":
		if len(steps) == 2 {
			w.declared(workspace.Symbol{Scope: dir}, root+".")
			w.rank(0, want, w.typeIn(dir, root))
		} else {
			w.attributes(w.typeIn(dir, root)(without(steps[1])), steps[2:len(steps)-1], want)
		}
	case "module":
		if len(steps) == 2 {
			w.declared(workspace.Symbol{Scope: dir}, "module.")
		} else if len(steps) == 3 {
			if to := w.target("module." + without(steps[1])); to != "" {
				w.declared(workspace.Symbol{Scope: to}, "output.")
				w.rank(0, want, func(name string) cty.Type { return w.typer().output(to, name) })
			}
		} else if to := w.target("module." + without(steps[1])); to != "" {
			w.attributes(w.typer().output(to, without(steps[2])), steps[3:len(steps)-1], want)
		}
	case "path":
		for _, n := range []string{"module", "root", "cwd"} {
			w.add(n, "", protocol.CompletionItemKindProperty, false)
		}
	case "each":
		w.add("key", "", protocol.CompletionItemKindProperty, false)
		w.add("value", "", protocol.CompletionItemKindProperty, false)
	case "count":
		w.add("index", "", protocol.CompletionItemKindProperty, false)
	case "terraform":
		w.add("workspace", "", protocol.CompletionItemKindProperty, false)
	default:
		mode, block := 0, "resource"
		if root == "data" || root == "ephemeral" {
			mode, block = 1, root
		}
		if len(steps) <= mode+2 {
			w.declared(workspace.Symbol{Scope: dir}, strings.Join(steps[:len(steps)-1], ".")+".")
			return
		}
		m := w.s.Session.Module(w.ctx, dir)
		if m == nil {
			return
		}
		if rs := m.Resource(w.ctx, modeOf(block), without(steps[mode]), ""); rs != nil {
			w.attributes(rs.Block.ImpliedType(), steps[mode+2:len(steps)-1], want)
		}
	}
}

// typeIn returns a function that returns the types of variables or local values of a module.
func (w *completer) typeIn(dir, root string) func(name string) cty.Type {
	m := w.s.Session.Module(w.ctx, dir)
	return func(name string) cty.Type {
		switch {
		case m == nil:
			return cty.DynamicPseudoType
		case root == "var":
			return variable(m, name)
		}
		return w.typer().local(m, name)
	}
}

// attributes adds the attributes of a type behind some steps, where the type want is expected.
func (w *completer) attributes(ty cty.Type, steps []string, want cty.Type) {
	for _, s := range steps {
		if ty.IsCollectionType() {
			ty = ty.ElementType()
		}
		name, _, indexed := strings.Cut(s, "[")
		if !ty.IsObjectType() || !ty.HasAttribute(name) {
			return
		}
		if ty = ty.AttributeType(name); indexed && ty.IsCollectionType() {
			ty = ty.ElementType()
		}
	}
	if ty.IsObjectType() {
		for name, of := range ty.AttributeTypes() {
			w.add(name, funcs.TypeString(of), protocol.CompletionItemKindProperty, false).SortText = fits(of, want) + name
		}
	}
}

// declared adds the next word of the names in a scope whose addresses begin with a prefix.
func (w *completer) declared(scope workspace.Symbol, prefix string) {
	files := []*index.File{w.file}
	if index.KindOf(scope.Scope) == index.Other {
		files = w.s.Session.Index.Dir(scope.Scope)
	} else if scope.Scope != w.path {
		files = []*index.File{w.s.Session.Index.File(scope.Scope)}
	}
	for _, f := range files {
		if f.Path != scope.Scope && (f.Kind == index.Unit || f.Kind == index.Stack || f.Kind == index.Rules || f.Kind == index.UnitValues) {
			continue // in the directory of a module, with names of its own
		}
		names := f.Names
		if f.Last != nil { // the text at the cursor is unfinished
			names = slices.Concat(names, f.Last.Names)
		}
		for i := range names {
			o := &names[i]
			rest, ok := strings.CutPrefix(o.Addr, prefix)
			if !ok || o.Role != index.Declares {
				continue
			}
			name, _, _ := strings.Cut(rest, ".")
			if prefix == "" && slices.Contains([]string{"var", "local", "output", "module", "provider", "check", "data", "ephemeral", "input", "dependency", "include", "import", "feature"}, name) {
				continue
			}
			w.add(name, filepath.Base(f.Path), protocol.CompletionItemKindVariable, false)
		}
	}
}

// functions adds the functions of the language. want is the expected type of the result.
func (w *completer) functions(want cty.Type) {
	for _, name := range slices.Sorted(maps.Keys(functionTable())) {
		if strings.Contains(name, "::") {
			continue
		}
		i := w.add(name, "function", protocol.CompletionItemKindFunction, false)
		i.InsertText = name + "("
		if fits(resultOf(name), want) == "2" {
			i.SortText = "2" + name
		}
	}
}

// resultOf returns the type that a function returns for arguments of unknown types.
func resultOf(name string) cty.Type {
	f := functionTable()[name]
	types := make([]cty.Type, len(f.Params()))
	for i := range types {
		types[i] = cty.DynamicPseudoType
	}
	ty, err := f.ReturnType(types)
	if err != nil {
		return cty.DynamicPseudoType
	}
	return ty
}

// unit adds the completions of a unit or stack file.
func (w *completer) unit() {
	c := &w.cursor
	switch {
	case c.quoted && (c.name == "config_path" || c.name == "path" || c.name == "source"):
		w.paths(c.prefix)
		if c.name == "source" {
			w.moduleSources()
		}
	case c.quoted:
	case c.value:
		w.unitReferences()
	default:
		w.unitNames(c.blocks)
	}
}

// unitNames adds the arguments and blocks inside blocks and objects of a unit or stack file.
func (w *completer) unitNames(blocks []enclosing) {
	spec := syntax.Language().Unit
	if w.file.Kind == index.Stack {
		spec = syntax.Language().Stack
	}
	for i, b := range blocks {
		if b.object {
			if i == len(blocks)-1 {
				w.unitKeys(blocks[:i], b.typ)
			}
			return
		}
		if spec = spec.Block(b.typ); spec == nil {
			return
		}
	}
	for i := range spec.Args {
		w.argument(spec.Args[i].Name, "", "", spec.Args[i].Required)
	}
	for _, b := range spec.Blocks {
		w.blockItem(b.Name, "", map[bool]int{true: 1}[b.Label == syntax.OneLabel], false)
	}
	if w.file.Kind == index.Unit && len(blocks) == 1 && blocks[0].typ == "module" && len(blocks[0].labels) == 1 { // of an environment file
		if to := w.target("module." + blocks[0].labels[0]); to != "" {
			w.variables(to)
		}
	}
}

// unitKeys adds the keys of an object in an argument of blocks.
func (w *completer) unitKeys(blocks []enclosing, argument string) {
	switch {
	case argument == "inputs" && len(blocks) == 0:
		if to := w.target("terraform"); to != "" {
			w.variables(to)
		} else if base := filepath.Base(w.path); base == unit.DefaultName || base == unit.DefaultJSONName {
			w.variables(filepath.Dir(w.path))
		}
	case len(blocks) != 1 || len(blocks[0].labels) != 1:
	case argument == "inputs" && blocks[0].typ == "module":
		if to := w.target("module." + blocks[0].labels[0]); to != "" {
			w.variables(to)
		}
	case argument == "mock_outputs" && blocks[0].typ == "dependency":
		w.outputsOf(w.target("dependency."+blocks[0].labels[0]), cty.NilType)
	case argument == "values" && w.file.Kind == index.Stack:
		to := w.target(blocks[0].typ + "." + blocks[0].labels[0])
		if to == "" {
			return
		}
		for _, f := range w.s.Session.Index.Dir(to) { // the names that the unit or stack uses
			for i := range f.Names {
				if name, ok := strings.CutPrefix(f.Names[i].Addr, "values."); ok {
					w.argument(name, filepath.Base(f.Path), "", false)
				}
			}
		}
	}
}

// outputsOf adds the outputs of the module of a unit file, where the type want is expected.
func (w *completer) outputsOf(path string, want cty.Type) {
	dir := w.s.moduleOfUnit(w.ctx, path)
	if dir == "" {
		return
	}
	w.declared(workspace.Symbol{Scope: dir}, "output.")
	w.rank(0, want, func(name string) cty.Type { return w.typer().output(dir, name) })
}

func (w *completer) unitReferences() {
	steps := strings.Split(w.cursor.text, ".")
	want := w.expected(filepath.Dir(w.path))
	if len(steps) == 1 {
		w.functions(want)
		for _, name := range syntax.ContextFunctions() {
			i := w.add(name, "function of unit files", protocol.CompletionItemKindFunction, false)
			i.InsertText = name + "("
		}
		roots := []string{"local", "dependency", "include", "import", "feature", "values"}
		if w.file.Kind == index.Stack {
			roots = []string{"local", "unit", "stack", "values"}
		}
		for _, r := range roots {
			w.add(r, "", protocol.CompletionItemKindKeyword, false)
		}
		return
	}
	if len(steps) == 2 {
		if steps[0] == "values" {
			w.givenValues()
		} else {
			w.declared(workspace.Symbol{Scope: w.path}, steps[0]+".")
			if steps[0] == "local" {
				in := w.typer().inUnit(w.path, w.file)
				w.rank(0, want, func(name string) cty.Type {
					w.typer()
					ty, _ := in(hcl.Traversal{hcl.TraverseRoot{Name: "local"}, hcl.TraverseAttr{Name: name}})
					return ty
				})
			}
		}
		return
	}
	via := steps[0] + "." + steps[1]
	switch {
	case len(steps) == 3 && steps[0] == "dependency":
		w.add("outputs", "", protocol.CompletionItemKindProperty, false)
	case len(steps) == 3 && (steps[0] == "include" || steps[0] == "import"):
		w.add("locals", "", protocol.CompletionItemKindProperty, false)
		w.add("inputs", "", protocol.CompletionItemKindProperty, false)
	case len(steps) == 3 && steps[0] == "local" && strings.HasSuffix(w.target(via), ".hcl"): // read_terragrunt_config
		w.add("locals", "", protocol.CompletionItemKindProperty, false)
		w.add("inputs", "", protocol.CompletionItemKindProperty, false)
	case len(steps) == 3 && (steps[0] == "unit" || steps[0] == "stack"):
		w.add("path", "", protocol.CompletionItemKindProperty, false)
	case len(steps) == 4 && steps[0] == "dependency" && steps[2] == "outputs":
		w.outputsOf(w.target(via), want)
	case len(steps) == 4:
		if to := w.target(via); to != "" {
			w.declared(workspace.Symbol{Scope: to}, strings.TrimSuffix(steps[2], "s")+".")
		}
	}
}

// givenValues adds the names of the values file next to the document, and those that stacks give to the
// unit or stack.
func (w *completer) givenValues() {
	scope := filepath.Join(filepath.Dir(w.path), unit.ValuesName)
	w.declared(workspace.Symbol{Scope: scope}, "values.")
	users, err := w.s.Session.Index.Users(w.ctx, filepath.Dir(w.path))
	if err != nil {
		return
	}
	for _, path := range users {
		f := w.s.Session.Index.File(path)
		for i := range f.Names {
			o := &f.Names[i]
			if sym, ok := w.s.Session.Index.Resolve(f, o); ok && sym.Scope == scope && o.Role == index.Sets {
				w.add(strings.TrimPrefix(o.Addr, "values."), filepath.Base(path), protocol.CompletionItemKindVariable, false)
			}
		}
	}
}

// signature describes the function around the cursor.
func (s *Server) signature(_ context.Context, p *protocol.SignatureHelpParams) (*protocol.SignatureHelp, error) {
	path, text, _, err := s.open(p.TextDocument)
	if err != nil {
		return nil, err
	}
	before := text.Bytes[:text.Offset(p.Position, s.encoding)]
	tokens, _ := hclsyntax.LexConfig(before, "", hcl.InitialPos)
	type call struct {
		name string
		args int
	}
	var open []call
	for i, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOParen, hclsyntax.TokenOBrack, hclsyntax.TokenOBrace:
			c := call{}
			if t.Type == hclsyntax.TokenOParen && i > 0 && tokens[i-1].Type == hclsyntax.TokenIdent {
				c.name = string(tokens[i-1].Bytes)
			}
			open = append(open, c)
		case hclsyntax.TokenCParen, hclsyntax.TokenCBrack, hclsyntax.TokenCBrace:
			open = open[:max(len(open)-1, 0)]
		case hclsyntax.TokenComma:
			if len(open) > 0 {
				open[len(open)-1].args++
			}
		}
	}
	for i := len(open) - 1; i >= 0; i-- {
		label, params, doc := s.signatureIn(path, open[i].name)
		if label == "" {
			continue
		}
		sig := protocol.SignatureInformation{Label: label, Documentation: &protocol.MarkupContent{Kind: protocol.MarkupKindMarkdown, Value: doc}}
		for _, of := range params {
			sig.Parameters = append(sig.Parameters, protocol.ParameterInformation{Label: of})
		}
		return &protocol.SignatureHelp{Signatures: []protocol.SignatureInformation{sig}, ActiveParameter: min(open[i].args, max(len(params)-1, 0))}, nil
	}
	return nil, nil
}
