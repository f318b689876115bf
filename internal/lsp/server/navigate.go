package server

import (
	"bytes"
	"context"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/creachadair/jrpc2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/unit"
)

// resolve returns the symbol of an occurrence, as Index.Resolve does. A name that the index cannot resolve is that
// of the unit from which the file is seen, or of the directory that the engine computes for the unit's module.
func (s *Server) resolve(ctx context.Context, f *index.File, o *index.Occurrence) (workspace.Symbol, bool) {
	kind, _, _ := strings.Cut(o.Via, ".")
	through := f.Kind == index.Unit && (kind == "terraform" || kind == "dependency" || f.Finds[o.Via] != "")
	if !through || s.Session.IsUnit(f.Path) {
		if sym, ok := s.Session.Index.Resolve(f, o); ok || !through {
			return sym, ok
		}
	}
	to := s.target(ctx, f, o.Via)
	if strings.HasPrefix(o.Via, "dependency.") {
		to = s.moduleOfUnit(ctx, to)
	}
	if to == "" {
		return s.Session.Index.Resolve(f, o)
	}
	return workspace.Symbol{Scope: to, Addr: o.Addr}, true
}

// target returns the directory or file to which a source or path of a file refers, or "". A path in a file that
// units include is relative to the unit from which the file is seen.
func (s *Server) target(ctx context.Context, f *index.File, via string) string {
	x := s.Session.Index
	if f.Kind != index.Unit {
		return x.Target(f, via)
	}
	own := f
	if !s.Session.IsUnit(f.Path) {
		if at := s.viewpointOf(ctx, f.Path); at != "" { // waits for the index, which knows whether a unit includes the file
			own = x.File(at)
		}
	}
	if to := x.TargetFor(own, f, via); to != "" {
		return to
	}
	if via == "terraform" && s.Session.IsUnit(own.Path) {
		if u := s.Session.Unit(ctx, own.Path); u != nil {
			return u.ModuleDir(ctx)
		}
	}
	return ""
}

// symbolsAt returns the symbols of the names at an offset, with their occurrences. A name of another
// module comes before the name in this one.
func (s *Server) symbolsAt(ctx context.Context, f *index.File, offset int) (out []workspace.Symbol, at []*index.Occurrence) {
	for _, through := range []bool{true, false} {
		for i := range f.Names {
			o := &f.Names[i]
			if o.Start > offset || offset > o.End || (o.Via != "") != through {
				continue
			}
			if sym, ok := s.resolve(ctx, f, o); ok {
				out, at = append(out, sym), append(at, o)
			}
		}
	}
	return out, at
}

func (s *Server) definition(ctx context.Context, p *protocol.DefinitionParams) ([]protocol.Location, error) {
	path, text, f, err := s.open(p.TextDocument)
	if err != nil {
		return nil, err
	}
	offset := text.Offset(p.Position, s.encoding)
	out := []protocol.Location{}
	// An argument of an override file leads to the argument that it replaces.
	if a := f.ArgumentAt(offset); a != nil {
		for _, other := range s.replacedBy(f, a) {
			out = append(out, s.location(other.file.Path, other.Start, other.End))
		}
	}
	symbols, at := s.symbolsAt(ctx, f, offset)
	for i, sym := range symbols {
		var here []protocol.Location
		for _, d := range s.Session.Index.Find(sym) {
			if d.Role == index.Declares && !(d.File.Path == path && d.Start == at[i].Start && len(symbols) > 1) {
				here = append(here, s.location(d.File.Path, d.Start, d.End))
			}
		}
		if len(here) == 0 && strings.HasPrefix(sym.Addr, "values.") { // in the stacks that give the value
			places, err := s.Session.Index.Everywhere(ctx, sym)
			if err != nil {
				return nil, err
			}
			for _, d := range places {
				if d.Role == index.Sets && !(d.File.Path == path && d.Start == at[i].Start) {
					here = append(here, s.location(d.File.Path, d.Start, d.End))
				}
			}
			slices.SortFunc(here, compareLocations)
		}
		if len(here) > 0 {
			return append(out, here...), nil
		}
	}
	for _, l := range f.Links {
		if l.Start <= offset && offset <= l.End {
			if to := s.linked(ctx, f, l); to != "" {
				out = append(out, s.location(to, 0, 0))
			}
		}
	}
	return out, nil
}

// placedArgument is an argument in a file.
type placedArgument struct {
	*index.Argument
	file *index.File
}

// same returns the arguments with the name and block of an argument, in all files of its directory in
// load order.
func (s *Server) same(f *index.File, a *index.Argument) (out []placedArgument) {
	for _, other := range s.Session.Index.Dir(filepath.Dir(f.Path)) {
		for i := range other.Arguments {
			if b := &other.Arguments[i]; other.Kind.OfModule() && !a.Inner && !b.Inner && b.Addr == a.Addr && b.Name == a.Name && !(b.Nested && b.Name == "lifecycle") {
				out = append(out, placedArgument{b, other})
			}
		}
	}
	return out
}

// replacedBy returns the arguments that an argument replaces.
func (s *Server) replacedBy(f *index.File, a *index.Argument) (out []placedArgument) {
	if !f.Kind.OfModule() || !f.Override {
		return nil
	}
	for _, b := range s.same(f, a) {
		if index.Overrides(f, b.file) {
			out = append(out, b)
		}
	}
	return out
}

func (s *Server) references(ctx context.Context, p *protocol.ReferenceParams) ([]protocol.Location, error) {
	_, text, f, err := s.open(p.TextDocument)
	if err != nil {
		return nil, err
	}
	symbols, _ := s.symbolsAt(ctx, f, text.Offset(p.Position, s.encoding))
	out := []protocol.Location{}
	seen := map[protocol.Location]bool{}
	for _, sym := range symbols {
		places, err := s.Session.Index.Everywhere(ctx, sym)
		if err != nil {
			return nil, err
		}
		for _, pl := range places {
			l := s.location(pl.File.Path, pl.Start, pl.End)
			if (p.Context.IncludeDeclaration || pl.Role != index.Declares) && !seen[l] {
				seen[l] = true
				out = append(out, l)
			}
		}
	}
	slices.SortFunc(out, compareLocations)
	return out, nil
}

func compareLocations(a, b protocol.Location) int {
	if n := strings.Compare(a.URI, b.URI); n != 0 {
		return n
	}
	if n := a.Range.Start.Line - b.Range.Start.Line; n != 0 {
		return n
	}
	return a.Range.Start.Character - b.Range.Start.Character
}

func (s *Server) highlight(ctx context.Context, p *protocol.DocumentHighlightParams) ([]protocol.DocumentHighlight, error) {
	_, text, f, err := s.open(p.TextDocument)
	if err != nil {
		return nil, err
	}
	symbols, _ := s.symbolsAt(ctx, f, text.Offset(p.Position, s.encoding))
	out := []protocol.DocumentHighlight{}
	for i := range f.Names {
		o := &f.Names[i]
		if sym, ok := s.resolve(ctx, f, o); !ok || !slices.Contains(symbols, sym) {
			continue
		}
		h := protocol.DocumentHighlight{Range: text.Range(o.Start, o.End, s.encoding), Kind: protocol.DocumentHighlightKindRead}
		if o.Role != index.Uses {
			h.Kind = protocol.DocumentHighlightKindWrite
		}
		if !slices.ContainsFunc(out, func(x protocol.DocumentHighlight) bool { return x.Range == h.Range }) {
			out = append(out, h)
		}
	}
	return out, nil
}

// renamed is a name that can be renamed.
type renamed struct {
	sym        workspace.Symbol
	at         *index.Occurrence
	prefix, id string // the address is prefix + id
	to         string // the new id
}

// renameAt returns the name at an offset, or the reason why it cannot be renamed.
func (s *Server) renameAt(ctx context.Context, f *index.File, offset int) (*renamed, error) {
	symbols, at := s.symbolsAt(ctx, f, offset)
	for i, sym := range symbols {
		declared := slices.ContainsFunc(s.Session.Index.Find(sym), func(p workspace.Place) bool { return p.Role == index.Declares })
		dot := strings.LastIndex(sym.Addr, ".")
		kind, _, _ := strings.Cut(sym.Addr, ".")
		why := fixedName(kind, index.KindOf(sym.Scope))
		if kind == "input" && len(s.Session.Index.MergedModules(f.Path)) > 1 {
			why = "it is an input of units of several modules"
		}
		if kind == "values" && !declared { // a stack sets the value
			places, err := s.Session.Index.Everywhere(ctx, sym)
			if err != nil {
				return nil, err
			}
			declared = slices.ContainsFunc(places, func(p workspace.Place) bool { return p.Role == index.Sets })
		}
		if why != "" && declared {
			return nil, refuse("%s cannot be renamed: %s", sym.Addr, why)
		}
		if declared {
			return &renamed{sym: sym, at: at[i], prefix: sym.Addr[:dot+1], id: sym.Addr[dot+1:]}, nil
		}
	}
	if o := f.At(offset); o != nil {
		return nil, refuse("%s cannot be renamed: no file of the workspace is known to declare it", strings.Replace(o.Addr, "key.", "the key ", 1))
	}
	return nil, refuse("only the names of blocks, variables, outputs, local values, arguments of modules and keys of data files can be renamed")
}

// fixedName returns the reason why names of a kind cannot be renamed in files of a kind, or "".
func fixedName(kind string, in index.Kind) string {
	switch kind {
	case "provider":
		return "the state contains the name of the provider configuration"
	case "input":
		return "the module that reads the input is not known from the files"
	case "feature":
		return "commands and environment variables set the feature by its name"
	case "check":
		return "the state contains the name of the check"
	case "run":
		return "filters and reports contain the name of the run"
	case "unit", "stack":
		return "commands and reports contain the name"
	case "module":
		if in == index.Unit {
			return "the name of the module is part of the name of its unit, under which the state is stored"
		}
	}
	return ""
}

func (s *Server) prepareRename(ctx context.Context, p *protocol.PrepareRenameParams) (any, error) {
	_, text, f, err := s.open(p.TextDocument)
	if err != nil {
		return nil, err
	}
	r, err := s.renameAt(ctx, f, text.Offset(p.Position, s.encoding))
	if err != nil {
		return nil, err
	}
	return map[string]any{"range": text.Range(r.at.Start, r.at.End, s.encoding), "placeholder": r.id}, nil
}

// rename renames a name everywhere in the workspace. It refuses if it cannot find all uses.
func (s *Server) rename(ctx context.Context, p *protocol.RenameParams) (*protocol.WorkspaceEdit, error) {
	before := s.Session.Files.Changes()
	_, text, f, err := s.open(p.TextDocument)
	if err != nil {
		return nil, err
	}
	r, err := s.renameAt(ctx, f, text.Offset(p.Position, s.encoding))
	if err != nil {
		return nil, err
	}
	r.to = p.NewName
	to := r.prefix + r.to
	x := s.Session.Index
	x.Invalidate() // a file that changed a moment ago counts too
	places, err := x.Everywhere(ctx, r.sym)
	if err != nil {
		return nil, err
	}
	other := workspace.Symbol{Scope: r.sym.Scope, Addr: to}
	taken := x.Find(other)
	if strings.HasPrefix(to, "values.") { // stacks set values that no file declares
		if taken, err = x.Everywhere(ctx, other); err != nil {
			return nil, err
		}
	}
	switch {
	case p.NewName == r.id:
		return &protocol.WorkspaceEdit{}, nil
	case !hclsyntax.ValidIdentifier(p.NewName):
		return nil, refuse("%q is not a valid name", p.NewName)
	case len(taken) > 0:
		return nil, refuse("%s exists already, or is used", to)
	case !s.inWorkspace(r.sym.Scope):
		return nil, refuse("%s belongs to %s, which is not part of the workspace", r.sym.Addr, r.sym.Scope)
	}
	if err := s.complete(ctx, r, places); err != nil {
		return nil, err
	}
	changes := map[string][]protocol.TextEdit{}
	done := map[protocol.Location]bool{}
	var base *workspace.Place
	for i, pl := range places {
		moves := pl.History && r.movable()
		if pl.Role == index.Declares && base == nil {
			base = &places[i]
		}
		l := s.location(pl.File.Path, pl.Start, pl.End)
		if !moves && !done[l] {
			done[l] = true
			changes[l.URI] = append(changes[l.URI], protocol.TextEdit{Range: l.Range, NewText: p.NewName})
		}
	}
	if r.movable() && base != nil && index.IsJSON(base.File.Path) {
		e, ok := s.movedText(base.File.Path, r.sym.Addr, to)
		if !ok {
			return nil, refuse("the rename needs a moved block, which cannot be added to the JSON in %s", base.File.Path)
		}
		uri := s.uriOf(base.File.Path)
		changes[uri] = append(changes[uri], e)
	} else if r.movable() && base != nil {
		at := s.Session.Files.Text(base.File.Path)
		end := at.Range(len(at.Bytes), len(at.Bytes), s.encoding)
		block := "\nmoved {\n  from = " + r.sym.Addr + "\n  to   = " + to + "\n}\n"
		if !bytes.HasSuffix(at.Bytes, []byte("\n")) {
			block = "\n" + block
		}
		uri := s.uriOf(base.File.Path)
		changes[uri] = append(changes[uri], protocol.TextEdit{Range: end, NewText: block})
	}
	return s.workspaceEdit(changes, before)
}

// workspaceEdit returns edits, by the URI of their file, with the versions of the open documents. It returns an error
// if one of the documents was changed after a number of changes of the session: its positions may be outdated.
func (s *Server) workspaceEdit(changes map[string][]protocol.TextEdit, before int) (*protocol.WorkspaceEdit, error) {
	var all []any
	for _, uri := range slices.Sorted(maps.Keys(changes)) {
		path := document.Path(uri)
		if s.Session.Files.ChangedSince(path, before) {
			return nil, jrpc2.Errorf(codeContentModified, "%s was changed meanwhile", path)
		}
		var e protocol.DocumentEdit
		e.TextDocument.URI, e.Edits = uri, changes[uri]
		if b := s.Session.Files.Buffer(path); b != nil {
			e.TextDocument.URI, e.TextDocument.Version = b.URI, &b.Version
		}
		all = append(all, e)
	}
	if s.client.Workspace.WorkspaceEdit.DocumentChanges {
		return &protocol.WorkspaceEdit{DocumentChanges: all}, nil
	}
	return &protocol.WorkspaceEdit{Changes: changes}, nil
}

// movable reports whether the objects of a name are in the state, so that a moved block is needed.
func (r *renamed) movable() bool {
	kind, _, _ := strings.Cut(r.sym.Addr, ".")
	return index.KindOf(r.sym.Scope) == index.Other && !slices.Contains([]string{"var", "local", "output", "data", "ephemeral", "list"}, kind)
}

// complete returns the reason why not all uses of a name may be known.
func (s *Server) complete(ctx context.Context, r *renamed, places []workspace.Place) error {
	x := s.Session.Index
	for _, pl := range places {
		if pl.File.Broken {
			return refuse("%s has a syntax error, so that not all uses of %s are known", pl.File.Path, r.sym.Addr)
		}
		if other := x.Linked(pl.File.Path); other != "" {
			return refuse("%s is also %s, through a symbolic link, so that not all uses of %s are known", pl.File.Path, other, r.sym.Addr)
		}
		if !s.inWorkspace(pl.File.Path) {
			return refuse("%s is also used in %s, which is not part of the workspace", r.sym.Addr, pl.File.Path)
		}
	}
	if finding := x.Finding(filepath.Base(r.sym.Scope), r.sym.Addr); len(finding) > 0 {
		return refuse("%s is also used in %s, which reads another file for each unit", r.sym.Addr, finding[0])
	}
	if index.KindOf(r.sym.Scope) == index.Data {
		if err := s.completeKey(ctx, r); err != nil {
			return err
		}
	}
	dir := r.sym.Scope
	if index.KindOf(dir) != index.Other {
		dir = filepath.Dir(dir)
	}
	for _, f := range x.Dir(dir) {
		if f.Broken {
			return refuse("%s has a syntax error, so that not all uses of %s are known", f.Path, r.sym.Addr)
		}
	}
	kind, _, _ := strings.Cut(r.sym.Addr, ".")
	if index.KindOf(r.sym.Scope) != index.Other || kind == "var" || kind == "output" {
		if err := s.completeBroken(ctx, r); err != nil {
			return err
		}
	}
	if err := s.completeWholes(ctx, r); err != nil {
		return err
	}
	if err := s.completeTexts(ctx, r); err != nil {
		return err
	}
	switch kind {
	case "var", "output", "values":
		return s.completeModule(ctx, r)
	case "dependency":
		return s.completeDependency(r)
	case "include", "import":
		for _, g := range x.Merged(x.File(r.sym.Scope))[1:] {
			for _, o := range g.Names {
				if o.Addr == r.sym.Addr && o.Role == index.Uses && !slices.ContainsFunc(g.Names, func(d index.Occurrence) bool { return d.Addr == o.Addr && d.Role == index.Declares }) {
					return refuse("%s, line %d, names %s in a function, for all units that merge the file", g.Path, o.Line, r.sym.Addr)
				}
			}
		}
	}
	return nil
}

// completeBroken returns an error if a file with a syntax error may use a name. The names behind the error are not
// known.
func (s *Server) completeBroken(ctx context.Context, r *renamed) error {
	all, err := s.Session.Index.All(ctx)
	if err != nil {
		return err
	}
	word, err := regexp.Compile(`\b` + regexp.QuoteMeta(r.id) + `\b`)
	if err != nil {
		return err
	}
	for _, f := range all {
		if f.Broken && !isTemplate(f.Path) && word.Match(s.Session.Files.Text(f.Path).Bytes) {
			return refuse("%s has a syntax error, so that not all uses of %s are known", f.Path, r.sym.Addr)
		}
	}
	return nil
}

// completeWholes returns an error if a file uses all names of a kind at once, or sets names from an object that may
// contain a name: these uses cannot be edited.
func (s *Server) completeWholes(ctx context.Context, r *renamed) error {
	x := s.Session.Index
	kind, _, _ := strings.Cut(r.sym.Addr, ".")
	names := map[string]string{"local": "locals", "output": "outputs", "values": "values", "dependency": "file"}[kind]
	if names == "" && kind != "var" || kind == "local" && index.KindOf(r.sym.Scope) == index.Other {
		return nil
	}
	all, err := x.All(ctx)
	if err != nil {
		return err
	}
	for _, f := range all {
		for _, w := range f.Wholes {
			switch {
			case w.Names != names && (w.Names != "file" || names == ""):
			case names == "outputs" || names == "values":
				if got, ok := x.Resolve(f, &index.Occurrence{Addr: r.sym.Addr, Via: w.Via}); ok && got == r.sym {
					return refuse("%s, line %d, uses all %s at once, so that %s cannot be renamed there", f.Path, w.Line, names, r.sym.Addr)
				}
			case x.Target(f, w.Via) == r.sym.Scope:
				return refuse("%s, line %d, uses all local values of %s at once, so that %s cannot be renamed there", f.Path, w.Line, r.sym.Scope, r.sym.Addr)
			}
		}
		for _, o := range f.Objects {
			if !strings.HasPrefix(r.sym.Addr, o.Prefix) {
				continue
			}
			got, ok := x.Resolve(f, &index.Occurrence{Addr: r.sym.Addr, Via: o.Via})
			if !ok && o.Via == "terraform" {
				ok, got = slices.Contains(x.MergedModules(f.Path), r.sym.Scope), r.sym
			}
			if !ok || got != r.sym {
				continue
			}
			may, err := s.mayContain(ctx, f, r.id)
			if err != nil {
				return err
			}
			if may {
				return refuse("%s, line %d, may set %s from an object, whose keys cannot be renamed", f.Path, o.Line, r.sym.Addr)
			}
		}
	}
	return nil
}

// completeTexts returns an error if a text names a variable, an output or an object in a way that is not in the index:
// the contents of a generate block, a rule, an exception, or a test of an estate.
func (s *Server) completeTexts(ctx context.Context, r *renamed) error {
	x := s.Session.Index
	kind, _, _ := strings.Cut(r.sym.Addr, ".")
	id := regexp.QuoteMeta(r.id)
	var generated, rule, test string
	switch {
	case index.KindOf(r.sym.Scope) != index.Other:
		return nil
	case kind == "var":
		generated, rule, test = `\bvar\.`+id, `\b(attrs|config)\.`+id, `\binputs\.`+id
	case kind == "output":
		test = `\boutputs\.` + id
	case kind != "local":
		test = `\b` + regexp.QuoteMeta(r.sym.Addr)
	}
	if test == "" {
		return nil
	}
	all, err := x.All(ctx)
	if err != nil {
		return err
	}
	for _, f := range all {
		pattern := ""
		isTest := strings.HasSuffix(f.Path, testfile.EstateSuffix)
		switch {
		case isTest:
			pattern = test
		case f.Kind == index.Rules && kind != "var":
			pattern = test
		case f.Kind == index.Rules:
			pattern = rule
		case f.Kind == index.Unit && generated != "" && slices.ContainsFunc(f.Arguments, func(a index.Argument) bool { return a.Name == "contents" && strings.HasPrefix(a.Addr, "generate.") }):
			pattern = generated
		}
		if pattern == "" {
			continue
		}
		found, err := regexp.Compile(pattern + `\b`)
		if err != nil {
			return err
		}
		text := s.Session.Files.Text(f.Path)
		body, _ := index.Parse(f.Path, text.Bytes)
		if body == nil {
			continue
		}
		for _, b := range body.Blocks {
			if pattern == rule && b.Body.Attributes["unit"] == nil || pattern == generated && b.Type != "generate" {
				continue // about other names
			}
			at := b.Range()
			m := found.FindIndex(text.Bytes[at.Start.Byte:at.End.Byte])
			if m == nil || pattern == generated && !s.generatesFor(f, r.sym.Scope) {
				continue
			}
			line := text.Position(at.Start.Byte+m[0], document.UTF8).Line + 1
			return refuse("%s, line %d, names %s in a text, which cannot be renamed there", f.Path, line, r.sym.Addr)
		}
	}
	return nil
}

// generatesFor reports whether the generate blocks of a unit file may write files for the module in a directory.
func (s *Server) generatesFor(f *index.File, dir string) bool {
	x := s.Session.Index
	got, ok := x.Resolve(f, &index.Occurrence{Addr: "var.x", Via: "terraform"})
	if ok {
		return got.Scope == dir
	}
	dirs := x.MergedModules(f.Path)
	return slices.Contains(dirs, dir) || slices.Contains(dirs, "")
}

// mayContain reports whether an object in a unit or stack file may have a key: the file, or one that it reads or
// merges, declares the name as a local value, an input or a key.
func (s *Server) mayContain(ctx context.Context, f *index.File, name string) (bool, error) {
	x := s.Session.Index
	files := x.Merged(f)
	for i, depth := 0, len(files); i < len(files) && i < depth+maxRead; i++ {
		for _, via := range slices.Sorted(maps.Keys(files[i].Paths)) {
			to := x.Target(files[i], via)
			if k := index.KindOf(to); (k == index.Unit || k == index.Data || k == index.UnitValues) && !strings.HasPrefix(via, "dependency.") && !strings.HasPrefix(via, "dependencies.") && !slices.ContainsFunc(files, func(g *index.File) bool { return g.Path == to }) {
				files = append(files, x.File(to))
			}
		}
	}
	word, err := regexp.Compile(`\b` + regexp.QuoteMeta(name) + `\b`)
	if err != nil {
		return false, err
	}
	for _, g := range files {
		for _, o := range g.Names {
			kind, _, _ := strings.Cut(o.Addr, ".")
			if own := g == f && kind == "input"; o.Role == index.Declares && !own && slices.Contains([]string{"local", "key", "values", "input"}, kind) && o.Addr[strings.LastIndexByte(o.Addr, '.')+1:] == name {
				return true, nil
			}
		}
		for _, a := range g.Arguments {
			if a.Inner && a.Name == name && !(a.Addr == "inputs" && g == f) && !strings.HasSuffix(a.Addr, ".inputs") && !strings.HasSuffix(a.Addr, ".values") && !strings.HasSuffix(a.Addr, ".mock_outputs") {
				return true, nil
			}
		}
		for _, read := range g.Reads {
			path := read.Path
			if path != "" && !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(g.Path), path)
			}
			if path == "" || word.Match(s.Session.Files.Text(path).Bytes) {
				return true, nil
			}
		}
		if slices.ContainsFunc(g.Wholes, func(w index.Whole) bool { return w.Names == "values" }) {
			places, err := x.Everywhere(ctx, workspace.Symbol{Scope: filepath.Join(filepath.Dir(g.Path), unit.ValuesName), Addr: "values." + name})
			if err != nil || len(places) > 0 {
				return true, err
			}
		}
	}
	return false, nil
}

// maxRead is the number of files that mayContain searches besides those that a unit merges.
const maxRead = 100

// completeModule returns the reason why not all uses of a variable, of an output or of a value of a unit may be known.
func (s *Server) completeModule(ctx context.Context, r *renamed) error {
	x := s.Session.Index
	open, err := x.Unresolved(ctx, r.sym.Addr)
	if err != nil || len(open) == 0 {
		return err
	}
	users, err := x.Users(ctx, r.sym.Scope)
	if err != nil {
		return err
	}
	// A module that only other modules call gets no value from a variable file.
	called := len(users) > 0 && !slices.ContainsFunc(users, func(u string) bool { return !index.KindOf(u).OfModule() })
	all, err := x.All(ctx)
	if err != nil {
		return err
	}
	unknownMerge := slices.ContainsFunc(all, func(f *index.File) bool {
		return slices.ContainsFunc(f.Merges, func(via string) bool { return x.Target(f, via) == "" })
	})
	for _, pl := range open {
		switch {
		case pl.File.Kind == index.Values:
			if !called {
				return refuse("%s may be set in %s, line %d, whose module is not known from the files", r.sym.Addr, pl.File.Path, pl.Line)
			}
		case pl.Via == "terraform" && readBySeveral(x.MergedModules(pl.File.Path)):
			if slices.Contains(x.MergedModules(pl.File.Path), r.sym.Scope) {
				return refuse("%s, line %d, sets %s for units of several modules", pl.File.Path, pl.Line, r.sym.Addr)
			}
		case pl.Via == "terraform" && !s.Session.IsUnit(pl.File.Path) && len(x.MergedModules(pl.File.Path)) == 0 && !unknownMerge:
			// The inputs of a file that no unit merges are values of other files.
		case x.Written(pl.File, pl.Via) == "" || x.PerUnit(pl.File, pl.Via):
			return refuse("%s may be used in %s, line %d, whose module is not known from the files", r.sym.Addr, pl.File.Path, pl.Line)
		}
	}
	return nil
}

// readBySeveral reports whether modules of units are several, and all are known.
func readBySeveral(dirs []string) bool { return len(dirs) > 1 && !slices.Contains(dirs, "") }

// completeDependency returns an error if a dependency block has, or would get, the name of a block with which it is
// merged.
func (s *Server) completeDependency(r *renamed) error {
	x := s.Session.Index
	for _, path := range append([]string{r.sym.Scope}, x.Merging(r.sym.Scope)...) {
		for _, g := range x.Merged(x.File(path)) {
			for _, o := range g.Names {
				if same := o.Addr == r.sym.Addr && g.Path != r.sym.Scope; o.Role == index.Declares && (same || o.Addr == r.prefix+r.to) {
					return refuse("%s, line %d, has %s too, which is merged with the renamed block", g.Path, o.Line, o.Addr)
				}
			}
		}
	}
	return nil
}

// completeKey returns the reason why not all uses of a key of a data file may be known.
func (s *Server) completeKey(ctx context.Context, r *renamed) error {
	x := s.Session.Index
	all, err := x.All(ctx)
	if err != nil {
		return err
	}
	if x.File(r.sym.Scope).Aliases {
		return refuse("%s has aliases, so that one key may have several paths", r.sym.Scope)
	}
	key := strings.TrimPrefix(r.sym.Addr, "key") + "." // ".a.b."
	dir := filepath.Dir(r.sym.Scope)
	for _, f := range all {
		for _, read := range f.Reads {
			path := read.Path
			if path == "" {
				if strings.HasSuffix(r.sym.Scope, read.End) && related(dir, filepath.Dir(f.Path)) {
					return refuse("%s, line %d, may also read %s: the path is not known from the files", f.Path, read.Line, r.sym.Scope)
				}
				continue
			}
			if !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(f.Path), path)
			}
			if filepath.Clean(path) == r.sym.Scope {
				return refuse("%s, line %d, also reads %s, and not as a local value", f.Path, read.Line, r.sym.Scope)
			}
		}
		for i := range f.Names {
			o := &f.Names[i]
			if o.Via != "" || !strings.HasPrefix(o.Addr, "local.") || o.Role != index.Uses || x.Target(f, o.Addr) != r.sym.Scope {
				continue
			}
			if part := o.Part + "."; strings.HasPrefix(key, part) && part != key || strings.Contains(part, "[") {
				return refuse("%s, line %d, uses %s%s as a whole, which contains the key", f.Path, o.Line, o.Addr, o.Part)
			}
		}
	}
	return nil
}

// related reports whether one of two directories is the other, or contains it.
func related(a, b string) bool {
	_, in := below(a, b)
	_, around := below(b, a)
	return in || around
}
