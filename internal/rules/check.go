package rules

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/funcs"
	"github.com/terrace-iac/terrace/internal/lang/subject"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// # Checking
//
// Add checks the rules that one unit decides, and keeps the subjects that other rules need. Finish
// checks the rules that refer to the whole estate. So each unit's configuration can be freed after
// Add, except for the function that explains values, which is only called for failed rules.

// A Unit is a unit of an estate, or a directory of configuration, with its subjects.
type Unit struct {
	Name     string // "" in a directory
	Meta     map[string]cty.Value
	Subjects []*subject.Subject
	// Partial means that there may be other subjects in modules that are not available.
	Partial bool
	// Explain returns the explanation of the value at an address, or nil if there is none. It must
	// be callable until Finish returns. nil means that nothing can be explained.
	Explain func(address string) *explanation.Explanation
}

// Options configures a Checker.
type Options struct {
	// Planned means that the subjects are from a plan, so that their operations are known.
	Planned bool
	Now     time.Time // decides whether exceptions have expired
	// ReadFile reads a file for functions such as file. Base returns the directory of a file with
	// rules; nil means the directory in its name.
	ReadFile func(path string) ([]byte, error)
	Base     func(name string) string
	// Target reads a policy file that a test names, by its path relative to the directory of the tests.
	// nil means that tests can only name the files of the set.
	Target func(path string) (Text, error)
	// only is the subject of a test. nil means that all subjects are checked. The others are only in
	// lists.
	only *subject.Subject
}

// A Checker checks the rules of a set. Add may be called concurrently.
type Checker struct {
	ctx context.Context
	set *Set
	o   Options

	tables     map[*file]map[string]function.Function
	locals     map[*file]map[string]func() (cty.Value, diag.List)
	known      map[*lang.Expr]*decisions // of filters and conditions
	refs       []*reference              // in filters and conditions, also through local values
	fields     fields                    // of listed subjects that the rules read
	attributes attributes                // of listed subjects that the rules may read
	needs      map[subject.Kind]*needs   // of subjects that are kept for Finish
	chosen     sync.Map                  // named to *selection

	mu       sync.Mutex
	kept     []kept
	partial  bool // a unit is partial
	findings []*finding.Finding
	failed   map[failure][]string // the subjects of each failure
	passed   int

	listed sync.Mutex // for made
	made   map[string]cty.Value
}

// kept is a subject that rules about the whole estate need.
type kept struct {
	unit    *Unit
	subject *subject.Subject
}

// A failure is a rule whose expression could not be evaluated.
type failure struct {
	rule   *Rule
	at     source.Range
	detail string
	hint   string // a sentence with a space before it, or ""
}

// A Result is the result of a check.
type Result struct {
	Findings []*finding.Finding // failed and unknown, sorted
	Passed   int                // the number of subjects that met a rule, for all rules
	Diags    diag.List          // rules that could not be evaluated
	// Partial means that rules are about objects in modules, and some modules are not available, so that
	// their objects were not checked.
	Partial bool
}

// NewChecker returns a Checker for one check of a set.
func NewChecker(ctx context.Context, set *Set, o Options) *Checker {
	c := &Checker{
		ctx: ctx, set: set, o: o, failed: map[failure][]string{}, made: map[string]cty.Value{},
		tables: map[*file]map[string]function.Function{}, locals: map[*file]map[string]func() (cty.Value, diag.List){},
		known: map[*lang.Expr]*decisions{}, fields: set.listFields(), attributes: set.listAttributes(),
	}
	c.needs = set.keptNeeds(c.fields)
	numbers := map[referenceKey]int{}
	for _, r := range set.Rules {
		if r.filter != nil {
			c.addDecisions(r, r.filter, numbers)
		}
		for _, cond := range r.conditions {
			c.addDecisions(r, cond.expr, numbers)
		}
	}
	for _, f := range set.files {
		dir := filepath.Dir(f.name)
		if o.Base != nil {
			dir = o.Base(f.name)
		}
		c.tables[f] = c.functions(funcs.Table(funcs.Config{BaseDir: dir, ReadFile: o.ReadFile, PureOnly: true, PlanTime: o.Now}))
		c.locals[f] = map[string]func() (cty.Value, diag.List){}
		for name, x := range f.locals {
			c.locals[f][name] = sync.OnceValues(func() (cty.Value, diag.List) {
				s := &scope{c: c, file: f}
				return lang.Eval((&demand.Graph{}).Task(ctx), s, x, cty.DynamicPseudoType)
			})
		}
	}
	return c
}

// Add checks the rules that the values of one unit decide.
func (c *Checker) Add(u *Unit) {
	b := c.batch(u)
	var keep []kept
	of := *u
	of.Subjects = nil
	for _, s := range u.Subjects {
		rules := c.rules(s)
		for _, r := range rules.own {
			b.check(r, s)
		}
		if len(rules.wide) > 0 || rules.listed {
			keep = append(keep, kept{&of, c.needs[s.Kind].of(s)})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, keep...)
	c.partial = c.partial || u.Partial
	c.take(b)
}

// A selection contains the rules about the subjects of one kind with one name.
type selection struct {
	own, wide []*Rule
	listed    bool // a rule may read such subjects from a list
}

type named struct {
	kind subject.Kind
	name string
}

// rules returns the rules about a subject. Many resources have the same type, but each unit has its
// own name.
func (c *Checker) rules(s *subject.Subject) *selection {
	key := named{s.Kind, s.Name}
	many := s.Kind == subject.Resource || s.Kind == subject.Data
	if many {
		if v, ok := c.chosen.Load(key); ok {
			return v.(*selection)
		}
	}
	out := &selection{listed: c.set.lists(c.o.Planned, s.Kind, s.Name)}
	for _, r := range c.set.Rules {
		switch {
		case !r.Applies(s.Kind, s.Name):
		case r.wide:
			out.wide = append(out.wide, r)
		default:
			out.own = append(out.own, r)
		}
	}
	if many {
		c.chosen.Store(key, out)
	}
	return out
}

// batch returns a new batch for the subjects of a unit.
func (c *Checker) batch(u *Unit) *batch {
	return &batch{c: c, t: (&demand.Graph{}).Task(c.ctx), unit: u, ofUnit: make([]decision, len(c.known)), numbers: make([]int32, len(c.refs))}
}

// take adds the results of a batch.
func (c *Checker) take(b *batch) {
	c.findings = append(c.findings, b.findings...)
	c.passed += b.passed
	for f, names := range b.failures {
		c.failed[f] = append(c.failed[f], names...)
	}
}

// Finish checks the rules about the whole estate and returns the result.
func (c *Checker) Finish() Result {
	sortKept(c.kept)
	var order []*batch
	of := map[*batch][]*subject.Subject{}
	byUnit := map[*Unit]*batch{}
	for _, k := range c.kept {
		if len(c.rules(k.subject).wide) == 0 {
			continue
		}
		b := byUnit[k.unit]
		if b == nil {
			b = c.batch(k.unit)
			byUnit[k.unit] = b
			order = append(order, b)
		}
		of[b] = append(of[b], k.subject)
	}
	parallel.Each(len(order), 0, func(i int) {
		b := order[i]
		for _, s := range of[b] {
			for _, r := range c.rules(s).wide {
				b.check(r, s)
			}
		}
	})
	whole := c.batch(&Unit{})
	for _, r := range c.set.Rules {
		if r.Kind == subject.Estate {
			whole.check(r, &subject.Subject{Kind: subject.Estate, Attrs: cty.EmptyObjectVal, Config: cty.EmptyObjectVal})
		}
	}
	for _, b := range append(order, whole) {
		c.take(b)
	}
	out := Result{Findings: finding.Sort(c.findings), Passed: c.passed}
	out.Partial = c.partial && slices.ContainsFunc(c.set.Rules, func(r *Rule) bool {
		return r.Kind != subject.Unit && r.Kind != subject.Edge && r.Kind != subject.Estate
	})
	for f, names := range c.failed {
		slices.Sort(names)
		about := ""
		if names[0] != "" {
			about = " for " + names[0]
			if n := len(names) - 1; n > 0 {
				about += fmt.Sprintf(" and %d more", n)
			}
		}
		out.Diags = append(out.Diags, diag.Errorf(diag.CodeRulesCondition, &f.at, "Rule cannot be evaluated", "The rule %q cannot be evaluated%s: %s%s", f.rule.Name, about, sentence(f.detail), f.hint)...)
	}
	out.Diags = out.Diags.Sort()
	return out
}

func sentence(s string) string {
	if s = strings.TrimSpace(s); s != "" && !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") {
		s += "."
	}
	return s
}

// A batch is the check of the subjects of one unit by one task.
type batch struct {
	c        *Checker
	t        *demand.Task
	unit     *Unit
	findings []*finding.Finding
	failures map[failure][]string // as in Checker
	passed   int
	key      []byte     // reused
	value    []byte     // reused
	ofUnit   []decision // of the expressions that only refer to the unit, by their numbers
	// Of the subject that was checked last: the numbers of the values of the references. 0 means that it
	// was not computed, and -1 that there is none.
	subject *subject.Subject
	numbers []int32
	scope   scope // of the rule that is checked
}

// check checks a rule for one subject.
func (b *batch) check(r *Rule, s *subject.Subject) {
	if only := b.c.o.only; only != nil && s != only {
		return
	}
	if b.subject != s {
		b.subject = s
		for i, ref := range b.c.refs {
			if !ref.ofUnit {
				b.numbers[i] = 0
			}
		}
	}
	b.scope = scope{c: b.c, file: r.file, rule: r, subject: s, unit: b.unit}
	sc := &b.scope
	if applies, unknown := b.operation(r, s); !applies {
		return
	} else if unknown {
		b.add(r, s, finding.Unknown, "It is not known before a plan whether the rule holds: the planned operation decides.", nil)
		return
	}
	if r.filter != nil {
		switch b.decide(sc, r.filter, "filter") {
		case failed:
			b.uncertain(r, s, nil)
			return
		case fails:
			return
		case unknown:
			b.unknown(sc, r.filter)
			return
		}
	}
	for i := range r.conditions {
		cond := &r.conditions[i]
		switch b.decide(sc, cond.expr, "condition") {
		case unknown:
			b.unknown(sc, cond.expr)
		case holds:
			b.passed++
		case failed:
			b.uncertain(r, s, b.c.known[cond.expr].parts)
		case fails:
			if b.uncertain(r, s, b.c.known[cond.expr].parts) {
				continue
			}
			b.add(r, s, finding.Fail, b.message(sc, cond), b.c.known[cond.expr].parts)
		}
	}
}

// uncertain adds a finding about a rule that does not hold if its subject exists. It returns false if the
// subject certainly exists.
func (b *batch) uncertain(r *Rule, s *subject.Subject, parts []string) bool {
	if s.Uncertain == "" {
		return false
	}
	b.add(r, s, finding.Unknown, "It is not known yet whether the rule holds: the object may not exist, because "+s.Uncertain+" is not known "+b.c.when()+".", parts)
	return true
}

// when returns when unknown values become known at the latest, as in "not known before a plan".
func (c *Checker) when() string {
	if c.o.Planned {
		return "before the apply"
	}
	return "before a plan"
}

// operation reports whether a rule applies to the planned operation on a subject.
func (b *batch) operation(r *Rule, s *subject.Subject) (applies, unknown bool) {
	if s.Kind != subject.Resource && s.Kind != subject.Data {
		return true, false
	}
	op, ok := s.Meta["operation"]
	if !ok || !op.IsKnown() {
		return true, len(r.operations) > 0
	}
	if len(r.operations) == 0 {
		return !s.Gone, false
	}
	name := op.AsString()
	return slices.Contains(r.operations, name) || name == "replace" && (slices.Contains(r.operations, "delete") || slices.Contains(r.operations, "create")), false
}

// decide evaluates a filter or a condition, or returns the result for the same values. It records an
// error.
func (b *batch) decide(sc *scope, x *lang.Expr, what string) decision {
	d := b.c.known[x]
	own := &b.ofUnit[d.number]
	if d.ofUnit && *own != undecided {
		return *own
	}
	ok, number := true, int32(0)
	key := b.key[:0]
	for _, ref := range d.refs {
		if number = b.number(sc, ref); number < 0 {
			ok = false
			break
		}
		if len(d.refs) > 1 {
			key = binary.LittleEndian.AppendUint16(key, uint16(number))
		}
	}
	if ok {
		b.key = key
		if result := d.get(key, number); result != undecided {
			*own = result
			return result
		}
	}
	result, clean := b.evaluate(sc, x, what)
	if clean {
		*own = result
		if ok {
			d.put(key, number, result)
		}
	}
	return result
}

// number returns the number of the value of a reference, or -1 if it has none.
func (b *batch) number(sc *scope, i int) int32 {
	if n := b.numbers[i]; n != 0 {
		return n
	}
	n := int32(-1)
	if ref := b.c.refs[i]; !ref.distinct() {
		key, ok := sc.appendRef(b.value[:0], b.t, ref)
		if b.value = key; ok {
			n = ref.number(key)
		}
	}
	b.numbers[i] = n
	return n
}

// evaluate is decide without the decisions for other subjects. clean means that there are no errors, so
// that the result is the same for all subjects with the same values.
func (b *batch) evaluate(sc *scope, x *lang.Expr, what string) (result decision, clean bool) {
	v, ds := lang.Eval(b.t, sc, x, cty.Bool)
	if errs := ds.Errors(); len(errs) > 0 {
		m := errs[0]
		if sc.lacked(m) {
			return unknown, false
		}
		b.fail(sc, m)
		return failed, false
	}
	if ds.HasErrors() {
		return unknown, false
	}
	switch v, _ = v.Unmark(); {
	case v.IsNull():
		at := x.Range()
		b.fail(sc, &diag.Message{At: &at, Detail: "The " + what + " is null. It must be true or false."})
		return failed, false
	case !v.IsKnown():
		return unknown, true
	case v.True():
		return holds, true
	}
	return fails, true
}

// missing reports whether an error is about a value that does not exist or is null, and whether that value is
// an attribute of an object.
func missing(m *diag.Message) (is, attribute bool) {
	switch m.Summary {
	case "Unsupported attribute":
		return true, true
	case "Invalid index", "Missing map element", "Attempt to get attribute from null value", "Attempt to index null value",
		"Invalid template interpolation value", "Invalid function argument", "Error in function call", "Iteration over null value", "Operation failed":
		return true, false
	}
	return false, false
}

// fail records an expression with an error, if its subject certainly exists.
func (b *batch) fail(sc *scope, m *diag.Message) {
	if sc.subject.Uncertain != "" {
		return
	}
	f := failure{rule: sc.rule, at: sc.rule.At, detail: m.Detail}
	if m.At != nil {
		f.at = *m.At
	}
	if is, _ := missing(m); is {
		f.hint = " Use try() or can() for values that may not exist."
	}
	if b.failures == nil {
		b.failures = map[failure][]string{}
	}
	b.failures[f] = append(b.failures[f], strings.TrimSpace(b.unit.Name+" "+sc.subject.Address))
}

// unknown adds a finding about a rule that cannot be decided yet.
func (b *batch) unknown(sc *scope, x *lang.Expr) {
	text := "It is not known yet whether the rule holds"
	if why := sc.waits(b.t, x); len(why) > 0 {
		text += ": " + strings.Join(why, "; ")
	}
	b.add(sc.rule, sc.subject, finding.Unknown, text+".", b.c.known[x].parts)
}

// message returns the message of a failed condition.
func (b *batch) message(sc *scope, cond *condition) string {
	if cond.message == nil {
		return fmt.Sprintf("The rule %q does not hold.", sc.rule.Name)
	}
	v, ds := lang.Eval(b.t, sc, cond.message, cty.String)
	switch {
	case ds.HasErrors():
		if errs := ds.Errors(); len(errs) > 0 && !sc.lacked(errs[0]) {
			b.fail(sc, errs[0])
		}
		return fmt.Sprintf("The rule %q does not hold. Its message cannot be evaluated.", sc.rule.Name)
	case value.ContainsSecret(v) || value.ContainsMark(v, value.Ephemeral):
		return fmt.Sprintf("The rule %q does not hold. Its message contains a sensitive value and is not shown.", sc.rule.Name)
	}
	if v, _ = v.Unmark(); v.IsNull() {
		return fmt.Sprintf("The rule %q does not hold.", sc.rule.Name)
	}
	if !v.IsKnown() {
		return fmt.Sprintf("The rule %q does not hold. Its message contains a value that is not known yet.", sc.rule.Name)
	}
	return strings.TrimSpace(v.AsString())
}

// add adds a finding. parts are the parts of the subject that decide it.
func (b *batch) add(r *Rule, s *subject.Subject, verdict finding.Verdict, message string, parts []string) {
	f := &finding.Finding{Rule: r.Name, Level: r.Level, Verdict: verdict, Message: message, Unit: b.unit.Name, Address: s.Address, Defined: s.At, RuleAt: r.At, SetAt: s.At}
	if len(parts) > 0 {
		f.Path = strings.TrimPrefix(parts[0], ".")
	}
	if verdict == finding.Fail {
		b.origin(f, s, parts)
		for _, e := range b.c.set.Exceptions {
			if e.Rule != r.Name || !e.Address.Match(s.Address) || !e.Unit.Match(b.unit.Name) {
				continue
			}
			if !e.Expires.IsZero() && !b.c.o.Now.Before(e.Expires) {
				f.Message = sentence(f.Message) + " The exception for it expired on " + e.Expires.Format(time.DateOnly) + "."
				continue
			}
			f.Waived = e.Reason
		}
	}
	b.findings = append(b.findings, f)
}

// origin sets the position at which the value of the first part is set that a file sets.
func (b *batch) origin(f *finding.Finding, s *subject.Subject, parts []string) {
	if b.unit.Explain == nil {
		return
	}
	for _, part := range parts {
		address := s.Address + part
		if s.Kind == subject.Unit {
			address = "inputs" + part
		}
		x := b.unit.Explain(address)
		if x == nil || len(x.Steps) == 0 {
			continue
		}
		last := x.Steps[len(x.Steps)-1]
		if x.Sensitive { // the line may contain the value
			f.Path = strings.TrimPrefix(part, ".")
			return
		}
		if last.At == nil || last.At.File == "" || last.Kind == explanation.Provider {
			continue
		}
		pos := hcl.Pos{Line: last.At.Line, Column: max(last.At.Column, 1)}
		f.SetAt = source.Range{Filename: last.At.File, Start: pos, End: pos}
		f.Layer, f.Path = last.At.Of, strings.TrimPrefix(part, ".")
		return
	}
}

// A scope resolves the references of a rule for one subject.
type scope struct {
	c       *Checker
	file    *file
	rule    *Rule            // nil for the local values of a file
	subject *subject.Subject // nil for the local values of a file
	unit    *Unit
	locals  map[string]evaluated
}

type evaluated struct {
	value cty.Value
	ds    diag.List
}

// Functions implements lang.Scope.
func (s *scope) Functions(_ *demand.Task, _ []string) (map[string]function.Function, diag.List) {
	return s.c.tables[s.file], nil
}

// Resolve implements lang.Scope.
func (s *scope) Resolve(t *demand.Task, ref hcl.Traversal, at *source.Range) (cty.Value, int, diag.List) {
	root, name := ref.RootName(), ""
	if len(ref) > 1 {
		switch step := ref[1].(type) {
		case hcl.TraverseAttr:
			name = step.Name
		case hcl.TraverseIndex:
			if value.IsText(step.Key) {
				name = step.Key.AsString()
			}
		}
	}
	switch root {
	case "local":
		return s.local(t, name, at)
	case "input":
		if v, ok := s.file.inputs[name]; ok {
			return v, 2, nil
		}
		return cty.DynamicVal, 1, diag.Errorf(diag.CodeRulesFile, at, "Invalid rule", "The file has no input %q.", name)
	}
	if s.subject == nil {
		return cty.DynamicVal, 1, diag.Errorf(diag.CodeRulesFile, at, "Invalid rule", "The reference %q does not exist here. Local values of a file can refer to inputs, to other local values of the file, and to functions.", root)
	}
	switch root {
	case "attrs":
		v, _ := s.subject.Attrs.Unmark()
		switch {
		case name == "" || v.IsNull() || v.Type().HasAttribute(name):
			return s.subject.Attrs, 1, nil
		case s.subject.Nulls:
			return cty.NullVal(cty.DynamicPseudoType), 2, nil
		case s.subject.Lacks == "":
			return s.subject.Attrs, 1, nil
		}
		return cty.DynamicVal, 2, nil
	case "config":
		v, _ := s.subject.Config.Unmark()
		if name == "" || v.IsNull() || v.Type().HasAttribute(name) {
			return s.subject.Config, 1, nil
		}
		return cty.NullVal(cty.DynamicPseudoType), 2, nil
	case "prior_attrs":
		if !s.c.o.Planned {
			return cty.DynamicVal, 1, nil
		}
		return prior(s.subject), 1, nil
	case "meta":
		return member(s.subject.Meta, root, name, at)
	case "unit":
		return member(s.unit.Meta, root, name, at)
	}
	return cty.DynamicVal, 1, diag.Errorf(diag.CodeRulesFile, at, "Invalid rule", "The reference %q does not exist. Rules can refer to attrs, config, prior_attrs, meta, unit, local and input.", root)
}

func member(of map[string]cty.Value, root, name string, at *source.Range) (cty.Value, int, diag.List) {
	if v, ok := of[name]; ok {
		return v, 2, nil
	}
	return cty.ObjectVal(of), 1, nil // the expression reports that the name does not exist
}

// local returns a local value of the rule or of its file.
func (s *scope) local(t *demand.Task, name string, at *source.Range) (cty.Value, int, diag.List) {
	if s.rule == nil || s.rule.locals[name] == nil {
		get := s.c.locals[s.file][name]
		if get == nil {
			return cty.DynamicVal, 1, diag.Errorf(diag.CodeRulesFile, at, "Invalid rule", "There is no local value %q.", name)
		}
		v, ds := get()
		return v, 2, ds
	}
	if got, ok := s.locals[name]; ok {
		return got.value, 2, got.ds
	}
	v, ds := lang.Eval(t, s, s.rule.locals[name], cty.DynamicPseudoType)
	if s.locals == nil {
		s.locals = map[string]evaluated{}
	}
	s.locals[name] = evaluated{v, ds}
	return v, 2, ds
}

// lacked reports whether an error may be due to an attribute that is missing because the schema is
// not available.
func (s *scope) lacked(m *diag.Message) bool {
	if _, is := missing(m); !is {
		return false
	}
	if s.subject.Lacks != "" {
		return true
	}
	if s.rule.wide {
		for _, k := range s.c.kept {
			if k.subject.Lacks != "" {
				return true
			}
		}
	}
	return false
}

// references returns the references that decide an expression, also through local values.
func (r *Rule) references(x *lang.Expr) (out []lang.Ref) {
	r.walk(x, map[*lang.Expr]bool{}, func(x *lang.Expr) {
		for _, ref := range x.Refs() {
			if ref.Traversal.RootName() != "local" {
				out = append(out, ref)
			}
		}
	})
	return out
}

// pathText returns the text of the steps of a reference, up to the first that is not constant. whole means
// that all are.
func pathText(steps []hcl.Traverser) (out string, whole bool) {
	for _, step := range steps {
		switch step := step.(type) {
		case hcl.TraverseAttr:
			out += "." + step.Name
		case hcl.TraverseIndex:
			if ty := step.Key.Type(); ty != cty.String && ty != cty.Number {
				return out, false
			}
			out += value.PathString(cty.Path{cty.IndexStep{Key: step.Key}})
		default:
			return out, false
		}
	}
	return out, true
}

// waits returns the reasons for which an expression is unknown.
func (s *scope) waits(t *demand.Task, x *lang.Expr) (out []string) {
	when := s.c.when()
	for _, i := range s.c.known[x].refs {
		ref := s.c.refs[i]
		text := ref.text
		v, used, ds := s.Resolve(t, ref.Traversal, &ref.At)
		why := "is not known " + when
		if len(ds) > 0 {
			continue
		}
		for _, step := range ref.Traversal[min(used, len(ref.Traversal)):] {
			v, _ = v.Unmark()
			if !v.IsKnown() || v.IsNull() {
				break
			}
			next, diags := (hcl.Traversal{step}).TraverseRel(v)
			if diags.HasErrors() {
				break
			}
			v = next
		}
		if v, _ = v.Unmark(); v.IsWhollyKnown() {
			continue
		}
		if root := ref.Traversal.RootName(); root == "attrs" && used == 2 && s.subject.Lacks != "" {
			why = s.subject.Lacks
		}
		if text += " " + why; !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		for _, l := range s.rule.lists {
			if l.name == "changes" && !s.c.o.Planned {
				return []string{"the planned operations are not known before a plan"}
			}
			name := l.name
			if name == "core::getresources" {
				name = "resources"
			}
			v := s.c.list(name, l.kind, cmp.Or(l.pattern.text, "*"))
			switch {
			case v.IsWhollyKnown():
			case v.IsKnown():
				return []string{"values of the estate are not known " + when}
			case s.c.partial:
				return []string{"modules that are not installed may contain other objects"}
			default:
				return []string{"the number of objects in the list is not known " + when}
			}
		}
	}
	return out
}
