// Package migrate rewrites unit files from include blocks and
// read_terragrunt_config to import blocks, and back, where that provably means the same.
//
// Imports and Includes make a Plan: they edit the files in memory, render every unit
// that an edit touches before and after, and keep what renders equal. The main type
// is Plan. The one rule to obey: nothing is written that was not compared.
package migrate

// # How it works
//
// An included file is evaluated in its child's context, an imported one in its
// own folder. So the files that a file includes change together with it:
// functions that mean the child's folder there become those that mean the leaf
// unit's, and relative paths are resolved from the leaf's folder. Children that
// cannot go over keep their include blocks; the functions are chosen so that a
// file that is still included by some means the same to them.
//
// Calls of read_terragrunt_config go over one file at a time: a local value that
// is nothing but such a call becomes an import of that name, if all that is
// asked of it are parts of it.
//
// What cannot be rewritten is found while editing, what would mean something
// else by rendering. Comparing is done on the rendered JSON with paths made
// absolute, and on the edges between units.
//
// A shared file is judged by the units that render. One that fails before and after,
// that comes out differently each time, or that is a file which others include, says
// nothing. Time, credentials and environment variables that nobody set are the same
// for all that is compared.

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/textdiff"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// A Plan is what can be rewritten and what is left alone.
type Plan struct {
	Changes []Change // by path
	Left    []Left   // by path and place
	Units   int      // how many units were looked at
	Touched int      // how many of them an edit touches, all of them compared
}

// Write writes the changed files. Each must be as it was when the plan was made.
func (p *Plan) Write() diag.List {
	for _, c := range p.Changes {
		if now, err := readfile.Whole(c.Path); err != nil || string(now) != string(c.Before) {
			return diag.Errorf(diag.CodeCLIFileChanged, nil, "File changed meanwhile", "The file %s is no longer as it was when the migration began. Nothing was written.", c.Path)
		}
	}
	for i, c := range p.Changes {
		if err := atomicfile.Rewrite(c.Path, c.After); err != nil {
			return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write file", "%d of %d files were written; then: %s. What was written and what was not go together only as a whole: run the command again when the reason is gone.", i, len(p.Changes), err)
		}
	}
	return nil
}

// A Change is one file before and after.
type Change struct {
	Path          string
	Before, After []byte
}

// Diff returns the change in the unified format, with the head that Terragrunt prints. "" means
// that nothing changes.
func (c Change) Diff() string {
	before, after := "old/"+filepath.ToSlash(c.Path), "new/"+filepath.ToSlash(c.Path)
	text := textdiff.Unified(before, after, c.Before, c.After)
	if text == "" {
		return ""
	}
	return "diff " + before + " " + after + "\n" + text
}

// Left is something that stays as it is, and why.
type Left struct {
	Path   string
	At     source.Range // zero if it is the file as a whole
	Reason string
}

// Imports plans the migration of the unit files at the given paths and of the
// files that they include or read. others are units that may use the same files
// and are not to be rewritten: they must come out as before too. env is what the
// units are rendered in; its Tolerant is set. No file is written.
func Imports(ctx context.Context, env unit.Env, units, others []string) (*Plan, error) {
	m := newMigration(ctx, env, units, others)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.includes()
	m.reads()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m.plan(), nil
}

// newMigration renders the units as they are.
func newMigration(ctx context.Context, env unit.Env, units, others []string) *migration {
	env.Tolerant, env.Checking = true, true // what takes credentials is unknown here and there
	if now := env.Machine.Now; now != nil { // one time for all that is compared
		at := now()
		env.Machine.Now = func() time.Time { return at }
	}
	m := &migration{ctx: ctx, env: env, texts: map[string][]byte{}, orig: map[string][]byte{}, asked: map[string]bool{}}
	for _, p := range units {
		m.asked[p] = true
	}
	m.units = slices.Compact(slices.Sorted(slices.Values(slices.Concat(units, others))))
	m.before = m.look(nil)
	if m.setMissingEnv() {
		m.before = m.look(nil)
	}
	return m
}

// setMissingEnv gives environment variables that units need and nobody set a value, the
// same for all that is compared. It reports whether there are any.
func (m *migration) setMissingEnv() bool {
	files := slices.Clone(m.units)
	for _, l := range m.before {
		files = append(files, l.files...)
		for _, in := range l.includes {
			files = append(files, in.Path)
		}
	}
	slices.Sort(files)
	var set []string
	for _, path := range slices.Compact(files) {
		d, err := m.parse(path)
		if err != nil {
			continue
		}
		for _, c := range calls(d.body) {
			if c.Name != "get_env" || len(c.Args) != 1 {
				continue
			}
			if name, ok := literal(c.Args[0]); ok && name != "" {
				if _, has := m.env.Machine.Environ.Lookup(name); !has {
					set = append(set, name+"=terrace")
				}
			}
		}
	}
	if len(set) > 0 {
		m.env.Machine.Environ = m.env.Machine.Environ.With(set...)
	}
	return len(set) > 0
}

// migration is one run.
type migration struct {
	ctx    context.Context
	env    unit.Env
	units  []string
	asked  map[string]bool   // those of the units that are to be rewritten
	before []*look           // by unit
	orig   map[string][]byte // texts as they are on disk, of the files that were edited
	texts  map[string][]byte // texts as edited, by path
	left   []Left
	// included are the files that others still include after the first step.
	included map[string]bool
}

// plan tells the result.
func (m *migration) plan() *Plan {
	p := &Plan{Units: len(m.asked), Left: m.left}
	for path, text := range m.texts {
		if !bytes.Equal(text, m.orig[path]) {
			p.Changes = append(p.Changes, Change{path, m.orig[path], text})
		}
	}
	slices.SortFunc(p.Changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	slices.SortStableFunc(p.Left, func(a, b Left) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return a.At.Start.Byte - b.At.Start.Byte
	})
	changed := make(map[string]bool, len(p.Changes))
	for _, c := range p.Changes {
		changed[c.Path] = true
	}
	for _, l := range m.before {
		if changed[l.path] || slices.ContainsFunc(l.files, func(f string) bool { return changed[f] }) {
			p.Touched++
		}
	}
	return p
}

// leave notes that something stays as it is.
func (m *migration) leave(path string, at source.Range, reason string) {
	l := Left{path, at, reason}
	if !slices.Contains(m.left, l) {
		m.left = append(m.left, l)
	}
}

// overlay is the environment in which edited files are read in place of those
// on disk.
func (m *migration) overlay(texts map[string][]byte) unit.Env {
	env := m.env
	read := env.ReadFile
	env.ReadFile = func(path string) ([]byte, error) {
		if text, ok := texts[path]; ok {
			return text, nil
		}
		if read != nil {
			return read(path)
		}
		return readfile.Whole(path)
	}
	return env
}

// text is a file as it stands after the edits so far.
func (m *migration) text(path string) ([]byte, error) {
	if text, ok := m.texts[path]; ok {
		return text, nil
	}
	read := m.env.ReadFile
	if read == nil {
		read = readfile.Whole
	}
	return read(path)
}

// parse reads a file of the native syntax.
func (m *migration) parse(path string) (*document, error) {
	if strings.HasSuffix(path, ".json") {
		return nil, errJSON
	}
	text, err := m.text(path)
	if err != nil {
		return nil, err
	}
	if _, deep := source.TooDeep(path, text); deep {
		return nil, errors.New("it is nested too deeply")
	}
	f, diags := hclnative.ParseConfig(text, path)
	if diags.HasErrors() {
		return nil, errors.New("it has errors")
	}
	body, ok := f.Body.(*hclsyntax.Body)
	if !ok {
		return nil, fs.ErrInvalid
	}
	return &document{path: path, text: text, body: body, tidy: bytes.Equal(hclwrite.Format(text), text)}, nil
}

var errJSON = errors.New("it is written in JSON, which is not rewritten")

// set takes new texts into the migration.
func (m *migration) set(path string, text []byte) {
	if _, again := m.orig[path]; !again {
		old, _ := m.text(path)
		m.orig[path] = old
	}
	m.texts[path] = text
}

// look renders all units in parallel.
func (m *migration) look(texts map[string][]byte) []*look {
	l := unit.NewLoader(m.overlay(texts))
	return parallel.Map(len(m.units), 0, func(i int) *look {
		if m.ctx.Err() != nil {
			return &look{path: m.units[i]}
		}
		return lookAt(l, l.Task(m.ctx), m.units[i])
	})
}

// merged is the texts so far with others over them.
func (m *migration) merged(more map[string][]byte) map[string][]byte {
	out := make(map[string][]byte, len(m.texts)+len(more))
	for p, t := range m.texts {
		out[p] = t
	}
	for p, t := range more {
		out[p] = t
	}
	return out
}
