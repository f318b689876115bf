// Package migrate rewrites unit files from include blocks and read_terragrunt_config to
// import blocks, and back, if the result is proven to mean the same.
//
// The main type is Plan. Imports and Includes make one: they edit the files in memory,
// render every affected unit before and after, and keep the edits with equal results. The
// one rule to obey: only compared files are written.
package migrate

// # How it works
//
// An included file is evaluated in the context of its child, an imported file in its own
// directory. So the files that a file includes are edited together with it: functions that
// return the child's directory are replaced by those that return the leaf unit's, and
// relative paths are resolved from the leaf's directory. Children that cannot be migrated
// keep their include blocks. The functions are chosen so that a file that is still included
// means the same to these children.
//
// Calls of read_terragrunt_config are migrated file by file. A local value that is only
// such a call becomes an import of that name, if all references to it read a part of it.
//
// Editing finds configuration that cannot be rewritten. Rendering finds configuration whose
// meaning would change. The comparison uses the rendered JSON with absolute paths, and the
// edges between units.
//
// Only units that can be rendered are evidence about a shared file. Excluded are units that
// fail before and after, units whose result varies, and files that others include. The
// time, credentials and unset environment variables are the same for all compared
// renderings.

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

// A Plan is a set of file changes, and a list of configuration that is not rewritten.
type Plan struct {
	Changes []Change // by path
	Left    []Left   // by path and range
	Units   int      // number of rendered units
	Touched int      // number of units that an edit affects; all of them were compared
}

// Write writes the changed files. It fails for a file that changed after the plan was made.
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

// A Change is one file before and after the edit.
type Change struct {
	Path          string
	Before, After []byte
}

// Diff returns the change in unified format, with the header that Terragrunt prints. It
// returns "" if nothing changes.
func (c Change) Diff() string {
	before, after := "old/"+filepath.ToSlash(c.Path), "new/"+filepath.ToSlash(c.Path)
	text := textdiff.Unified(before, after, c.Before, c.After)
	if text == "" {
		return ""
	}
	return "diff " + before + " " + after + "\n" + text
}

// Left is something that is not rewritten, with the reason.
type Left struct {
	Path   string
	At     source.Range // zero for the whole file
	Reason string
}

// Imports plans the migration of the unit files at the given paths and of the files that
// they include or read. others are units that are not rewritten but may use the same files;
// they must be rendered as before too. Units are rendered in env, with Tolerant set.
// Imports writes no file.
func Imports(ctx context.Context, env unit.Env, units, others []string) (*Plan, error) {
	return rewritten(ctx, env, units, others, (*migration).includes, (*migration).reads)
}

// IncludeBlocks is like Imports, but leaves read_terragrunt_config alone. Of a unit that is in the
// result, it rewrites all include blocks. The other units keep their include blocks for other tools: a
// file that one of them includes gets no function that Terragrunt lacks.
func IncludeBlocks(ctx context.Context, env unit.Env, units, others []string) (*Plan, error) {
	return rewritten(ctx, env, units, others, func(m *migration) {
		m.portable = true
		m.includes()
	})
}

func rewritten(ctx context.Context, env unit.Env, units, others []string, steps ...func(*migration)) (*Plan, error) {
	m := newMigration(ctx, env, units, others)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, step := range steps {
		step(m)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m.plan(), nil
}

// newMigration renders the unedited units.
func newMigration(ctx context.Context, env unit.Env, units, others []string) *migration {
	env.Tolerant, env.Checking = true, true // values that need credentials are unknown in all renderings
	if now := env.Machine.Now; now != nil { // the same time for all renderings
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

// setMissingEnv sets environment variables that units read and that are not set, to the
// same values in all renderings. It reports whether there are any.
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

// migration is one migration of a set of units.
type migration struct {
	ctx    context.Context
	env    unit.Env
	units  []string
	asked  map[string]bool   // the units to rewrite
	before []*look           // by unit
	orig   map[string][]byte // texts on disk of the files that were edited
	texts  map[string][]byte // edited texts, by path
	left   []Left
	// included are the files that are still included after the first step.
	included map[string]bool
	// portable means that files which units that are not requested include must be valid for Terragrunt.
	portable bool
}

// plan returns the result.
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

// leave records something that is not rewritten.
func (m *migration) leave(path string, at source.Range, reason string) {
	l := Left{path, at, reason}
	if !slices.Contains(m.left, l) {
		m.left = append(m.left, l)
	}
}

// overlay returns the environment in which edited texts replace the files on disk.
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

// text returns a file after the edits so far.
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

// parse reads a file in native syntax.
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

// set records the new text of a file.
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

// merged returns the edited texts so far, replaced by those in more.
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
