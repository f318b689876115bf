// Package rulecheck checks the rules of a working directory for commands.
//
// Main types: Rules, the rules that apply to a directory. The one rule: rules are read from the
// nearest directory that has any, up to the root of the repository, so that the directory in which
// a command runs does not change which rules apply.
package rulecheck

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/lang/subject"
	"github.com/terrace-iac/terrace/internal/rules"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// Rules are the rules that apply to the working directory of a call.
type Rules struct {
	*rules.Set
	call *command.Call
	dir  string // directory of the files with rules
}

// Load reads the rules that apply to the working directory. The result is nil if there are none.
func Load(c *command.Call) (*Rules, diag.List) {
	dir, texts, ds := rules.Nearest(onDisk{c}, cmp.Or(c.UnitDir, c.Dir), onDisk{c}.name)
	if len(texts) == 0 || ds.HasErrors() {
		return nil, ds
	}
	set, ds := rules.Parse(texts, c.Report.Set)
	return &Rules{Set: set, call: c, dir: dir}, ds
}

// LoadForPlan is Load for a command that plans. The result is also nil if the files contain no rules: then the
// command need not keep the plans.
func LoadForPlan(c *command.Call) (*Rules, diag.List) {
	r, ds := Load(c)
	if r != nil && len(r.Rules)+len(r.Exceptions) == 0 {
		r = nil
	}
	return r, ds
}

// onDisk reads files for a call.
type onDisk struct{ c *command.Call }

func (f onDisk) ReadDir(path string) ([]fs.DirEntry, error) { return os.ReadDir(path) }
func (f onDisk) ReadFile(path string) ([]byte, error)       { return f.c.Files.Whole(path) }
func (f onDisk) name(path string) string                    { return filepath.ToSlash(sys.RelativeTo(f.c.Dir, path)) }

func (r *Rules) checker(ctx context.Context, planned bool) *rules.Checker {
	return rules.NewChecker(ctx, r.Set, rules.Options{
		Planned: planned, Now: r.call.Now(), ReadFile: r.call.Files.Whole, Base: func(string) string { return r.dir },
	})
}

// Test runs the tests of rules in the working directory whose files are wanted, with the rules that
// apply to it. The result is nil if there are none.
func Test(ctx context.Context, c *command.Call, wanted func(name string) bool) ([]*rules.TestFile, diag.List) {
	files, ds := rules.Read(onDisk{c}, c.Dir, func(name string) bool { return rules.IsTest(name) && wanted(name) }, onDisk{c}.name)
	if ds.HasErrors() || len(files) == 0 {
		return nil, ds
	}
	r, ds := Load(c)
	if ds.HasErrors() {
		return nil, ds
	}
	if r == nil {
		r = &Rules{Set: &rules.Set{}, call: c, dir: c.Dir}
	}
	target := func(path string) (rules.Text, error) {
		path = filepath.Join(c.Dir, filepath.FromSlash(path))
		text, err := c.Files.Whole(path)
		return rules.Text{Name: onDisk{c}.name(path), Text: text}, err
	}
	return rules.Test(ctx, r.Set, files, rules.Options{Now: c.Now(), ReadFile: c.Files.Whole, Base: func(string) string { return r.dir }, Target: target}, c.Report.Set), ds
}

// Given is the input of Directory.
type Given struct {
	Explain engine.ExplainOptions // with the values of variables
	Plan    *plan.Plan            // nil means that there is no plan
	InJSON  bool                  // as in rules.Planned
	// Schema returns the schema of a provider, or nil if it is not available. nil means that only the
	// schema of the built-in provider is available.
	Schema func(addr.Provider) *schema.Provider
}

// Directory checks the rules for the configuration of one directory, or of one unit.
func (r *Rules) Directory(ctx context.Context, e *engine.Engine, given Given) (rules.Result, diag.List) {
	p := given.Plan
	o := engine.SubjectOptions{Explain: given.Explain, Wants: r.Wants(p != nil), Schema: given.Schema}
	found, ds := e.Subjects(ctx, o)
	if ds.HasErrors() {
		return rules.Result{}, ds
	}
	u := &rules.Unit{Meta: map[string]cty.Value{"name": cty.StringVal("")}, Subjects: found.All, Partial: found.Partial}
	if r.call.UnitDir != "" {
		u.Name = filepath.ToSlash(sys.RelativeTo(r.dir, r.call.UnitDir))
		u.Meta["name"] = cty.StringVal(u.Name)
	}
	u.Explain = func(address string) *explanation.Explanation {
		x, ds := found.Explain(address)
		if ds.HasErrors() {
			return nil
		}
		return x
	}
	if p != nil {
		u.Subjects, u.Partial = rules.Planned(u.Subjects, p, o.Wants, given.InJSON), false
	}
	c := r.checker(ctx, p != nil)
	c.Add(u)
	return c.Finish(), nil
}

// OfEstate is the input of Estate. The zero value is usable.
type OfEstate struct {
	Plans   map[*discovery.Unit]*plan.Plan // nil means that there is no plan
	InJSON  bool                           // as in rules.Planned
	Schemas estate.ProviderSchemas         // may be nil; see estate.Estate.Subjects
	// Also is called with the index of each unit, concurrently, before the estate forgets the unit. It may
	// be nil.
	Also func(i int)
}

// Estate checks the rules for the units of an estate.
func (r *Rules) Estate(ctx context.Context, e *estate.Estate, o OfEstate) (rules.Result, diag.List) {
	plans := o.Plans
	show := func(file string) string {
		if filepath.IsAbs(file) {
			file = sys.RelativeTo(r.call.Dir, file)
		}
		return filepath.ToSlash(file)
	}
	prefix := filepath.ToSlash(sys.RelativeTo(r.dir, e.Found.Root())) // as in UnitName
	wants := r.Wants(plans != nil)
	c, all := r.checker(ctx, plans != nil), e.Subjects(wants, show, prefix, o.Schemas)
	units := e.Found.Units
	messages := parallel.Map(len(units), 0, func(i int) diag.List {
		u := units[i]
		if o.Also != nil {
			o.Also(i)
		}
		found, ds := all.Of(ctx, u)
		if ds.HasErrors() {
			return ds
		}
		subjects, partial := found.All, found.Partial
		if p := plans[u]; p != nil {
			subjects, partial = rules.Planned(subjects, p, wants, o.InJSON), false
		}
		c.Add(&rules.Unit{Name: found.Name, Meta: found.Meta, Subjects: subjects, Partial: partial, Explain: found.Explain})
		if plans == nil { // nothing evaluates the unit again, except to explain a failed rule
			all.Release(u)
		}
		return nil
	})
	return c.Finish(), slices.Concat(messages...).Once()
}

// Needed returns the parts of a plan that rules need. wants is the result of Set.Wants.
func Needed(p *plan.Plan, wants func(subject.Kind, string) bool) *plan.Plan {
	n := *p
	n.Changes = slices.DeleteFunc(slices.Clone(p.Changes), func(c *plan.Change) bool {
		kind := subject.Resource
		if c.Addr.Resource.Mode == addr.Data {
			kind = subject.Data
		}
		return !wants(kind, c.Addr.Resource.Type)
	})
	read := map[addr.AbsResource]*state.Resource{} // data sources that planning read
	if p.Prior != nil {
		for a, r := range p.Prior.Resources {
			if a.Resource.Mode == addr.Data && wants(subject.Data, a.Resource.Type) {
				read[a] = r
			}
		}
	}
	n.Prior = &state.State{Resources: read}
	n.PrevRun, n.Actions, n.Drift = nil, nil, nil // plans are large
	return &n
}

// UnitName returns the name of a unit in rules: its path relative to the directory of the rules.
func (r *Rules) UnitName(e *estate.Estate, u *discovery.Unit) string {
	return path.Join(filepath.ToSlash(sys.RelativeTo(r.dir, e.Found.Root())), u.Name)
}

// Messages returns the failed rules of a result as messages: errors, and warnings for warnings and
// advice. Failures with a recorded exception, and rules that are not known yet, have none. If a rule
// fails for many subjects, they are one message.
func Messages(res rules.Result) diag.List {
	var out diag.List
	for _, all := range failures(res) {
		if len(all) <= mostSeparate {
			for _, f := range all {
				about := f.Address
				if f.Unit != "" && f.Unit != f.Address {
					about = f.Unit + " " + about
				}
				out = append(out, message(f, f.At(), f.Message, about))
			}
			continue
		}
		f := all[0]
		out = append(out, message(f, f.RuleAt, list(all), view.Numbered(len(all), "subject")))
	}
	return append(out, res.Diags...)
}

// ByUnit returns the failed rules of a result as messages, by the name of the unit of the subject.
// Equal failures of several units have equal messages.
func ByUnit(res rules.Result) map[string]diag.List {
	out := map[string]diag.List{}
	for _, all := range failures(res) {
		for _, f := range all {
			if f.Unit != "" {
				out[f.Unit] = append(out[f.Unit], message(f, f.At(), f.Message, f.Address))
			}
		}
	}
	return out
}

// The failures of a rule are separate messages if there are at most mostSeparate of them. A message
// about more lists mostListed.
const (
	mostSeparate = 3
	mostListed   = 20
)

// failures returns the failures that count, by rule, in the order of the first of each.
func failures(res rules.Result) (out [][]*finding.Finding) {
	at := map[string]int{}
	for _, f := range res.Findings {
		if !f.Counts() {
			continue
		}
		i, ok := at[f.Rule]
		if !ok {
			i = len(out)
			at[f.Rule] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], f)
	}
	return out
}

// message returns the failure of a rule as a message. about is its subject; "" means none.
func message(f *finding.Finding, at source.Range, text, about string) *diag.Message {
	if about != "" {
		about = " for " + about
	}
	const format = "%s\n\nThe rule %q failed%s."
	switch f.Level {
	case finding.Error:
		return diag.Errorf(diag.CodeRulesFailed, &at, "Rule failed", format, text, f.Rule, about)[0]
	case finding.Advice:
		return diag.Warnf(diag.CodeRulesFailed, &at, "Advice of a rule", format, text, f.Rule, about)[0]
	}
	return diag.Warnf(diag.CodeRulesFailed, &at, "Rule failed", format, text, f.Rule, about)[0]
}

// list returns the failures of one rule as a list. A text that all have in common is before it.
func list(all []*finding.Finding) string {
	common := !slices.ContainsFunc(all, func(f *finding.Finding) bool { return f.Message != all[0].Message })
	var b strings.Builder
	if common {
		b.WriteString(all[0].Message + "\n\n")
	}
	for _, f := range all[:min(len(all), mostListed)] {
		b.WriteString("  - ")
		if f.Unit != "" && f.Unit != f.Address {
			b.WriteString(f.Unit + " ")
		}
		b.WriteString(f.Address)
		if at := f.At(); at.Filename != "" && at != f.RuleAt {
			fmt.Fprintf(&b, " (%s:%d)", at.Filename, at.Start.Line)
		}
		if !common {
			b.WriteString(": " + strings.ReplaceAll(f.Message, "\n", "\n    "))
		}
		b.WriteString("\n")
	}
	if n := len(all) - mostListed; n > 0 {
		fmt.Fprintf(&b, "  - and %d more; check lists all of them with -json\n", n)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
