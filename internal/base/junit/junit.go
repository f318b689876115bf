// Package junit writes reports in the XML format of JUnit, which Jenkins, GitLab and other tools read.
//
// Main types: Report, Suite and Case; Write writes a report. The one rule: a report contains no
// element that only one of these tools knows.
package junit

import (
	"encoding/xml"
	"io"
)

// A Report contains the results of test suites.
type Report struct {
	XMLName  xml.Name `xml:"testsuites"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Suites   []*Suite `xml:"testsuite"`
}

// A Suite is a group of cases. Write sets the numbers.
type Suite struct {
	Name     string  `xml:"name,attr"`
	Tests    int     `xml:"tests,attr"`
	Skipped  int     `xml:"skipped,attr"`
	Failures int     `xml:"failures,attr"`
	Errors   int     `xml:"errors,attr"`
	Cases    []*Case `xml:"testcase"`
}

// A Case is the result of one test. At most one of Skipped, Failure and Error is not nil; a case
// without them has passed.
type Case struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Time    string   `xml:"time,attr,omitempty"` // in seconds; "" means that it was not measured
	Skipped *Message `xml:"skipped,omitempty"`
	Failure *Message `xml:"failure,omitempty"`
	Error   *Message `xml:"error,omitempty"`
	Output  *Text    `xml:"system-err,omitempty"`
}

// A Message is the reason of a result.
type Message struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",cdata"`
}

// Text is the output of a test.
type Text struct {
	Text string `xml:",cdata"`
}

// Write sets the numbers of a report and writes it.
func Write(w io.Writer, r *Report) error {
	r.Tests, r.Failures = 0, 0
	for _, s := range r.Suites {
		s.Tests, s.Skipped, s.Failures, s.Errors = len(s.Cases), 0, 0, 0
		for _, c := range s.Cases {
			switch {
			case c.Skipped != nil:
				s.Skipped++
			case c.Failure != nil:
				s.Failures++
			case c.Error != nil:
				s.Errors++
			}
		}
		r.Tests, r.Failures = r.Tests+s.Tests, r.Failures+s.Failures
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(r); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
