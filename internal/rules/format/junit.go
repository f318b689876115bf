package format

import (
	"encoding/xml"
	"fmt"
	"io"

	"github.com/terrace-iac/terrace/internal/rules/finding"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitFailure `xml:"failure"`
	Skipped *junitSkipped `xml:"skipped"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

// JUnit writes a report as JUnit XML: one suite for each rule, with a case for each finding. A rule
// without findings has one case, which passed. Findings below the level fail are skipped, with
// their message.
func JUnit(w io.Writer, r *Report, fail finding.Level) error {
	var doc junitSuites
	for _, rule := range r.Rules {
		s := junitSuite{Name: rule.Name}
		for _, f := range r.Findings {
			if f.Rule != rule.Name {
				continue
			}
			place := ""
			if at := f.At(); at.Filename != "" {
				place = fmt.Sprintf("%s:%d", at.Filename, at.Start.Line)
			}
			c := junitCase{Name: Subject(f), Class: rule.Name}
			if c.Name == "" {
				c.Name = place
			}
			switch {
			case f.Verdict == finding.Pass:
			case f.Verdict == finding.Unknown:
				c.Skipped = &junitSkipped{"not yet known: " + f.Message}
			case f.Waived != "":
				c.Skipped = &junitSkipped{"exception: " + f.Waived}
			case f.Level < fail:
				c.Skipped = &junitSkipped{fmt.Sprintf("%s: %s %s", f.Level, place, f.Message)}
			default:
				c.Failure = &junitFailure{f.Message, f.Level.String(), place}
				s.Failures++
			}
			if c.Skipped != nil {
				s.Skipped++
			}
			s.Cases = append(s.Cases, c)
		}
		if len(s.Cases) == 0 {
			s.Cases = []junitCase{{Name: rule.Name, Class: rule.Name}}
		}
		s.Tests = len(s.Cases)
		doc.Tests, doc.Failures = doc.Tests+s.Tests, doc.Failures+s.Failures
		doc.Suites = append(doc.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(doc); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
