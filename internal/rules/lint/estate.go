package lint

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/terrace-iac/terrace/unit/migrate"
	"github.com/zclconf/go-cty/cty"
)

// Units checks the units of an estate and their modules, if these are on this machine. Read may be
// called concurrently, once for each unit, and Findings after that.
type Units struct {
	l     *Linter
	e     *estate.Estate
	units []*unitFacts
	// shared are the files that other files import, include or read.
	shared map[string]bool
}

// Units returns a check of the units of an estate.
func (l *Linter) Units(e *estate.Estate) *Units {
	return &Units{l: l, e: e, units: make([]*unitFacts, len(e.Found.Units)), shared: map[string]bool{}}
}

// Read reads the unit with the given index. The estate may forget the unit afterwards. If no lint is
// on, only errors in the configuration of the unit are reported.
func (s *Units) Read(ctx context.Context, i int) {
	s.units[i] = s.l.unit(ctx, s.e, s.e.Found.Units[i])
}

// Findings returns the findings. env is the environment in which the units are evaluated.
func (s *Units) Findings(ctx context.Context, env unit.Env) ([]*finding.Finding, diag.List) {
	l, all := s.l, s.units
	var ds diag.List
	for _, u := range all {
		ds = append(ds, u.ds...)
		for _, f := range u.files[min(1, len(u.files)):] {
			s.shared[f.path] = true
		}
	}
	done := map[string]bool{}
	var out []*finding.Finding
	for _, u := range all {
		out = append(out, u.module...)
		out = append(out, l.selected(s.ofUnit(u), u.files)...)
		for i, f := range u.files {
			if done[f.path] {
				continue
			}
			done[f.path] = true
			name := ""
			if i == 0 && !s.shared[f.path] {
				name = u.name
			}
			out = append(out, l.selected(ofFile(f, name), []*facts{f})...)
		}
	}
	if l.On[UnusedOutput] {
		out = append(out, l.selected(s.outputs(), nil)...)
	}
	if l.On[IncludeAsImport] {
		found, more := s.includes(ctx, env)
		ds = append(ds, more...)
		out = append(out, found...)
	}
	return finding.Sort(out), append(ds, l.Errors()...).Once()
}

// unitFacts contains the parts of one unit that lints check.
type unitFacts struct {
	name   string
	id     string
	files  []*facts // the unit's file, then the *.hcl files that it reads
	source *unit.Setting
	edges  []unit.Edge
	over   []unit.Overridden
	mod    *Module // nil if the module is not part of the estate, or not on this machine
	module []*finding.Finding
	ds     diag.List
}

func (l *Linter) unit(ctx context.Context, e *estate.Estate, u *discovery.Unit) *unitFacts {
	out := &unitFacts{name: u.Name, id: u.ID}
	cfg, ds := e.Config(ctx, u)
	if out.ds = ds; cfg == nil || ds.HasErrors() || l.On.None() {
		return out
	}
	out.source, out.edges = cfg.Source, cfg.Edges
	if l.On[OverriddenValue] {
		out.over = e.Overridden(ctx, u)
	}
	paths := []string{u.Path}
	for _, path := range slices.Sorted(slices.Values(cfg.Files)) {
		if path != u.Path && strings.HasSuffix(path, ".hcl") {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		if f := e.Sources().File(path); f != nil {
			out.files = append(out.files, l.facts(File{Path: path, Text: f.Bytes, Unit: true}))
		} else if text, err := readfile.Whole(path); err == nil {
			out.files = append(out.files, l.facts(File{Path: path, Text: text, Unit: true}))
		}
	}
	if src := text(cfg.Source); cfg.Module == nil || remote(src) {
		return out
	}
	m := l.modules.Local(cfg.Shared(), func() (checkedModule, bool) {
		m := NewModule(cfg.Module, func(name string) string {
			path, _ := cfg.Origin(name)
			return path
		})
		m.Dir = ""
		for i := range m.Files {
			f := &m.Files[i]
			if _, f.Generated = cfg.Origin(f.Name); m.Dir == "" && !f.Generated {
				m.Dir = filepath.Dir(f.Path)
			}
		}
		if m.Dir == "" {
			return checkedModule{m, nil}, true
		}
		return checkedModule{m, l.Module(m)}, true
	})
	out.mod = m.mod
	for _, f := range m.found {
		n := *f
		if rel, err := filepath.Rel(u.Dir, f.At().Filename); err == nil && filepath.IsLocal(rel) {
			n.Unit = u.Name
		}
		out.module = append(out.module, &n)
	}
	return out
}

// checkedModule is a module of units with its findings.
type checkedModule struct {
	mod   *Module
	found []*finding.Finding
}

// text returns the value of a setting, or "" if it is not a known string.
func text(s *unit.Setting) string {
	if s == nil || s.Value.Type() != cty.String || !s.Value.IsKnown() || s.Value.IsNull() {
		return ""
	}
	v, _ := s.Value.Unmark()
	return v.AsString()
}

// remote reports whether the source of a unit's module is no local path.
func remote(src string) bool {
	return strings.Contains(src, "::") || strings.Contains(src, "://") || kindOf(src) == "repository"
}

// ofFile returns the findings that need no other file than f.
func ofFile(f *facts, name string) []*finding.Finding {
	var out []*finding.Finding
	for _, x := range f.found {
		n := *x
		n.Unit = name
		out = append(out, &n)
	}
	return out
}

// ofUnit returns the findings about a unit's own file, and about the source of its module.
func (s *Units) ofUnit(u *unitFacts) (out []*finding.Finding) {
	report := func(code, address, path string, at source.Range, text, message string, fix ...finding.Edit) {
		out = append(out, &finding.Finding{
			Rule: code, Level: rule(code).Level, Verdict: finding.Fail, Message: message, Unit: u.name, Address: address, Path: path, Text: text, SetAt: at, Fix: fix,
		})
	}
	if src := text(u.source); src != "" && u.source.At != nil {
		if why := unpinnedUnit(src); why != "" {
			report(UnpinnedModule, "terraform", "source", *u.source.At, "", why)
		}
	}
	for _, o := range u.over {
		report(OverriddenValue, "", o.Path, o.At, "", fmt.Sprintf("A later layer replaces %s.", o.Path))
	}
	if len(u.files) == 0 || u.files[0].unit == nil || s.shared[u.files[0].path] {
		return out
	}
	own := u.files[0]
	for _, x := range own.unit.locals {
		if !own.uses["local"] && !own.uses["local."+x.name] {
			report(UnusedLocal, "local."+x.name, "", x.nameAt, "", fmt.Sprintf("Nothing refers to the local value %q.", x.name), own.withoutLocal(x.argument, x.matters)...)
		}
	}
	for _, x := range own.unit.dependencies {
		if !slices.ContainsFunc(u.files, func(f *facts) bool {
			return f.uses["dependency."+x.label] || f.uses["dependency"] || f.json || f.unit == nil
		}) {
			report(UnreadDependency, x.subject, "", x.at, "", fmt.Sprintf("Nothing reads the outputs of the dependency %q. It only sets the order of the units.", x.label))
		}
	}
	return out
}

// unpinnedUnit is unpinned for the source of a unit's module.
func unpinnedUnit(src string) string {
	if strings.HasPrefix(src, "tfr://") {
		if _, query, _ := strings.Cut(src, "?"); !strings.Contains("&"+query, "&version=") {
			return "The module is from a registry, and no version is given."
		}
		return ""
	}
	if !remote(src) {
		return ""
	}
	return unpinned(src, true)
}

// outputs returns the outputs that no unit reads.
func (s *Units) outputs() (out []*finding.Finding) {
	read := map[string]map[string]bool{} // by unit; the output "" means all
	for _, u := range s.units {
		for _, d := range u.edges {
			if read[d.ID] == nil {
				read[d.ID] = map[string]bool{}
			}
			for _, f := range u.files {
				maps.Copy(read[d.ID], f.outputs)
				read[d.ID][""] = read[d.ID][""] || f.unit == nil
			}
		}
	}
	byModule := map[*Module][]*unitFacts{}
	for _, u := range s.units {
		if u.mod != nil {
			byModule[u.mod] = append(byModule[u.mod], u)
		}
	}
	for m, users := range byModule {
		c := &checker{l: s.l, m: m}
		for name, o := range m.Config.Outputs {
			if slices.ContainsFunc(users, func(u *unitFacts) bool { return read[u.id][name] || read[u.id][""] }) || c.generated(o.At) {
				continue
			}
			c.report(UnusedOutput, "output."+name, "", o.At, "", fmt.Sprintf("No unit reads the output %q.", name))
		}
		out = append(out, c.out...)
	}
	return out
}

// includes returns the include blocks that can be import blocks: those that RewriteIncludes
// rewrites, because every unit that they affect renders as before.
func (s *Units) includes(ctx context.Context, env unit.Env) (out []*finding.Finding, ds diag.List) {
	l := s.l
	byPath := map[string]*unitFacts{}
	var paths []string
	for _, u := range s.units {
		if len(u.files) > 0 && u.files[0].unit != nil && len(u.files[0].unit.includes) > 0 {
			paths = append(paths, u.files[0].path)
			byPath[u.files[0].path] = u
		}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	plan, ds := RewriteIncludes(ctx, env, l.Root, paths)
	if ds.HasErrors() {
		return nil, ds
	}
	for _, change := range plan.Changes {
		u := byPath[change.Path]
		if u == nil {
			continue
		}
		for _, x := range u.files[0].unit.includes {
			out = append(out, l.selected([]*finding.Finding{{
				Rule: IncludeAsImport, Level: rule(IncludeAsImport).Level, Verdict: finding.Fail, Unit: u.name, Address: x.subject, SetAt: x.at,
				Message: "The include block can be an import block with the same result.", Rewrite: true,
			}}, u.files[:1])...)
		}
	}
	return out, nil
}

// RewriteIncludes plans to rewrite the include blocks of unit files, where every unit of the
// repository of root renders as before. Other units of the repository may use the same files.
func RewriteIncludes(ctx context.Context, env unit.Env, root string, paths []string) (*migrate.Plan, diag.List) {
	return migrate.Among(ctx, migrate.IncludeBlocks, env, paths, []string{cmp.Or(git.Root(root), root)}, discovery.Files)
}
