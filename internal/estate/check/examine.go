package check

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/workcopy"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// # Checks of modules
//
// The module of a unit is checked without providers, once for all units with the same files.
// Files that hooks write may fix an error. In units with hooks before the command, errors are
// therefore reported as warnings. Commands that check modules themselves do so without this
// check.

// examining contains the commands that check modules themselves.
var examining = []string{"validate", "init"}

// examined returns the errors in the module of a unit that do not depend on its inputs.
func (c *checker) examined(ctx context.Context, u *discovery.Unit, tf *unit.Terraform, m *workcopy.Module) diag.List {
	if m.Dir == nil || !m.Whole || slices.Contains(examining, c.Command) {
		return nil
	}
	ds := slices.Clone(c.Examined.of(ctx, m.Dir.Parsed, func() diag.List { return c.examine(ctx, m.Dir) }))
	if tf != nil && slices.ContainsFunc(tf.Before, func(h unit.Hook) bool { return slices.Contains(h.Commands, c.Command) }) {
		return ds.AsWarnings()
	}
	return ds
}

// examine checks the module of a directory and all modules that it calls.
func (c *checker) examine(ctx context.Context, d *workcopy.UnitDirectory) diag.List {
	o := engine.Options{Dir: d.Path, Set: d.Parsed.Set, Sources: &d.Parsed.Sources, Files: d.Files, FilesOnDisk: true, Now: c.Now, ReadFile: c.ReadFile}
	o.Services = c.Services(d.Path)
	ds := c.Examiner.Module(ctx, o)
	if len(ds) == 0 {
		return nil
	}
	for _, m := range ds {
		if m.At == nil {
			continue
		}
		for _, r := range d.Parsed.Set.Remarks(*m.At) {
			m.Notes = append(m.Notes, diag.Note{Text: r.Text, At: &r.At})
		}
		if d.Files.Generated[filepath.ToSlash(filepath.Clean(m.At.Filename))] != nil {
			m.Notes = append(m.Notes, c.generatedBy(ctx, d, m.At.Filename)...)
		}
	}
	return placed(ds, func(name string) string {
		path := d.Files.Locate(name)
		if path == "" {
			path = filepath.Join(d.Path, name)
		}
		if d.Parsed.Set.Concealed(name) {
			c.Loader.Sources().Conceal(path)
		}
		if f := d.Parsed.Set.File(name); f != nil {
			c.Loader.Sources().Add(&source.File{Path: path, Bytes: f.Bytes, Layer: f.Layer})
		}
		return path
	})
}

// generatedBy returns a note with the block that generates a file.
func (c *checker) generatedBy(ctx context.Context, d *workcopy.UnitDirectory, name string) []diag.Note {
	all, _ := d.Unit.Generate(c.Static.Task(ctx))
	for _, g := range all {
		if filepath.Clean(g.Path) == filepath.Clean(name) && g.At != nil {
			return []diag.Note{{Text: "the file is generated here", At: g.At}}
		}
	}
	return nil
}

// rules checks the inputs of a unit with the validation rules of its module's variables. It
// returns nothing if other sources may override the inputs.
func (c *checker) rules(t *demand.Task, u *discovery.Unit, m *workcopy.Module, values map[string]engine.InputValue) diag.List {
	given := false
	for name, v := range m.Root.Variables {
		_, has := values[name]
		given = given || has && len(v.Validations) > 0
	}
	if !given || c.mayHaveValues(t.Context(), u, m) {
		return nil
	}
	return c.Examiner.Inputs(t.Context(), m.Root, values)
}

// placed replaces relative file names in the source ranges of messages. where returns the path of
// a file.
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
			continue // unchanged messages keep their identity, so that those of several units are reported once
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

// environmentGives reports whether the environment sets a variable.
func (c *checker) environmentGives(v *config.Variable) bool {
	_, env := c.Environ.Lookup("TF_VAR_" + v.Name)
	return env
}
