package estate

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// # The modules in the check
//
// The module of a unit is held to every rule that needs no provider, once for all
// units with the same files. What hooks may still write could make an error go away, so
// that in units with hooks before the command errors are told as warnings. Commands that
// find more by themselves are left to it.

// examining are the commands that look at the insides of modules as they run.
var examining = []string{"validate", "init"}

// examined is what is wrong with the module of a unit, whatever its inputs are.
func (e *Estate) examined(ctx context.Context, u *Unit, tf *unit.Terraform, m *laidModule) diag.List {
	if m.place == nil || !m.whole || slices.Contains(examining, e.o.Request.Command) {
		return nil
	}
	p := m.place
	m.place = nil // it is looked at once
	p.shared.examining.Do(func() { p.shared.wrong = e.examine(ctx, p) })
	ds := slices.Clone(p.shared.wrong)
	if tf != nil && slices.ContainsFunc(tf.Before, func(h unit.Hook) bool { return slices.Contains(h.Commands, e.o.Request.Command) }) {
		return warned(ds)
	}
	return ds
}

// examine looks at the module of a place and all that it calls.
func (e *Estate) examine(ctx context.Context, p *place) diag.List {
	o := engine.Options{Dir: p.dir, Set: &p.shared.set, Sources: &p.shared.sources, Now: e.o.Machine.Now}
	if e.o.Host.Provisioners != nil {
		o.Provisioners = e.o.Host.Provisioners(Folder{Dir: p.dir, Env: e.o.Machine.Environ})
	}
	ds := e.examiner().Module(ctx, o)
	if len(ds) == 0 {
		return nil
	}
	for _, m := range ds {
		if m.At == nil {
			continue
		}
		for _, r := range p.shared.set.Remarks(*m.At) {
			m.Notes = append(m.Notes, diag.Note{Text: r.Text, At: &r.At})
		}
		if p.files.generated[filepath.ToSlash(filepath.Clean(m.At.Filename))] != nil {
			m.Notes = append(m.Notes, e.generatedBy(ctx, p, m.At.Filename)...)
		}
	}
	return placed(ds, func(name string) string {
		path := p.files.Locate(name)
		if path == "" {
			path = filepath.Join(p.dir, name)
		}
		if p.shared.set.Concealed(name) {
			e.loader.Sources().Conceal(path)
		}
		if f := p.shared.set.File(name); f != nil {
			e.loader.Sources().Add(&source.File{Path: path, Bytes: f.Bytes, Layer: f.Layer})
		}
		return path
	})
}

// generatedBy points at the block that generates a file.
func (e *Estate) generatedBy(ctx context.Context, p *place, name string) []diag.Note {
	all, _ := p.unit.Generate(e.task(ctx))
	for _, g := range all {
		if filepath.Clean(g.Path) == filepath.Clean(name) && g.At != nil {
			return []diag.Note{{Text: "the file is generated here", At: g.At}}
		}
	}
	return nil
}

func (e *Estate) examiner() *engine.Examiner {
	e.shared.examiner.Do(func() { e.shared.examines = engine.NewExaminer(e.o.Machine.Now) })
	return e.shared.examines
}

// rules holds the inputs of a unit to the validation rules of its module's variables.
// Nothing is said where other values may come before them.
func (c *checker) rules(t *demand.Task, u *Unit, m *laidModule, values map[string]engine.InputValue) diag.List {
	given := false
	for name, v := range m.root.Variables {
		_, has := values[name]
		given = given || has && len(v.Validations) > 0
	}
	if !given || c.e.mayHaveValues(u, m) {
		return nil
	}
	return c.e.examiner().Inputs(t.Context(), m.root, values)
}

// placed puts the places of messages in files that were read by names of their own
// where the files are.
func placed(ds diag.List, where func(name string) string) diag.List {
	moves := func(r *source.Range) bool { return r != nil && !filepath.IsAbs(r.Filename) }
	at := func(r *source.Range) *source.Range {
		if !moves(r) {
			return r
		}
		moved := *r
		moved.Filename = where(r.Filename)
		return &moved
	}
	out := slices.Clone(ds)
	for i, m := range ds {
		if !moves(m.At) && !slices.ContainsFunc(m.Notes, func(n diag.Note) bool { return moves(n.At) }) {
			continue // messages that many have are told once
		}
		c := *m
		c.At, c.Notes = at(m.At), slices.Clone(m.Notes)
		for j := range c.Notes {
			c.Notes[j].At = at(c.Notes[j].At)
		}
		out[i] = &c
	}
	return out
}

// environmentGives reports whether a variable gets a value from the environment.
func (e *Estate) environmentGives(v *config.Variable) bool {
	_, env := e.o.Machine.Environ.Lookup("TF_VAR_" + v.Name)
	return env
}
