package unit

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/internal/unit/functions"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// A Loader reads and evaluates the unit files of an estate. It parses and evaluates shared
// files once. Its methods may be called concurrently; each goroutine needs a task of its
// own.
type Loader struct {
	*common
	env Env

	mu      sync.Mutex
	outputs map[string]*outputCell
	full    map[*evaluation]map[*evaluation]*cells // values computed with the outputs of this loader, by the leaf and the file
	// outputsDiffer reports whether the outputs of a target differ in the other version of the files. nil
	// means that they all do.
	outputsDiffer func(ctx context.Context, target string) bool
	noMocks       bool // missing outputs are unknown, even if there are mock outputs
}

// common contains the data that a loader shares with loaders from WithOutputs: everything except
// outputs.
type common struct {
	graph      *demand.Graph
	partial    func() *Loader // returns the lenient loader, which reads what it can of files with errors; a lenient loader returns itself
	lenient    bool           // whether this is a lenient loader
	files      parallel.Cache[string, *syntax.File]
	evs        parallel.Cache[evKey, *evaluation]
	disk       *functions.Files // cached status of files
	library    *functions.Library
	tables     parallel.Cache[string, *hcl.EvalContext] // by directory
	warns      parallel.Cache[string, diag.List]
	messages   parallel.Cache[messageKey, *diag.Message]
	pure       func() *hcl.EvalContext
	changes    *changes
	readUnit   func(path string) ([]byte, error) // reads a file that is parsed; unlike env.ReadFile, it leaves changes.unsure alone
	set        source.Set
	parsed     atomic.Int64
	evaluated  atomic.Int64
	mu         sync.Mutex
	deprecated map[string]bool // files with include blocks, or calls of their functions
}

type evKey struct {
	path string
	role role
}

// NewLoader returns a loader. The Env must not be changed afterwards.
func NewLoader(env Env) *Loader {
	readUnit := env.reader()
	changes := newChanges(&env)
	l := &Loader{common: &common{graph: &demand.Graph{Attempts: true}, deprecated: map[string]bool{}, changes: changes, readUnit: readUnit}, env: env}
	if env.Redactor == nil {
		l.env.Redactor = &diag.Redactor{}
	}
	l.env.Redactor.Publish(l.env.WorkingDir)
	l.disk = functions.NewFiles(l.env.tree())
	l.library = &functions.Library{
		Machine: env.Machine, Request: env.Request, Files: l.disk, ReadFile: l.env.readFile, Answers: &functions.Answers{},
		ConfigName: env.configName(), Checking: env.Checking, UnsetUnknown: env.UnsetUnknown, UnitEnviron: env.UnitEnviron, Echo: env.Echo, Do: env.Do,
	}
	l.outputs, l.full = map[string]*outputCell{}, map[*evaluation]map[*evaluation]*cells{}
	l.pure = sync.OnceValue(func() *hcl.EvalContext {
		return &hcl.EvalContext{Functions: l.table(env.WorkingDir)}
	})
	l.common.partial = sync.OnceValue(l.newPartial)
	return l
}

// newPartial returns the lenient loader. It reads what it can of each file, and ignores
// errors in files and imports and includes that cannot be followed. It has its own files
// and evaluations and shares everything else.
func (l *Loader) newPartial() *Loader {
	n := &Loader{common: &common{
		graph: l.graph, lenient: true, disk: l.disk, readUnit: l.env.readFile, library: l.library, pure: l.pure, deprecated: map[string]bool{},
	}, env: l.env, outputs: map[string]*outputCell{}, full: map[*evaluation]map[*evaluation]*cells{}}
	n.common.partial = func() *Loader { return n }
	return n
}

// WithOutputs returns a loader that shares the files, and the values computed without
// outputs, with l. It fetches outputs again. Unit.In moves a unit to it. Tasks of either
// loader may be used with both.
func (l *Loader) WithOutputs(outputs OutputsFunc) *Loader {
	n := &Loader{common: l.common, env: l.env, outputs: map[string]*outputCell{}, full: map[*evaluation]map[*evaluation]*cells{}}
	n.env.Outputs = outputs
	return n
}

// WithoutOutputs returns a loader like that of WithOutputs, for which no dependency has
// outputs. Without mocks, outputs are unknown even if a dependency has mock outputs.
func (l *Loader) WithoutOutputs(mocks bool) *Loader {
	n := l.WithOutputs(func(*Task, string, source.Range) (cty.Value, bool, diag.List) { return cty.DynamicVal, false, nil })
	n.noMocks = !mocks
	return n
}

// fullCells returns the cells of an evaluation that are computed with outputs.
func (l *Loader) fullCells(e, leaf *evaluation) *cells {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.full[leaf]
	if of == nil {
		of = map[*evaluation]*cells{}
		l.full[leaf] = of
	}
	s := of[e]
	if s == nil {
		s = new(cells)
		of[e] = s
	}
	return s
}

// forget discards the values that were computed for leaves with the outputs of this loader. nil is
// no leaf.
func (l *Loader) forget(leaves ...*evaluation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, leaf := range leaves {
		if leaf != nil {
			delete(l.full, leaf)
		}
	}
}

// ForgetOutputs discards the outputs of a target; see Env.Outputs. They are fetched again on demand.
func (l *Loader) ForgetOutputs(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.outputs, target)
}

// Task starts a task of evaluation, for one goroutine. A task must not be used with a
// loader other than l and those from its WithOutputs.
func (l *Loader) Task(ctx context.Context) *demand.Task { return l.graph.Task(ctx) }

// Sources returns the text of the files that were read, for showing messages.
func (l *Loader) Sources() *source.Set { return &l.set }

// Parsed returns the number of files that were read and parsed so far.
func (l *Loader) Parsed() int { return int(l.parsed.Load()) }

// Evaluated returns the number of whole files that were evaluated so far. A file counts
// once for each context in which it was evaluated.
func (l *Loader) Evaluated() int { return int(l.evaluated.Load()) }

// Deprecated returns a warning with the number of files that use include blocks or their
// functions, or nil if there are none.
func (l *Loader) Deprecated() diag.List {
	l.common.mu.Lock()
	defer l.common.mu.Unlock()
	n := len(l.deprecated)
	if n == 0 {
		return nil
	}
	files := "1 file uses"
	if n > 1 {
		files = fmt.Sprintf("%d files use", n)
	}
	return diag.Warnf(diag.CodeUnitIncludeDeprecated, nil, "Include is deprecated", "%s include blocks or the functions that belong to them (get_parent_terragrunt_dir, path_relative_to_include, path_relative_from_include). They go on working. Import blocks do the same without hidden context; \"terrace migrate imports\" rewrites them.", files)
}

// file parses a file once. A file that cannot be read has no Src, and the next call reads
// it again.
func (l *Loader) file(path string, spec *syntax.BlockSpec) *syntax.File {
	return l.files.Local(path+"\x00"+spec.Name, func() (*syntax.File, bool) {
		f := l.parse(path, spec)
		return f, f.Src != nil
	})
}

// unshared parses a unit's own file without caching it: the syntax trees of all units of a
// large estate would need too much memory.
func (l *Loader) unshared(path string, spec *syntax.BlockSpec) *syntax.File {
	if f, ok := l.files.Get(path + "\x00" + spec.Name); ok {
		return f
	}
	return l.parse(path, spec)
}

func (l *Loader) parse(path string, spec *syntax.BlockSpec) *syntax.File {
	text, err := l.readUnit(path)
	if err != nil && l.lenient {
		return &syntax.File{Path: path, Dir: filepath.Dir(path)}
	}
	if err != nil {
		return &syntax.File{Path: path, Dir: filepath.Dir(path), Diags: diag.List{{
			Code: diag.CodeUnitCannotRead, Summary: "Cannot read file", Detail: fmt.Sprintf("The file %s cannot be read: %s.", path, plainError(err)),
		}}}
	}
	l.parsed.Add(1)
	if l.lenient { // its files are changed
		return readable(syntax.Parse(path, text, spec))
	}
	f := l.env.Parses.Parse(path, text, spec)
	l.changes.parsed(f, spec)
	l.set.Add(f.Src)
	l.noteDeprecated(f)
	return f
}

// readable returns the parts of a file with errors that could be read, without the errors.
func readable(f *syntax.File) *syntax.File {
	if f.Diags = nil; f.Root == nil {
		f.Root = f.Part
	}
	return f
}

func plainError(err error) string {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

func (l *Loader) noteDeprecated(f *syntax.File) {
	old := f.Root.First("include") != nil
	for _, name := range [...]string{"get_parent_terragrunt_dir", "path_relative_to_include", "path_relative_from_include"} {
		old = old || f.Calls[name] != nil
	}
	if old {
		l.common.mu.Lock()
		l.deprecated[f.Path] = true
		l.common.mu.Unlock()
	}
}

// shared returns the evaluation of a file that all its users share.
func (l *Loader) shared(path string, r role) *evaluation {
	if r == importRole {
		path = l.canonical(path)
	}
	return l.evs.Local(evKey{path, r}, func() (*evaluation, bool) {
		l.evaluated.Add(1)
		spec := syntax.Language().Unit
		if filepath.Base(path) == syntax.StackName {
			spec, r = syntax.Language().Stack, stackRole
		}
		f := l.file(path, spec)
		return newEvaluation(l, f, r, f.Dir), f.Src != nil
	})
}

// canonical returns the one path under which an imported file is evaluated, whichever
// symbolic links lead to it. It is below the working directory if the file is.
func (l *Loader) canonical(path string) string {
	id := l.disk.Identity(path)
	if id == path || l.env.WorkingDir == "" {
		return id
	}
	real := l.disk.Identity(l.env.WorkingDir)
	if rest, ok := strings.CutPrefix(id, real+string(filepath.Separator)); ok {
		return filepath.Join(l.env.WorkingDir, rest)
	}
	return id
}

// IsFile reports whether a path is a file.
func (l *Loader) IsFile(path string) bool { return l.disk.Exists(path) && !l.disk.IsDir(path) }

// Exists reports whether a file or directory exists, on disk or among the files in memory.
func (l *Loader) Exists(path string) bool { return l.disk.Exists(path) }

// unitFile returns the unit file of a directory, or "". As in Terragrunt, JSON has
// precedence.
func (l *Loader) unitFile(dir string) string {
	names := []string{syntax.DefaultJSONName, syntax.DefaultName}
	if l.env.ConfigName != "" && !slices.Contains(names, l.env.ConfigName) {
		names = []string{l.env.ConfigName}
	}
	for _, name := range names {
		if p := filepath.Join(dir, name); l.disk.Exists(p) && !l.disk.IsDir(p) {
			return p
		}
	}
	return ""
}

// table returns the functions that do not depend on a unit.
func (l *Loader) table(dir string) map[string]function.Function {
	return funcs.Table(funcs.Config{BaseDir: dir, Home: l.env.Machine.Home, Now: l.env.Machine.Now, ReadFile: l.env.ReadFile, Stat: l.env.Stat, ReadDir: l.env.ReadDir, Comparing: l.env.Checking})
}

// functions returns the evaluation context with the functions of the configuration language
// that a file may call.
func (l *Loader) functions(f *syntax.File, t syntax.Tables) *hcl.EvalContext {
	switch {
	case t&syntax.DirTable != 0:
		return l.tables.Pure(f.Dir, func() *hcl.EvalContext { return &hcl.EvalContext{Functions: l.table(f.Dir)} })
	case t != 0:
		return l.pure()
	}
	return nil
}

// valuesOf returns the evaluation of the values file next to a file, or nil.
func (l *Loader) valuesOf(e *evaluation) *evaluation {
	path := filepath.Join(e.dir, syntax.ValuesName)
	if e.role == valuesRole || !l.disk.Exists(path) {
		return nil
	}
	return l.evs.Local(evKey{path, valuesRole}, func() (*evaluation, bool) {
		f := l.file(path, valuesSpec)
		return newEvaluation(l, f, valuesRole, e.dir), f.Src != nil
	})
}

var valuesSpec = &syntax.BlockSpec{Name: "values file", Open: true}

// intern returns the same pointer for equal messages about the same range, because callers
// compare messages by pointer.
func (l *Loader) intern(m *diag.Message) *diag.Message {
	key := messageKey{code: m.Code, summary: m.Summary, detail: m.Detail}
	if m.At != nil {
		key.at = *m.At
	}
	return l.messages.Pure(key, func() *diag.Message { return m })
}

// messageKey identifies equal messages about the same range.
type messageKey struct {
	code, summary, detail string
	at                    source.Range
}
