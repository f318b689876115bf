package testcmd

import (
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/rules"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
)

// reportRules reports the results of tests of rules and returns the exit code.
func reportRules(c *command.Call, o *options, files []*rules.TestFile) ([]*testrun.Result, int) {
	p := &printer{Call: c, options: o}
	var all []*testrun.Result
	for _, f := range files {
		out := &testrun.Result{File: &testfile.File{Name: f.Name}, Status: testrun.Pass, Diags: f.Diags}
		if f.Diags.HasErrors() {
			out.Status = testrun.Error
		}
		p.tell(f.Diags, f.Name, "")
		for _, r := range f.Runs {
			one := &testrun.RunResult{Run: &testfile.Run{Name: r.Name, At: r.At}, Status: testrun.Pass, Diags: r.Diags}
			if r.Diags.HasErrors() {
				one.Status = testrun.Fail
			}
			out.Status = out.Status.Worse(one.Status)
			out.Runs = append(out.Runs, one)
			p.outcome(f.Name, r.Name, one.Status)
			p.tell(r.Diags, f.Name, r.Name)
		}
		all = append(all, out)
	}
	return all, p.end(all)
}
