package testcmd

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/junit"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/source"
)

// writeJUnit writes the report of -junit-xml.
func writeJUnit(path string, results []*testrun.Result, set *source.Set) error {
	out := &junit.Report{}
	for _, r := range results {
		suite := &junit.Suite{Name: r.File.Name}
		for _, one := range r.Runs {
			c := &junit.Case{Name: one.Run.Name, Class: r.File.Name, Time: seconds(one.Elapsed)}
			text := printed(set, one.Diags)
			switch one.Status {
			case testrun.Skip:
				c.Skipped, c.Time = &junit.Message{Message: "Testcase skipped since an earlier run could not be carried out"}, ""
			case testrun.Fail:
				c.Failure = &junit.Message{Message: "Test run failed", Text: text}
			case testrun.Error:
				c.Error = &junit.Message{Message: "Encountered an error", Text: text}
			default:
				if text != "" {
					c.Output = &junit.Text{Text: text}
				}
			}
			suite.Cases = append(suite.Cases, c)
		}
		out.Suites = append(out.Suites, suite)
	}
	return atomicfile.WriteFrom(path, 0o644, func(w io.Writer) error { return junit.Write(w, out) })
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// printed returns messages as they are printed for people.
func printed(set *source.Set, ds diag.List) string {
	var b strings.Builder
	p := &diag.Printer{Set: set}
	_ = p.Print(&b, ds)
	return strings.TrimSpace(b.String())
}
