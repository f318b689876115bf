package testcmd

import (
	"encoding/xml"
	"fmt"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/source"
)

// Elements of a report in the format that Jenkins and other tools read.
type (
	junitReport struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Time    string        `xml:"time,attr,omitempty"`
		Skipped *junitMessage `xml:"skipped,omitempty"`
		Failure *junitMessage `xml:"failure,omitempty"`
		Error   *junitMessage `xml:"error,omitempty"`
		Output  *junitText    `xml:"system-err,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",cdata"`
	}
	junitText struct {
		Text string `xml:",cdata"`
	}
)

// writeJUnit writes the report of -junit-xml.
func writeJUnit(path string, results []*testrun.Result, set *source.Set) error {
	out := junitReport{}
	for _, r := range results {
		suite := junitSuite{Name: r.File.Name, Tests: len(r.Runs)}
		for _, one := range r.Runs {
			c := junitCase{Name: one.Run.Name, Class: r.File.Name, Time: seconds(one.Elapsed)}
			text := printed(set, one.Diags)
			switch one.Status {
			case testrun.Skip:
				suite.Skipped++
				c.Skipped, c.Time = &junitMessage{Message: "Testcase skipped since an earlier run could not be carried out"}, ""
			case testrun.Fail:
				suite.Failures++
				c.Failure = &junitMessage{Message: "Test run failed", Text: text}
			case testrun.Error:
				suite.Errors++
				c.Error = &junitMessage{Message: "Encountered an error", Text: text}
			default:
				if text != "" {
					c.Output = &junitText{text}
				}
			}
			suite.Cases = append(suite.Cases, c)
		}
		out.Suites = append(out.Suites, suite)
	}
	doc, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append([]byte(xml.Header), append(doc, '\n')...), 0o644)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// printed returns messages as they are printed for people.
func printed(set *source.Set, ds diag.List) string {
	var b strings.Builder
	p := &diag.Printer{Set: set}
	_ = p.Print(&b, ds)
	return strings.TrimSpace(b.String())
}
