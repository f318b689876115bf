package workspace

import (
	"context"
	"path"
	"path/filepath"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/sys"
	estates "github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/rules"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// # Rules on values
//
// The rules that apply to a directory are checked as the command check does it there: without providers
// and without state. The result belongs to that of the module or unit, and is computed again if a file
// with rules changes.

// Rulings are the failed rules of a module, or of the units in a directory. Paths are absolute.
type Rulings struct {
	Findings []*finding.Finding
	Diags    diag.List // rules that could not be evaluated
	rules    *ruleSet
	reading  *reading // other files than those with rules; nil means none
}

// current reports whether nothing that was read has changed.
func (r *Rulings) current() bool {
	return r.rules.reading.current() && (r.reading == nil || r.reading.current())
}

// A ruleSet contains the rules that apply to a directory. It is kept while an edit changes other files.
type ruleSet struct {
	reading *reading
	at      string     // directory of the files with rules
	set     *rules.Set // nil if there are none, or if they have errors
}

// maxRuleSets is the number of directories whose rules are kept.
const maxRuleSets = 256

// rulesOf returns the rules that apply to a directory.
func (s *Session) rulesOf(dir string) *ruleSet {
	s.mu.Lock()
	kept := s.ruleSets[dir]
	s.mu.Unlock()
	if kept != nil && kept.reading.current() {
		return kept
	}
	out := &ruleSet{reading: newReading(s.Files, dir)}
	at, files, ds := rules.Nearest(out.reading, dir, func(path string) string { return path })
	if len(files) > 0 && !ds.HasErrors() {
		if set, ds := rules.Parse(files, &source.Set{}); !ds.HasErrors() && !set.Empty() {
			out.at, out.set = at, set
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ruleSets == nil || len(s.ruleSets) >= maxRuleSets {
		s.ruleSets = map[string]*ruleSet{}
	}
	s.ruleSets[dir] = out
	return out
}

func (r *ruleSet) checker(ctx context.Context, s *Session) *rules.Checker {
	return rules.NewChecker(ctx, r.set, rules.Options{Now: s.base.Now(), ReadFile: r.reading.ReadFile, Base: func(string) string { return r.at }})
}

// Rules checks the rules for the module. The result is nil if there are none, or if the module has errors.
func (m *Module) Rules(ctx context.Context) *Rulings {
	if !m.using.enter(ctx) {
		return nil
	}
	defer m.using.leave()
	if m.ruled != nil && m.ruled.current() {
		return m.ruled
	}
	out := &Rulings{rules: m.s.rulesOf(m.Dir)}
	set := out.rules.set
	if set == nil {
		m.ruled = out
		return out
	}
	if ok, _ := m.open(ctx); !ok {
		return nil
	}
	given := engine.ExplainOptions{Variables: m.loaded.Vars}
	found, ds := m.loaded.Engine.Subjects(ctx, engine.SubjectOptions{Explain: given, Wants: set.Wants(false), Schema: m.loaded.KeptSchemas(ctx)})
	if ds.HasErrors() || ctx.Err() != nil {
		return nil
	}
	c := out.rules.checker(ctx, m.s)
	c.Add(&rules.Unit{Meta: map[string]cty.Value{"name": cty.StringVal("")}, Subjects: found.All, Partial: found.Partial, Explain: func(address string) *explanation.Explanation {
		x, ds := found.Explain(address)
		if ds.HasErrors() {
			return nil
		}
		return x
	}})
	res := c.Finish()
	if ctx.Err() != nil {
		return nil
	}
	out.keep(res, m.path)
	m.ruled = out
	return out
}

// keep stores a result with absolute paths.
func (r *Rulings) keep(res rules.Result, abs func(string) string) {
	r.Diags = res.Diags.Rename(abs)
	for _, f := range res.Findings {
		if !f.Counts() {
			continue
		}
		c := *f
		for _, at := range []*source.Range{&c.SetAt, &c.Defined, &c.RuleAt} {
			at.Filename = abs(at.Filename)
		}
		r.Findings = append(r.Findings, &c)
	}
}

// Rules checks the rules for the units in the directory of the unit. The result is nil if they have errors.
func (u *Unit) Rules(ctx context.Context) *Rulings {
	if !u.using.enter(ctx) {
		return nil
	}
	defer u.using.leave()
	if u.ruled != nil && u.ruled.current() {
		return u.ruled
	}
	dir := filepath.Dir(u.Path)
	stack := u.s.generator(dir)
	if stack != "" {
		dir = filepath.Dir(stack)
	}
	out := &Rulings{rules: u.s.rulesOf(dir)}
	set := out.rules.set
	if set == nil || len(u.units) == 0 {
		u.ruled = out
		return out
	}
	op := u.s.opening(dir)
	op.options.Discovery.Generate = stack != ""
	out.reading = op.reading
	e, ds := estates.Open(ctx, op.options)
	defer e.Close(ctx)
	if ds.HasErrors() || ctx.Err() != nil {
		return nil
	}
	c := out.rules.checker(ctx, u.s)
	prefix := filepath.ToSlash(sys.RelativeTo(out.rules.at, dir))
	show := func(file string) string { return op.overlay.Source(file) }
	schemas := func(ctx context.Context, dir string, required map[addr.Provider][]config.Constraint) func(addr.Provider) *schema.Provider {
		return u.s.plugins.In(u.s.base.In(dir, u.s.base.Env, nil)).KeptSchemas(ctx, required)
	}
	all := e.Subjects(set.Wants(false), show, prefix, schemas)
	for _, one := range e.Found.Units {
		found, ds := all.Of(ctx, one)
		if ds.HasErrors() || ctx.Err() != nil {
			return nil
		}
		c.Add(&rules.Unit{Name: found.Name, Meta: found.Meta, Subjects: found.All, Partial: found.Partial, Explain: found.Explain})
	}
	res := c.Finish()
	if ctx.Err() != nil {
		return nil
	}
	for _, f := range res.Findings {
		f.Message = op.redactor.Text(f.Message)
	}
	out.keep(res, func(name string) string {
		if name == "" || filepath.IsAbs(name) {
			return name
		}
		return path.Join(filepath.ToSlash(dir), name)
	})
	u.ruled = out
	return out
}
