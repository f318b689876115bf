package workspace

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/lang/origin"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/unit"
)

// # Stacks
//
// A stack file generates units from the files of a source directory. The result generates them in
// memory, so that the source is seen as the unit that it becomes: with its values, and with paths
// relative to the generated directory. Sources that are not local are left out unless they are in the
// cache.

// maxGenerated is the number of units of a stack that are checked for the values that they lack.
const maxGenerated = 50

// A Stack is the result of reading one stack file.
type Stack struct {
	Path  string
	Diags diag.List // with absolute paths, also about the stacks that it generates
	// Units contains the paths of the unit files that the stack generates, by the path of their source.
	Units map[string][]string
	// Dirs contains the generated directories, by the block that generates them. If the block's file is
	// generated more than once, the first directory counts.
	Dirs map[StackBlock]string

	s       *Session
	reading *reading
	op      *opening
}

// A StackBlock is a block of a stack file.
type StackBlock struct {
	Path    string // of the file; of the source, if the file is generated
	Address string // such as "unit.app"
}

// Stack returns the result for a stack file with the files as they are now. It is nil if ctx ended.
func (s *Session) Stack(ctx context.Context, path string) *Stack {
	return s.stacks.get(ctx, s, path, s.readStack)
}

func (st *Stack) read() *reading { return st.reading }

func (st *Stack) close() {}

// generator returns the path of the stack file that generates a directory, or "".
func (s *Session) generator(dir string) string {
	s.mu.Lock()
	path := s.generated[dir]
	s.mu.Unlock()
	if path == "" || !s.Files.Exists(path) { // the stack file was deleted
		return ""
	}
	return path
}

// FindGenerator reads the stack files in the parents of a directory that does not exist, until one generates a
// unit there. After that, the unit can be read.
func (s *Session) FindGenerator(ctx context.Context, dir string) {
	if _, err := os.Stat(dir); err == nil || s.generator(dir) != "" {
		return
	}
	for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
		if path := filepath.Join(at, unit.StackName); s.Files.Exists(path) {
			if s.Stack(ctx, path); s.generator(dir) != "" || ctx.Err() != nil {
				return
			}
		}
		if filepath.Dir(at) == at {
			return
		}
	}
}

// generate generates the units of a stack file into the overlay of op.
func (s *Session) generate(ctx context.Context, op *opening, path string) (items []unit.StackItem, ds diag.List) {
	o := op.options
	found := []string{path}
	op.reading.note(path)
	op.reading.note(filepath.Join(filepath.Dir(path), unit.ValuesName))
	op.publish(path)
	_, ds = stacks.Generate(ctx, stacks.Settings{
		Env: o.UnitEnv(filepath.Dir(path)), Fetch: o.Sources.Fetch, Whole: true, Overlay: op.overlay,
		Generated: func(it *unit.StackItem) {
			items = append(items, *it)
			from := op.overlay.Locate(it.Dir)
			for _, name := range []string{unit.DefaultName, unit.DefaultJSONName, unit.StackName, unit.ValuesName} {
				op.reading.note(filepath.Join(from, name))
			}
			if it.Kind == "stack" {
				op.publish(filepath.Join(from, unit.StackName))
				found = append(found, filepath.Join(it.Dir, unit.StackName))
			}
		},
		Empty: func(string) {},
	}, op.dir.Set, func(int) ([]string, diag.List) { return found, nil })
	return items, ds
}

// publish makes the texts of a file known, so that values from it are shown.
func (op *opening) publish(path string) {
	if text, err := op.reading.files.ReadFile(path); err == nil {
		op.redactor.Publish(string(text))
	}
}

// readStack reads a stack file.
func (s *Session) readStack(ctx context.Context, path string, _ *Stack) *Stack {
	op := s.opening(filepath.Dir(path))
	st := &Stack{Path: path, Units: map[string][]string{}, Dirs: map[StackBlock]string{}, s: s, reading: op.reading, op: op}
	if !op.ok {
		return st
	}
	f := s.Index.File(path)
	values := filepath.Join(filepath.Dir(path), unit.ValuesName)
	op.reading.note(values)
	if !s.Files.Exists(values) && slices.ContainsFunc(f.Names, func(o index.Occurrence) bool { return o.Via == "values" }) {
		// The stack is a part of others, which give it values. Most of it is not known here.
		l := unit.NewLoader(op.options.UnitEnv(filepath.Dir(path)))
		_, st.Diags = l.Stack(l.Task(ctx), path)
		return st
	}
	items, ds := s.generate(ctx, op, path)
	for _, m := range ds {
		if m.Code != diag.CodeUnitNotFetched {
			st.Diags = append(st.Diags, m)
		}
	}
	s.mu.Lock()
	if s.generated == nil {
		s.generated = map[string]string{}
	}
	for dir, by := range s.generated {
		if by == path {
			delete(s.generated, dir)
		}
	}
	for i := range items {
		it := &items[i]
		if b := (StackBlock{op.overlay.Source(it.At.Filename), it.Kind + "." + it.Name}); st.Dirs[b] == "" {
			st.Dirs[b] = it.Dir
		}
		if it.Kind == "unit" {
			s.generated[it.Dir] = path
			from := s.UnitFile(op.overlay.Locate(it.Dir))
			st.Units[from] = append(st.Units[from], filepath.Join(it.Dir, filepath.Base(from)))
		}
	}
	s.mu.Unlock()
	st.Diags = append(st.Diags, st.lacking(ctx, items)...)
	st.Diags = st.Diags.Rename(op.overlay.Source).Once()
	return st
}

// lacking returns errors about values that generated units use and the stack does not give.
func (st *Stack) lacking(ctx context.Context, items []unit.StackItem) (ds diag.List) {
	l := unit.NewLoader(st.op.options.UnitEnv(filepath.Dir(st.Path)))
	left := maxGenerated
	for i := range items {
		it := &items[i]
		if left--; left < 0 || ctx.Err() != nil {
			break
		}
		if it.Kind != "unit" {
			continue
		}
		t := l.Task(ctx)
		units, more := l.Load(t, it.Dir)
		for _, u := range units {
			more = append(more, u.Check(t)...)
		}
		for _, m := range more.Errors() {
			if m.Code != diag.CodeUnitUnsupportedAttribute || m.At == nil {
				continue
			}
			at := *m.At
			at.Filename = st.op.overlay.Source(at.Filename)
			if slices.ContainsFunc(st.s.Index.File(at.Filename).Names, func(o index.Occurrence) bool {
				return o.Via == "values" && at.Start.Byte <= o.Start && o.End <= at.End.Byte
			}) {
				missing := diag.Errorf(diag.CodeUnitUnsupportedAttribute, &it.At, "Unsupported attribute", "The %s %q needs a value that this block does not give: %s", it.Kind, it.Address(), m.Detail)
				ds = append(ds, missing.Note(&at, "the value is used here")...)
			}
		}
	}
	return ds
}

// Explain explains the value at an address in the stack file: a local value, a value that the stack gets,
// or the path of a part.
func (st *Stack) Explain(ctx context.Context, address string) (*explanation.Explanation, diag.List) {
	if !st.op.ok {
		return nil, st.Diags
	}
	l := unit.NewLoader(st.op.options.UnitEnv(filepath.Dir(st.Path)))
	t := l.Task(ctx)
	stack, ds := l.Stack(t, st.Path)
	if stack == nil || ds.HasErrors() {
		return nil, ds
	}
	shown := func(file string) (string, string) {
		return sys.RelativeTo(filepath.Dir(st.Path), st.op.overlay.Source(file)), ""
	}
	x := &origin.Explainer{Set: l.Sources(), Unit: stack.Origin(t), Show: shown}
	out, ds := x.Explain(t, address)
	if out != nil {
		for _, s := range out.Steps {
			s.Text = st.op.redactor.Text(s.Text)
		}
	}
	return out, ds
}
