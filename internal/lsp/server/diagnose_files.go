package server

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/source"
)

// variableErrors returns the errors in a variable file. If a module is in its directory, these include values of
// wrong types and names that the module does not declare.
func (s *Server) variableErrors(ctx context.Context, path string, text *document.Text) diag.List {
	ds := syntaxErrors(path, text)
	dir := filepath.Dir(path)
	if ds.HasErrors() || !slices.ContainsFunc(s.Session.Index.Dir(dir), func(f *index.File) bool { return f.Kind.OfModule() }) {
		return ds
	}
	m := s.Session.Module(ctx, dir)
	body, _ := index.Parse(path, text.Bytes)
	if m == nil || body == nil {
		return ds
	}
	for _, a := range body.Attributes {
		at := source.Range(a.Expr.Range())
		v := m.Config.Variables[a.Name]
		if v == nil {
			if !m.Diags.HasErrors() { // otherwise it may be declared in a file that cannot be read
				name := source.Range(a.NameRange)
				ds = append(ds, diag.Warnf(diag.CodeVarsUndeclared, &name, "Value for undeclared variable", "The module in this directory does not declare a variable named %q.%s", a.Name, lang.Suggest(a.Name, m.Config.Variables))...)
			}
			continue
		}
		val, diags := a.Expr.Value(nil)
		if diags.HasErrors() {
			ds = append(ds, diag.FromHCL(diags)...)
			continue
		}
		if _, more := engine.VariableValue(v, engine.InputValue{Value: val}); more.HasErrors() {
			declared := m.Range(v.At)
			for _, w := range more {
				w.At = &at
				ds = append(ds, diag.List{w}.Note(&declared, "the variable is declared here")...)
			}
		}
	}
	return ds.Sort()
}

// cycleErrors returns an error if the units of a file depend on themselves through others.
func (s *Server) cycleErrors(path string) diag.List {
	if !s.Session.IsUnit(path) {
		return nil
	}
	chain := s.Session.Index.Cycle(path)
	if chain == nil {
		return nil
	}
	var names []string
	var notes diag.List
	for i, d := range chain {
		names = append(names, s.viewName(view{at: d.From}))
		at := s.declaredAt(d)
		if i == 0 {
			notes = diag.Errorf(diag.CodeEstateCycle, &at, "Units depend on each other in a cycle", "")
		} else {
			notes = notes.Note(&at, fmt.Sprintf("%s needs %s here", names[i], s.viewName(view{at: d.To})))
		}
	}
	notes[0].Detail = fmt.Sprintf("Each of these units needs the next: %s → %s. Take one of the dependencies out.", strings.Join(names, " → "), names[0])
	return notes
}

// declaredAt returns the range of the name of a dependency block. If the block is in a file that the unit merges, it
// is the start of the unit.
func (s *Server) declaredAt(d workspace.Dependency) source.Range {
	f := s.Session.Index.File(d.From)
	at := source.Range{Filename: d.From, Start: hcl.Pos{Line: 1, Column: 1}, End: hcl.Pos{Line: 1, Column: 1}}
	for i := range f.Names {
		if o := &f.Names[i]; o.Addr == d.Via && o.Role == index.Declares {
			at.Start, at.End = hcl.Pos{Line: o.Line, Column: 1, Byte: o.Start}, hcl.Pos{Line: o.Line, Column: 1, Byte: o.End}
		}
	}
	return at
}
