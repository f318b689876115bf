package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/estate"
)

// explainUnit tells where a value of the unit in the working folder, or of its
// module, comes from. What can be answered without something that is missing is:
// outputs that do not exist are unknown, and a module that cannot be brought here
// keeps nobody from asking for the unit's own parts.
func (s *session) explainUnit(ctx context.Context, f *unitFlags, args []string) int {
	o, ok := s.explainFlags(args)
	if !ok {
		return 1
	}
	eo, about := s.estateOptions(f, "plan", nil, nil)
	if about.HasErrors() {
		return s.fail(about)
	}
	e, u, ds := estate.OpenUnit(ctx, eo.Tolerate(), s.unitPath(f), f.module)
	if ds.HasErrors() {
		return s.failWith(e, ds)
	}
	here := s.Dir
	x := engine.ExplainOptions{Unit: e.Origin(ctx, u), UnitSet: e.Sources()}
	x.Show = func(file string) (string, string) {
		path, layer := e.Locate(u, file)
		return seenFrom(here, path), layer
	}
	if e.OfUnit(ctx, u, o.address) && !e.AtHand(ctx, u) {
		out, ds := e.Explain(ctx, u, o.address, x.Show)
		return s.printExplained(e, out, append(about, ds...), o)
	}
	dir, ds := e.Ready(ctx, u)
	if about = append(about, ds.Warnings()...); ds.HasErrors() {
		out, more := e.Explain(ctx, u, o.address, x.Show)
		if more.HasErrors() {
			return s.failWith(e, append(ds, more...))
		}
		return s.printExplained(e, out, append(about, asWarnings(ds)...), o)
	}
	extra, env := e.Extra(u, "plan")
	s.System = s.System.In(dir)
	s.launch, s.tolerant, s.unit = dir, true, &unitSession{estate: e, unit: u, dir: dir}
	for _, name := range e.Secret(u) {
		s.set.Conceal(name)
	}
	s.Env = s.Env.With(env...)
	var flags []vars.Flag
	for _, a := range extra {
		if file, ok := strings.CutPrefix(a, "-var-file="); ok {
			flags = append(flags, vars.Flag{File: true, Value: file})
		} else if value, ok := strings.CutPrefix(a, "-var="); ok {
			flags = append(flags, vars.Flag{Value: value})
		}
	}
	o.vars = append(flags, o.vars...)
	out, ds := s.explain(ctx, o, x)
	return s.printExplained(e, out, append(about, ds...), o)
}

// printExplained prints an explanation, and what there is to tell besides where it
// does not disturb those who read the output.
func (s *session) printExplained(e *estate.Estate, x *engine.Explanation, ds diag.List, o *explainOptions) int {
	ds = slices.DeleteFunc(ds, func(m *diag.Message) bool { return m.Code == "unit/mocks-used" }) // a step says so
	if ds.HasErrors() {
		return s.failWith(e, ds)
	}
	if len(ds) > 0 {
		_ = s.printer(e.Sources()).Print(s.Stderr, s.filter(ds))
	}
	return s.printExplanation(x, o.json)
}

// fromHere is a path as seen from the working folder.
func (s *session) fromHere(path string) string { return seenFrom(s.Dir, path) }

func seenFrom(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return path
}
