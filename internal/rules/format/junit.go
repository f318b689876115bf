package format

import (
	"fmt"
	"io"

	"github.com/terrace-iac/terrace/internal/base/junit"
	"github.com/terrace-iac/terrace/internal/rules/finding"
)

// noTime is the time of each case. The schema of Surefire requires one, and a document contains no times.
const noTime = "0"

// JUnit writes a report as JUnit XML: one suite for each rule, with a case for each finding. A rule
// without findings has one case, which passed. Findings below the level fail are skipped, with
// their message.
func JUnit(w io.Writer, r *Report, fail finding.Level) error {
	doc := &junit.Report{}
	for _, rule := range r.Rules {
		s := &junit.Suite{Name: rule.Name}
		for _, f := range r.Findings {
			if f.Rule != rule.Name {
				continue
			}
			place := ""
			if at := f.At(); at.Filename != "" {
				place = fmt.Sprintf("%s:%d", at.Filename, at.Start.Line)
			}
			c := &junit.Case{Name: Subject(f), Class: rule.Name, Time: noTime}
			if c.Name == "" {
				c.Name = place
			}
			switch {
			case f.Verdict == finding.Pass:
			case f.Verdict == finding.Unknown:
				c.Skipped = &junit.Message{Message: "not yet known: " + f.Message}
			case f.Waived != "":
				c.Skipped = &junit.Message{Message: "exception: " + f.Waived}
			case f.Level < fail:
				c.Skipped = &junit.Message{Message: fmt.Sprintf("%s: %s %s", f.Level, place, f.Message)}
			default:
				c.Failure = &junit.Message{Message: f.Message, Type: f.Level.String(), Text: place}
			}
			s.Cases = append(s.Cases, c)
		}
		if len(s.Cases) == 0 {
			s.Cases = []*junit.Case{{Name: rule.Name, Class: rule.Name, Time: noTime}}
		}
		doc.Suites = append(doc.Suites, s)
	}
	return junit.Write(w, doc)
}
