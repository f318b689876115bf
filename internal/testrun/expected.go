package testrun

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
)

// expectations contains the objects whose conditions are expected to fail in a run.
type expectations struct {
	all     []*expectation
	failed  diag.List // the expected failures that occurred
	stopped bool      // an expected error occurred, so that the run is incomplete
}

// An expectation is one object.
type expectation struct {
	ref    hcl.Traversal
	name   string      // as in diag.Checked, if it is not a resource
	target addr.Target // set for a resource
	met    bool
	error  bool // met by an error, not by a warning
}

// readExpected reads the expect_failures argument.
func readExpected(r *testfile.Run) (*expectations, diag.List) {
	out := &expectations{}
	var ds diag.List
	for _, ref := range r.Expected {
		x := &expectation{ref: ref}
		at := ref.SourceRange()
		switch root := ref.RootName(); root {
		case "var", "output", "check":
			if len(ref) > 1 {
				x.name = root + "." + addr.StepName(ref[1])
			}
		case "local", "module", "path", "terraform", "tofu", "each", "count", "self", "run":
		default:
			t, err := addr.TargetFromTraversal(ref)
			if err == nil && !t.IsModule() {
				x.target = t
			}
		}
		if x.name == "" && x.target.IsModule() {
			ds = append(ds, diag.Errorf(diag.CodeTestAssertion, &at, "Invalid `expect_failures` reference", "You cannot expect failures from %s. You can only expect failures from checkable objects such as input variables, output values, check blocks, managed resources and data sources.", addr.Text(ref))...)
			continue
		}
		out.all = append(out.all, x)
	}
	return out, ds
}

// of returns the expectation that a failed condition meets, or nil.
func (e *expectations) of(m *diag.Message) *expectation {
	object, ok := m.Extra.(diag.Checked)
	if !ok || m.Code != diag.Condition {
		return nil
	}
	for _, x := range e.all {
		if x.name != "" && x.name == string(object) {
			return x
		}
		if x.name == "" {
			if i, err := addr.ParseInstance(string(object)); err == nil && x.target.Contains(i) {
				return x
			}
		}
	}
	return nil
}

// filter removes the messages that were expected.
func (e *expectations) filter(ds diag.List) diag.List {
	return slices.DeleteFunc(slices.Clone(ds), func(m *diag.Message) bool {
		x := e.of(m)
		if x == nil {
			return false
		}
		x.met = true
		e.failed = append(e.failed, m)
		if m.Severity == diag.Error {
			x.error, e.stopped = true, true
		}
		return true
	})
}

// reopen marks all expectations as not met after a plan, since apply evaluates the conditions
// again.
func (e *expectations) reopen() {
	for _, x := range e.all {
		x.met = false
	}
	e.failed = nil
}

// judge adds errors for expected failures that did not occur. Later runs are then skipped, as in
// OpenTofu. An expected failure that occurred too early to count is not reported as missing.
func (e *expectations) judge(s *step, ds diag.List) diag.List {
	s.res.Expected = e.failed
	ds = unexpectedChecks(ds)
	if ds.HasErrors() && s.res.Status == Pending {
		s.res.Status = Error
	}
	failed := map[*expectation]bool{}
	for _, m := range ds.Errors() {
		if x := e.of(m); x != nil {
			failed[x] = true
		}
	}
	for _, x := range e.all {
		if x.met || failed[x] {
			continue
		}
		at := x.ref.SourceRange()
		ds = append(ds, diag.Errorf(diag.CodeTestAssertion, &at, "Missing expected failure", "The checkable object, %s, was expected to report an error but did not.", addr.Text(x.ref))...)
		s.res.Status = s.res.Status.Worse(Error)
	}
	return ds
}

// isCheck reports whether a message is about a failed check block.
func isCheck(m *diag.Message) bool {
	return m.Code == diag.Condition && m.Severity == diag.Warning
}

// unexpectedChecks turns warnings about failed check blocks into errors.
func unexpectedChecks(ds diag.List) diag.List {
	out := make(diag.List, len(ds))
	for i, m := range ds {
		if isCheck(m) {
			c := *m
			c.Severity = diag.Error
			m = &c
		}
		out[i] = m
	}
	return out
}
