package testrun

import (
	"context"
	"maps"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// Remaining returns the states that earlier tests have left for a run on disk. Its states do not
// contain those in backends.
type Remaining func(ctx context.Context, file *testfile.File, run *testfile.Run) ([]Held, diag.List)

// Cleanup destroys the objects that earlier tests have left, in the files in order: those of killed
// tests, those that could not be destroyed, and unless only is set those that were kept with
// skip_cleanup or in a backend. The Runs of the results are empty, and each Cleanup is a state that
// had objects. A state with remaining objects stays where it is.
func (s *Suite) Cleanup(ctx context.Context, left Remaining, only bool) ([]*Result, diag.List) {
	defer s.shared.Close()
	ds := s.open(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	defer func() {
		for _, o := range s.plain {
			o.e.Close()
		}
	}()
	out := make([]*Result, len(s.Files))
	for i, file := range s.Files {
		out[i] = &Result{File: file, Status: Pass}
		var more diag.List
		out[i].Cleanup, more = s.cleanFile(ctx, file, left, only)
		if out[i].Diags = more; more.HasErrors() {
			out[i].Status = Error
		}
		for _, c := range out[i].Cleanup {
			if c.Left != nil && !c.Kept {
				out[i].Status = Error
			}
		}
	}
	return out, ds
}

// cleanFile destroys the objects that the runs of a test file have left. It begins with the last run.
func (s *Suite) cleanFile(ctx context.Context, file *testfile.File, left Remaining, only bool) (all []*Cleanup, ds diag.List) {
	type stored struct {
		run  *testfile.Run // the last run of the file that uses the state
		held Held          // nil for a state in the backend of the run
	}
	var states []stored
	last := map[string]*testfile.Run{}
	for _, r := range file.Runs {
		last[r.State()] = r
	}
	outputs := map[string]cty.Value{}
	for _, r := range file.Runs {
		if r.Backend != nil {
			states = append(states, stored{run: r})
			continue
		}
		found, more := left(ctx, file, r)
		ds = append(ds, more...)
		for _, h := range found {
			states = append(states, stored{last[r.State()], h})
			outputs[r.Name] = outputsOf(h.Current())
		}
	}
	for i := len(states) - 1; i >= 0; i-- {
		x := states[i]
		f := &fileRun{
			Suite: s, file: file, result: &Result{File: file}, states: map[string]*testState{}, outputs: maps.Clone(outputs), cleaning: true, only: only,
		}
		more := f.clean(ctx, x.run, x.held)
		all = append(all, f.result.Cleanup...)
		ds = append(append(ds, more...), f.close()...)
	}
	return all, ds
}

// clean destroys the objects in one state.
func (f *fileRun) clean(ctx context.Context, r *testfile.Run, held Held) diag.List {
	s := &step{fileRun: f, run: r, res: &RunResult{Run: r}}
	st := f.state(r)
	if st.held = held; held != nil {
		st.now = held.Current()
	}
	ds := s.prepare(ctx)
	if ds.HasErrors() {
		return ds
	}
	f.use(s)
	if held == nil {
		st.backend = r.Backend
		if more := s.take(ctx, st); more.HasErrors() {
			return append(ds, more...)
		}
	}
	f.cleanup(ctx)
	return ds
}

// outputsOf returns the outputs in a state as an object.
func outputsOf(s *state.State) cty.Value {
	vals := map[string]cty.Value{}
	if s != nil {
		for name, o := range s.Outputs {
			vals[name] = o.Value
		}
	}
	return cty.ObjectVal(vals)
}
