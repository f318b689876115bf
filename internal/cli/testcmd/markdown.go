package testcmd

import (
	"fmt"
	"strconv"

	"github.com/terrace-iac/terrace/internal/cli/markdown"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/source"
)

// document returns the Markdown of test results. code is the exit status of the command.
func document(dir string, results []*testrun.Result, set *source.Set, code int) *markdown.Document {
	d := &markdown.Document{Mark: "terrace: test of " + dir, Subjects: []string{dir}, More: "The output of the command contains everything."}
	d.Table.Columns = []markdown.Column{{Name: "File"}, {Name: "Passed", Right: true}, {Name: "Failed", Right: true}, {Name: "Skipped", Right: true}}
	all := map[testrun.Status]int{}
	for _, r := range results {
		n := map[testrun.Status]int{}
		if text := printed(set, r.Diags); text != "" {
			d.Messages = append(d.Messages, markdown.Message{Error: r.Diags.HasErrors(), Title: r.Diags[0].Summary, Text: text, Of: []string{r.File.Name}})
		}
		for _, one := range r.Runs {
			n[one.Status]++
			all[one.Status]++
			name := r.File.Name + ", run " + strconv.Quote(one.Run.Name)
			if text := printed(set, one.Diags); text != "" && (one.Status == testrun.Fail || one.Status == testrun.Error) {
				d.Details = append(d.Details, markdown.Detail{Title: name, Note: "failed", Text: text})
			}
		}
		for _, x := range r.Cleanup {
			if text := printed(set, x.Diags); text != "" {
				d.Messages = append(d.Messages, markdown.Message{Error: x.Diags.HasErrors(), Title: x.Diags[0].Summary, Text: text, Of: []string{r.File.Name}})
			}
		}
		d.Table.Rows = append(d.Table.Rows, []markdown.Cell{
			{Text: r.File.Name, Code: true}, {Text: strconv.Itoa(n[testrun.Pass])}, {Text: strconv.Itoa(n[testrun.Fail] + n[testrun.Error])}, {Text: strconv.Itoa(n[testrun.Skip])},
		})
	}
	what := "Tests passed"
	if code != 0 {
		what = "Tests failed"
	}
	d.Title = fmt.Sprintf("%s: %d passed, %d failed", what, all[testrun.Pass], all[testrun.Fail]+all[testrun.Error])
	if n := all[testrun.Skip]; n > 0 {
		d.Title += fmt.Sprintf(", %d skipped", n)
	}
	d.Title += " in"
	return d
}
