package server

import (
	"bytes"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
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
	return workspace.Symbol{Scope: to, Addr: o.Addr}, to != ""
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
}

// renameAt returns the name at an offset, or the reason why it cannot be renamed.
func (s *Server) renameAt(ctx context.Context, f *index.File, offset int) (*renamed, error) {
	symbols, at := s.symbolsAt(ctx, f, offset)
	for i, sym := range symbols {
		declared := slices.ContainsFunc(s.Session.Index.Find(sym), func(p workspace.Place) bool { return p.Role == index.Declares })
		dot := strings.LastIndex(sym.Addr, ".")
		kind, _, _ := strings.Cut(sym.Addr, ".")
		switch {
		case !declared:
			continue
		case kind == "provider" || kind == "input" || kind == "feature" || kind == "check" || kind == "run" || kind == "values" || kind == "unit" || kind == "stack":
			return nil, refuse("%s cannot be renamed: its name is used outside of the files", sym.Addr)
		}
		return &renamed{sym, at[i], sym.Addr[:dot+1], sym.Addr[dot+1:]}, nil
	}
	return nil, refuse("there is no name that can be renamed")
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
	_, text, f, err := s.open(p.TextDocument)
	if err != nil {
		return nil, err
	}
	r, err := s.renameAt(ctx, f, text.Offset(p.Position, s.encoding))
	if err != nil {
		return nil, err
	}
	to := r.prefix + p.NewName
	x := s.Session.Index
	x.Invalidate() // a file that changed a moment ago counts too
	places, err := x.Everywhere(ctx, r.sym)
	if err != nil {
		return nil, err
	}
	switch {
	case p.NewName == r.id:
		return &protocol.WorkspaceEdit{}, nil
	case !hclsyntax.ValidIdentifier(p.NewName):
		return nil, refuse("%q is not a valid name", p.NewName)
	case len(x.Find(workspace.Symbol{Scope: r.sym.Scope, Addr: to})) > 0:
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
	return &protocol.WorkspaceEdit{Changes: changes}, nil
}

// movable reports whether the objects of a name are in the state, so that a moved block is needed.
func (r *renamed) movable() bool {
	kind, _, _ := strings.Cut(r.sym.Addr, ".")
	return index.KindOf(r.sym.Scope) == index.Other && !slices.Contains([]string{"var", "local", "output", "data", "ephemeral"}, kind)
}

// complete returns the reason why not all uses of a name may be known.
func (s *Server) complete(ctx context.Context, r *renamed, places []workspace.Place) error {
	x := s.Session.Index
	for _, pl := range places {
		if pl.File.Broken {
			return refuse("%s has a syntax error, so that not all uses of %s are known", pl.File.Path, r.sym.Addr)
		}
		if other := x.Linked(pl.File.Path); other != "" {
			return refuse("%s is also %s, through a symbolic link, so that the rename would change another module", pl.File.Path, other)
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
	if strings.HasPrefix(r.sym.Addr, "var.") || strings.HasPrefix(r.sym.Addr, "output.") {
		open, err := x.Unresolved(ctx, r.sym.Addr)
		if err != nil {
			return err
		}
		for _, pl := range open {
			if x.Written(pl.File, pl.Via) == "" || x.PerUnit(pl.File, pl.Via) {
				return refuse("%s may be used in %s, line %d, whose module is not known from the files", r.sym.Addr, pl.File.Path, pl.Line)
			}
		}
	}
	if strings.HasPrefix(r.sym.Addr, "dependency.") { // blocks of imported and included files are merged
		users, err := x.Users(ctx, r.sym.Scope)
		if err != nil {
			return err
		}
		own := x.File(r.sym.Scope)
		for via := range own.Paths {
			users = append(users, x.Target(own, via))
		}
		for _, path := range users {
			if index.KindOf(path) == index.Unit && slices.ContainsFunc(x.File(path).Names, func(o index.Occurrence) bool { return o.Addr == r.sym.Addr && o.Via == "" }) {
				return refuse("%s also uses %s, which may be the same", path, r.sym.Addr)
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
	key := strings.TrimPrefix(r.sym.Addr, "key") // ".a.b"
	for _, f := range all {
		for _, l := range f.Links {
			if filepath.Base(l.Text) == filepath.Base(r.sym.Scope) && !slices.Contains(slices.Collect(maps.Values(f.Paths)), l.Text) {
				return refuse("%s also reads %s, and not as a local value", f.Path, l.Text)
			}
		}
		for i := range f.Names {
			o := &f.Names[i]
			if o.Via != "" || !strings.HasPrefix(o.Addr, "local.") || o.Role != index.Uses || x.Target(f, o.Addr) != r.sym.Scope {
				continue
			}
			if part := o.Part; strings.HasPrefix(key, part) && part != key || strings.Contains(part, "[") {
				return refuse("%s, line %d, uses %s%s as a whole, which contains the key", f.Path, o.Line, o.Addr, part)
			}
		}
	}
	return nil
}
