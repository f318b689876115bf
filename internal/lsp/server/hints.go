package server

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/unit"
)

// The commands that clients execute.
const (
	commandReferences = "terrace.references" // arguments: URI, position; returns locations
	commandViewpoint  = "terrace.viewpoint"  // arguments: URI of a file, viewpoint, or "" for the default
	commandAffected   = "terrace.affected"   // argument: URI of a file; returns the text that affected prints
	commandEffective  = "terrace.effective"  // argument: URI of a file; returns the effective module or unit
	commandSchemas    = "terrace.schemas"    // argument: URI of a file; fetches the schemas of its module; returns a message
)

// hints shows, at the end of the line of an argument, what the argument replaces or what replaces it,
// and where the value of a unit's input comes from.
func (s *Server) hints(ctx context.Context, p *protocol.InlayHintParams) ([]protocol.InlayHint, error) {
	path, text, f, err := s.open(p.TextDocument)
	if err != nil {
		return nil, err
	}
	out := []protocol.InlayHint{}
	add := func(line int, label string) {
		if line >= p.Range.Start.Line && line <= p.Range.End.Line {
			at := text.LineStart(line) + len(text.Line(line))
			out = append(out, protocol.InlayHint{Position: text.Position(at, s.encoding), Label: label, PaddingLeft: true})
		}
	}
	switch f.Kind {
	case index.Module, index.JSON:
		for i := range f.Arguments {
			a := &f.Arguments[i]
			if a.Inner {
				continue
			}
			if label := s.overrideLabel(f, a); label != "" {
				add(a.Line-1, label)
			}
		}
		for i := range f.Names {
			o := &f.Names[i]
			if o.Role == index.Declares && strings.HasPrefix(o.Addr, "local.") {
				if label := s.localLabel(f, o); label != "" {
					add(o.Line-1, label)
				}
			}
		}
	case index.Unit:
		s.skippedPrograms(path, text, func(name string, end int) {
			add(text.Position(end, s.encoding).Line, name+" is not run")
		})
		labels := map[string]string{} // by the module and address of the input, which may be set many times
		for i := range f.Names {
			o := &f.Names[i]
			ofModule := o.Role == index.Sets && strings.HasPrefix(o.Via, "module.") // of an environment file
			if !ofModule && (o.Role != index.Declares || !strings.HasPrefix(o.Addr, "input.")) || o.Line-1 < p.Range.Start.Line || o.Line-1 > p.Range.End.Line {
				continue
			}
			key := o.Via + " " + o.Addr
			label, known := labels[key]
			if !known && len(labels) < maxOrigins && ctx.Err() == nil {
				_, name, _ := strings.Cut(o.Addr, ".")
				label = s.inputLabel(ctx, path, name, strings.TrimPrefix(o.Via, "module."))
				labels[key] = label
			}
			if label != "" {
				add(o.Line-1, label)
			}
		}
	}
	return out, ctx.Err()
}

// inputLabel returns where the value of an input of a unit file comes from, if that is another file, or "". module is
// the module of an environment file, or "".
func (s *Server) inputLabel(ctx context.Context, path, name, module string) string {
	x := s.explain(ctx, path, "inputs."+name, module)
	if x == nil || len(x.Steps) < 2 {
		return ""
	}
	last := x.Steps[len(x.Steps)-1]
	if last.At == nil {
		return ""
	}
	from := last.At.File
	if !filepath.IsAbs(from) { // relative to the unit from which the file is seen
		from = filepath.Join(filepath.Dir(cmp.Or(s.seenFrom(ctx, path).at, path)), from)
	}
	shown := filepath.Base(from)
	switch {
	case from == path:
		return ""
	case shown == filepath.Base(path):
		shown = relative(filepath.Dir(path), from, false)
	}
	return fmt.Sprintf("from %s:%d", shown, last.At.Line)
}

// overrideLabel returns what an argument of a module replaces, or what replaces it, or "".
func (s *Server) overrideLabel(f *index.File, a *index.Argument) string {
	var below, above []string
	for _, b := range s.same(f, a) {
		at := fmt.Sprintf("%s:%d", filepath.Base(b.file.Path), b.Line)
		switch {
		case index.Overrides(f, b.file):
			below = append(below, at)
		case index.Overrides(b.file, f):
			above = append(above, at)
		}
	}
	return overrideText(below, above)
}

func overrideText(below, above []string) string {
	switch {
	case len(above) > 0:
		return "overridden in " + above[len(above)-1]
	case len(below) > 0:
		return "overrides " + below[len(below)-1]
	}
	return ""
}

// localLabel is overrideLabel for a local value.
func (s *Server) localLabel(f *index.File, o *index.Occurrence) string {
	var below, above []string
	for _, pl := range s.Session.Index.Find(workspace.Symbol{Scope: filepath.Dir(f.Path), Addr: o.Addr}) {
		at := fmt.Sprintf("%s:%d", filepath.Base(pl.File.Path), pl.Line)
		switch {
		case pl.Role != index.Declares:
		case index.Overrides(f, pl.File):
			below = append(below, at)
		case index.Overrides(pl.File, f):
			above = append(above, at)
		}
	}
	return overrideText(below, above)
}

// lenses returns a lens at each variable and output, and at each unit of a stack. codeLens/resolve computes
// their texts.
func (s *Server) lenses(_ context.Context, p *protocol.CodeLensParams) ([]protocol.CodeLens, error) {
	path, text, f, err := s.open(p.TextDocument)
	if err != nil {
		return nil, err
	}
	out := []protocol.CodeLens{}
	for i := range f.Names {
		o := &f.Names[i]
		if o.Role != index.Declares {
			continue
		}
		if f.Kind.OfModule() && (strings.HasPrefix(o.Addr, "var.") || strings.HasPrefix(o.Addr, "output.")) || f.Kind == index.Stack && strings.HasPrefix(o.Addr, "unit.") {
			out = append(out, protocol.CodeLens{Range: text.Range(o.Start, o.End, s.encoding), Data: map[string]any{"path": path, "addr": o.Addr}})
		}
	}
	return out, nil
}

func (s *Server) resolveLens(ctx context.Context, p *protocol.CodeLens) (*protocol.CodeLens, error) {
	data, _ := p.Data.(map[string]any)
	path, _ := data["path"].(string)
	address, _ := data["addr"].(string)
	if index.KindOf(path) == index.Stack {
		at := s.generatedBy(ctx, path, address)
		if p.Command = (&protocol.Command{Title: "Effective unit", Command: commandEffective, Arguments: []any{document.URI(at)}}); at == "" {
			p.Command = &protocol.Command{Title: "The source of the unit is not known"}
		}
		return p, ctx.Err()
	}
	places, err := s.Session.Index.Everywhere(ctx, workspace.Symbol{Scope: filepath.Dir(path), Addr: address})
	if err != nil {
		return nil, err
	}
	uses, files := 0, map[string]bool{}
	for _, pl := range places {
		if pl.Role != index.Declares {
			uses++
			files[pl.File.Path] = true
		}
	}
	title := "1 use"
	if uses != 1 {
		title = fmt.Sprintf("%d uses", uses)
	}
	if len(files) > 1 {
		title += fmt.Sprintf(" in %d files", len(files))
	}
	p.Command = &protocol.Command{Title: title, Command: commandReferences, Arguments: []any{document.URI(path), p.Range.Start}}
	return p, nil
}

// execute runs a command.
func (s *Server) execute(ctx context.Context, p *protocol.ExecuteCommandParams) (any, error) {
	text := func(i int) string {
		if i >= len(p.Arguments) {
			return ""
		}
		out, _ := p.Arguments[i].(string)
		return out
	}
	switch p.Command {
	case commandReferences:
		at := protocol.Position{}
		if len(p.Arguments) > 1 {
			m, _ := p.Arguments[1].(map[string]any)
			line, _ := m["line"].(float64)
			character, _ := m["character"].(float64)
			at = protocol.Position{Line: int(line), Character: int(character)}
		}
		return s.references(ctx, &protocol.ReferenceParams{TextDocument: protocol.TextDocumentIdentifier{URI: text(0)}, Position: at})
	case commandAffected:
		path := s.path(text(0))
		if path == "" {
			return nil, refuse("the argument is the URI of a file")
		}
		if s.Affected == nil {
			return nil, refuse("the server cannot compare revisions")
		}
		if err := s.trustFor(ctx, filepath.Dir(path), "The comparison with the last commit runs git"); err != nil {
			return nil, err
		}
		buffers := map[string][]byte{}
		for _, b := range s.Session.Files.Open() {
			buffers[b.Path] = b.Text.Bytes
		}
		answer, err := s.Affected(ctx, filepath.Dir(path), buffers)
		if err != nil {
			return nil, refuse("%v", err)
		}
		return answer, nil
	case commandEffective:
		return s.effectiveOf(ctx, s.path(text(0)))
	case commandSchemas:
		return s.fetchSchemas(ctx, s.path(text(0)))
	case commandViewpoint:
		path, chosen := s.path(text(0)), viewOf(text(1))
		if path == "" || text(1) != "" && chosen.at == "" {
			return nil, refuse("the viewpoint of a file is a unit file, or the directory of a root module")
		}
		chosen.at = s.Session.Files.Real(chosen.at)
		path = cmp.Or(moduleOf(path), path) // all files of a module have the same viewpoint
		s.mu.Lock()
		if chosen.at == "" {
			delete(s.viewpoint, path)
		} else {
			s.viewpoint[path] = chosen
		}
		s.mu.Unlock()
		s.recompute()
		return nil, nil
	}
	return nil, refuse("there is no command %q", p.Command)
}

// actions returns the quick fixes for a range. A problem that can be fixed in several ways has none.
func (s *Server) actions(ctx context.Context, p *protocol.CodeActionParams) ([]protocol.CodeAction, error) {
	path, text, f, err := s.open(p.TextDocument)
	if err != nil {
		return nil, err
	}
	out := []protocol.CodeAction{}
	if !f.Kind.OfModule() && f.Kind != index.Unit && f.Kind != index.Stack && f.Kind != index.Test && f.Kind != index.Values {
		return out, nil
	}
	start, end := text.Offset(p.Range.Start, s.encoding), text.Offset(p.Range.End, s.encoding)
	fix := func(title string, changes map[string][]protocol.TextEdit) {
		if !slices.ContainsFunc(out, func(a protocol.CodeAction) bool { return a.Title == title }) {
			out = append(out, protocol.CodeAction{Title: title, Kind: protocol.CodeActionKindQuickFix, Edit: &protocol.WorkspaceEdit{Changes: changes}})
		}
	}
	s.spelling(ctx, path, text, start, end, fix)
	if f.Kind == index.Test {
		s.declarations(ctx, f, start, end, fix)
	}
	if !f.Kind.OfModule() {
		if a := s.imports(ctx, f, text, start, end); a != nil {
			out = append(out, *a)
		}
		return out, ctx.Err()
	}
	if a := s.schemaAction(ctx, f, start, end); a != nil {
		out = append(out, *a)
	}
	s.declarations(ctx, f, start, end, fix)
	if f.Kind == index.Module {
		s.missing(ctx, f, text, start, end, fix)
	}
	if m := s.Session.Module(ctx, filepath.Dir(path)); m != nil {
		for _, found := range m.Lint {
			at := m.Range(found.At())
			if at.Filename != path || at.Start.Byte > end || at.End.Byte < start || len(found.Fix) == 0 {
				continue
			}
			changes := map[string][]protocol.TextEdit{}
			for _, e := range found.Fix {
				l := s.locationOf(m.Range(e.At))
				changes[l.URI] = append(changes[l.URI], protocol.TextEdit{Range: l.Range, NewText: e.Text})
			}
			fix("Fix "+found.Rule, changes)
		}
	}
	return out, ctx.Err()
}

// imports returns the action that converts the includes of a unit to imports, or nil. The range must be
// inside an include block.
func (s *Server) imports(ctx context.Context, f *index.File, text *document.Text, start, end int) *protocol.CodeAction {
	inside := slices.ContainsFunc(f.Names, func(o index.Occurrence) bool {
		return o.Role == index.Declares && strings.HasPrefix(o.Addr, "include.") && o.WholeStart <= end && start <= o.WholeEnd
	})
	if !inside || filepath.Base(f.Path) != unit.DefaultName {
		return nil
	}
	u := s.Session.Unit(ctx, f.Path)
	if u == nil {
		return nil
	}
	before, after, changes := u.WithImports(ctx)
	if !changes || string(before) != string(text.Bytes) {
		return nil
	}
	return &protocol.CodeAction{Title: "Convert include to import", Kind: protocol.CodeActionKindRefactorRewrite, Edit: &protocol.WorkspaceEdit{Changes: map[string][]protocol.TextEdit{
		s.uriOf(f.Path): text.Edits(after, s.encoding),
	}}}
}

// fixes receives one fix.
type fixes func(title string, changes map[string][]protocol.TextEdit)

// spelling adds fixes for misspelled names for which a message suggests another name.
func (s *Server) spelling(ctx context.Context, path string, text *document.Text, start, end int, fix fixes) {
	for _, d := range s.diagnostics(ctx, path) {
		from, to := text.Offset(d.Range.Start, s.encoding), text.Offset(d.Range.End, s.encoding)
		if from > end || to < start {
			continue
		}
		_, rest, ok := strings.Cut(d.Message, "Did you mean ")
		if !ok {
			continue
		}
		word, _, ok := strings.Cut(strings.TrimLeft(rest, `"`), "?")
		word = strings.Trim(word, `"`)
		word = word[strings.LastIndexByte(word, '.')+1:]
		at, wrong := misspelled(text.Bytes[from:to], word)
		if !ok || wrong == "" {
			continue
		}
		fix(fmt.Sprintf("Change %q to %q", wrong, word), map[string][]protocol.TextEdit{
			s.uriOf(path): {{Range: text.Range(from+at, from+at+len(wrong), s.encoding), NewText: word}},
		})
	}
}

// declarations adds fixes that declare a variable or an output that is used and declared nowhere.
func (s *Server) declarations(ctx context.Context, f *index.File, start, end int, fix fixes) {
	x := s.Session.Index
	for i := range f.Names {
		o := &f.Names[i]
		kind, name, _ := strings.Cut(o.Addr, ".")
		if kind != "var" && kind != "output" || o.Start > end || o.End < start {
			continue
		}
		sym, ok := x.Resolve(f, o)
		if !ok || !s.inWorkspace(sym.Scope) || slices.ContainsFunc(x.Find(sym), func(p workspace.Place) bool { return p.Role == index.Declares }) {
			continue
		}
		block, title, usual := fmt.Sprintf("\nvariable %q {}\n", name), fmt.Sprintf("Declare variable %q", name), "variables.tf"
		if kind == "output" {
			value := s.outputValue(ctx, sym.Scope, name)
			if value == "" {
				continue
			}
			block, title, usual = fmt.Sprintf("\noutput %q {\n  value = %s\n}\n", name, value), fmt.Sprintf("Declare output %q as %s", name, value), "outputs.tf"
		}
		to := ""
		for _, g := range x.Dir(sym.Scope) {
			if base := filepath.Base(g.Path); g.Kind == index.Module && !g.Override && (to == "" || base == usual) {
				to = g.Path
			}
		}
		if to == "" {
			continue
		}
		at := s.Session.Files.Text(to)
		n := len(at.Bytes)
		if n > 0 && at.Bytes[n-1] != '\n' {
			block = "\n" + block
		}
		fix(title+" in "+filepath.Base(to), map[string][]protocol.TextEdit{
			s.uriOf(to): {{Range: at.Range(n, n, s.encoding), NewText: block}},
		})
	}
}

// outputValue returns the reference that an output with a name would have as its value: a local value,
// a variable or a resource with this name, or an attribute of a resource, such as "web_id" and "vpc_id"
// for "id" of a resource "web" and of the only "aws_vpc". It is "" unless exactly one reference matches.
func (s *Server) outputValue(ctx context.Context, dir, name string) string {
	m := s.Session.Module(ctx, dir)
	if m == nil || m.Config.Outputs[name] != nil {
		return ""
	}
	var found []string
	if m.Config.Locals[name] != nil {
		found = append(found, "local."+name)
	}
	if m.Config.Variables[name] != nil {
		found = append(found, "var."+name)
	}
	for a, r := range m.Config.Resources {
		if a.Name == name {
			found = append(found, a.String())
		}
		_, typ, _ := strings.Cut(a.Type, "_")
		rs := m.Resource(ctx, a.Mode, a.Type, localName(r))
		if rs == nil || r.Repeat.Count != nil || r.Repeat.ForEach != nil {
			continue
		}
		attribute, ok := strings.CutPrefix(name, a.Name+"_")
		if !ok || rs.Block.Attributes[attribute] == nil {
			attribute, ok = strings.CutPrefix(name, typ+"_")
		}
		if ok && rs.Block.Attributes[attribute] != nil {
			found = append(found, a.String()+"."+attribute)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// missing adds the fix that sets the required arguments of a module call.
func (s *Server) missing(ctx context.Context, f *index.File, text *document.Text, start, end int, fix fixes) {
	for i := range f.Names {
		o := &f.Names[i]
		if o.Role != index.Declares || !strings.HasPrefix(o.Addr, "module.") || o.WholeStart > end || o.WholeEnd < start || o.WholeEnd <= 0 {
			continue
		}
		dir := s.Session.Index.Target(f, o.Addr)
		if dir == "" {
			continue
		}
		m := s.Session.Module(ctx, dir)
		if m == nil {
			return
		}
		given := map[string]bool{}
		for _, g := range s.Session.Index.Dir(filepath.Dir(f.Path)) {
			for _, n := range g.Names {
				if n.Via == o.Addr && n.Role == index.Sets {
					given[strings.TrimPrefix(n.Addr, "var.")] = true
				}
			}
		}
		names := requiredOf(m.Config.Variables)
		names = slices.DeleteFunc(names, func(n string) bool { return given[n] })
		if len(names) == 0 {
			continue
		}
		var lines strings.Builder
		for _, n := range names {
			lines.WriteString("  " + n + " = null\n")
		}
		at := o.WholeEnd - 1 // the brace
		prefix := ""
		if line := text.Position(at, document.UTF8).Line; strings.TrimSpace(string(text.Bytes[text.LineStart(line):at])) != "" {
			prefix = "\n"
		}
		fix("Add missing arguments: "+strings.Join(names, ", "), map[string][]protocol.TextEdit{
			s.uriOf(f.Path): {{Range: text.Range(at, at, s.encoding), NewText: prefix + lines.String()}},
		})
	}
}
