package estate

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// UnitFiles lists the files below a folder that hold units: those of the usual
// names and environment files.
func UnitFiles(root string) ([]string, diag.List) {
	found, ds := discover(Look{}, "", root)
	return found.units, ds
}

// Validate holds every unit and stack file to all rules that need no outputs. In an
// estate that was opened leniently, units that could not be read are told too.
func (e *Estate) Validate(ctx context.Context) diag.List {
	n := len(e.Units)
	all := parallel.Map(n+len(e.Stacks), 0, func(i int) diag.List {
		t := e.task(ctx)
		if i < n {
			return e.validate(t, e.Units[i])
		}
		st, ds := e.loader.Stack(t, filepath.Join(e.o.Root, filepath.FromSlash(e.Stacks[i-n]), unit.StackName))
		if st != nil {
			_, more := st.Items(t)
			ds = append(ds, more...)
		}
		return ds
	})
	return slices.Concat(all...)
}

func (e *Estate) validate(t *demand.Task, u *Unit) diag.List {
	switch {
	case u.Broken == nil:
		return u.Check(t)
	case u.Removed:
		return nil // its file is gone
	}
	units, ds := e.loader.Load(t, u.Path) // more may be wrong with it than what kept it from being read
	for _, in := range units {
		ds = append(ds, in.Check(t)...)
	}
	return ds
}

// An InputsReport is what compares badly between the inputs of a unit and the
// variables of its module.
type InputsReport struct {
	Unused  []string // inputs that the module does not declare, by name
	Missing []string // variables that need a value and get none, by name
}

// CompareInputs compares the inputs of a unit, and what gives values beside them,
// with the variables that its module declares. The module is fetched if it has to
// be.
func (e *Estate) CompareInputs(ctx context.Context, u *Unit) (*InputsReport, diag.List) {
	t := e.task(ctx)
	p, ds := e.placeOf(t, u, true)
	if p == nil || ds.HasErrors() {
		return nil, ds
	}
	u.place = p
	root, more := config.Load(".", config.Options{FS: p.files})
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	settings, more := u.Inputs(t, nil)
	ds = append(ds, more...)
	given, more := e.given(u, root.Variables)
	if ds = append(ds, more...); ds.HasErrors() {
		return nil, ds
	}
	out, have := &InputsReport{}, map[string]bool{}
	for _, s := range settings {
		if s.Name == "" {
			return out, ds // nothing can be said of inputs that hang on what is not known
		}
		have[s.Name] = true
		if root.Variables[s.Name] == nil {
			out.Unused = append(out.Unused, s.Name)
		}
	}
	for name, v := range root.Variables {
		if _, other := given[name]; v.Default == cty.NilVal && !have[name] && !other {
			out.Missing = append(out.Missing, name)
		}
	}
	slices.Sort(out.Missing)
	return out, ds
}

// PathFilter makes a test of absolute paths of queries: those that begin with !
// take away from what the others match, or from everything if there are no others.
// Files need not be units, so only queries about paths and names can be used.
func PathFilter(root string, texts []string) (func(path string) bool, diag.List) {
	queries, ds := parseQueries(texts)
	var take, drop []func(string) bool
	for _, q := range queries {
		t := q.terms[0]
		if len(q.terms) > 1 || t.kind != termPath && t.kind != termName || t.up > 0 || t.down > 0 {
			ds = append(ds, badFilter(q.text, "files are chosen by paths and names alone")...)
			continue
		}
		match := pathMatcher(root, t)
		if t.not {
			drop = append(drop, match)
		} else {
			take = append(take, match)
		}
	}
	matches := func(list []func(string) bool, path string) bool {
		return slices.ContainsFunc(list, func(f func(string) bool) bool { return f(path) })
	}
	return func(path string) bool {
		return (len(take) == 0 || matches(take, path)) && !matches(drop, path)
	}, ds
}

// pathMatcher matches a file by its path or one of the folders that it lies in, or
// by a name of one of them.
func pathMatcher(root string, t term) func(string) bool {
	if t.kind == termName {
		return func(path string) bool {
			rel, err := filepath.Rel(root, path)
			return err == nil && slices.ContainsFunc(strings.Split(filepath.ToSlash(rel), "/"), func(part string) bool { return glob(t.value, part) })
		}
	}
	text := t.value
	if !filepath.IsAbs(text) {
		text = filepath.Join(root, text)
	}
	pattern := filepath.ToSlash(filepath.Clean(text))
	return func(path string) bool {
		for path = filepath.ToSlash(path); path != ""; path = path[:strings.LastIndexByte(path, '/')] {
			if glob(pattern, path) {
				return true
			}
		}
		return false
	}
}

// Info is what a unit runs with, in the words of `info print`.
type Info struct {
	ConfigPath       string `json:"config_path"`
	DownloadDir      string `json:"download_dir"`
	IAMRole          string `json:"iam_role"`
	TerraformBinary  string `json:"terraform_binary"`
	TerraformCommand string `json:"terraform_command"`
	WorkingDir       string `json:"working_dir"`
}

// Info tells where a unit runs. Nothing is written. What cannot be found
// out is told as if the unit did not say it, with the errors; TerraformBinary is
// what the unit asks for, "" if it does not say.
func (e *Estate) Info(ctx context.Context, u *Unit) (*Info, diag.List) {
	t := e.task(ctx)
	sc, ds := u.Scalars(t)
	out := &Info{ConfigPath: u.Path, TerraformCommand: e.o.Request.Command, WorkingDir: u.Dir, DownloadDir: filepath.Join(u.Dir, ".terragrunt-cache")}
	if sc != nil {
		out.IAMRole, out.TerraformBinary = settingText(sc.IAMRole), settingText(sc.TerraformBinary)
	}
	if down := e.downloadDir(t, u); down != "" {
		if !filepath.IsAbs(down) {
			down = filepath.Join(u.Dir, down)
		}
		out.DownloadDir = filepath.Clean(down)
	}
	p, more := e.placeOf(t, u, true)
	if ds = append(ds, more...); p == nil || ds.HasErrors() {
		return out, ds
	}
	u.place, out.WorkingDir = p, p.dir
	return out, ds
}

// settingText is the text of a setting, "" if it is not set or not known.
func settingText(s *unit.Setting) string {
	if s == nil || !unit.Known(s.Value) {
		return ""
	}
	v, _ := s.Value.Unmark()
	if v.IsNull() || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}

// EnvironmentFiles lists the environment files directly in a folder.
func EnvironmentFiles(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, en := range entries {
		path := filepath.Join(dir, en.Name())
		if !en.IsDir() && isCandidate(en.Name()) && en.Name() != unit.StackName && holdsModule(path) {
			out = append(out, path)
		}
	}
	return out
}

// ModuleNames are the names of the units in environment files, as --module takes
// them.
func ModuleNames(ctx context.Context, o Options, files []string) ([]string, diag.List) {
	e := newEstate(o)
	var names []string
	var ds diag.List
	for _, path := range files {
		units, more := e.loader.Load(e.task(ctx), path)
		ds = append(ds, more...)
		for _, u := range units {
			if rel, err := filepath.Rel(filepath.Dir(path), u.ID); err == nil {
				names = append(names, filepath.ToSlash(rel))
			}
		}
	}
	return names, ds
}
