// Package format writes findings for other programs: as JSON, SARIF 2.1.0 and JUnit XML, and as a
// baseline, which lists the findings that are known.
//
// Main types: Report, the findings of a check, and Baseline. The one rule: a document contains no
// lines of the configuration, which may be secret, and no time, so that equal findings give equal
// documents.
package format

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/source"
)

// Version is the version of the JSON form of a Report.
const Version = "1.0"

// A Report is the result of a check.
type Report struct {
	Findings []*finding.Finding // sorted
	Prints   []string           // the fingerprint of each finding
	Known    int                // the number of findings that a baseline removed
	Rules    []Rule             // the rules that were checked, sorted by name
	Partial  bool               // as in rules.Result; only for people
}

// A Rule is a rule that was checked.
type Rule struct {
	Name, Finds string
	Level       finding.Level
}

// New returns the report of findings.
func New(all []*finding.Finding, rules []Rule) *Report {
	all = finding.Sort(all)
	r := &Report{Findings: all, Prints: finding.Fingerprints(all), Rules: rules}
	for _, f := range all {
		if !slices.ContainsFunc(r.Rules, func(x Rule) bool { return x.Name == f.Rule }) {
			r.Rules = append(r.Rules, Rule{Name: f.Rule, Level: f.Level})
		}
	}
	slices.SortFunc(r.Rules, func(a, b Rule) int { return cmp.Compare(a.Name, b.Name) })
	return r
}

// Worst returns the highest level of the findings that count, or 0 if there are none.
func (r *Report) Worst() (worst finding.Level) {
	for _, f := range r.Findings {
		if f.Counts() {
			worst = max(worst, f.Level)
		}
	}
	return worst
}

// Count returns the number of findings at a level that count.
func (r *Report) Count(l finding.Level) (n int) {
	for _, f := range r.Findings {
		if f.Counts() && f.Level == l {
			n++
		}
	}
	return n
}

// Undecided returns the number of findings whose verdict is not yet known, and of those with a
// recorded exception.
func (r *Report) Undecided() (unknown, waived int) {
	for _, f := range r.Findings {
		switch {
		case f.Verdict == finding.Unknown:
			unknown++
		case f.Verdict == finding.Fail && f.Waived != "":
			waived++
		}
	}
	return unknown, waived
}

type jsonReport struct {
	FormatVersion string        `json:"format_version"`
	Numbers       jsonNumbers   `json:"summary"`
	Findings      []jsonFinding `json:"findings"`
}

type jsonNumbers struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Advice   int `json:"advice"`
	Unknown  int `json:"unknown"`
	Waived   int `json:"waived"`
	Known    int `json:"in_baseline"`
}

type jsonFinding struct {
	Rule        string     `json:"rule"`
	Level       string     `json:"level"`
	Verdict     string     `json:"verdict"`
	Message     string     `json:"message"`
	Unit        string     `json:"unit,omitempty"`
	Address     string     `json:"address,omitempty"`
	Path        string     `json:"path,omitempty"`
	SetAt       *jsonRange `json:"set_at,omitempty"`
	Layer       string     `json:"layer,omitempty"`
	Defined     *jsonRange `json:"defined_at,omitempty"`
	RuleAt      *jsonRange `json:"rule_at,omitempty"`
	Waived      string     `json:"waived,omitempty"`
	Fixable     bool       `json:"fixable,omitempty"`
	Fingerprint string     `json:"fingerprint"`
}

type jsonRange struct {
	File  string  `json:"file"`
	Start jsonPos `json:"start"`
	End   jsonPos `json:"end"`
}

type jsonPos struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

func rangeOf(at source.Range) *jsonRange {
	if at.Filename == "" {
		return nil
	}
	return &jsonRange{at.Filename, jsonPos{at.Start.Line, at.Start.Column}, jsonPos{at.End.Line, at.End.Column}}
}

// JSON writes a report as JSON. docs/schemas/check.json describes the form.
func JSON(w io.Writer, r *Report) error {
	unknown, waived := r.Undecided()
	doc := jsonReport{
		Version, jsonNumbers{r.Count(finding.Error), r.Count(finding.Warning), r.Count(finding.Advice), unknown, waived, r.Known}, []jsonFinding{},
	}
	for i, f := range r.Findings {
		x := jsonFinding{
			Rule: f.Rule, Level: f.Level.String(), Verdict: f.Verdict.String(), Message: f.Message, Unit: f.Unit, Address: f.Address, Path: f.Path,
			SetAt: rangeOf(f.SetAt), Defined: rangeOf(f.Defined), RuleAt: rangeOf(f.RuleAt), Waived: f.Waived, Fixable: len(f.Fix) > 0 || f.Rewrite, Fingerprint: r.Prints[i],
		}
		if x.SetAt != nil {
			x.Layer = f.Layer.String()
		}
		doc.Findings = append(doc.Findings, x)
	}
	return write(w, doc)
}

func write(w io.Writer, doc any) error {
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// A Baseline is the set of the fingerprints of known findings.
type Baseline map[string]bool

type jsonBaseline struct {
	FormatVersion string         `json:"format_version"`
	Findings      []jsonBaseItem `json:"findings"`
}

type jsonBaseItem struct {
	Rule        string `json:"rule"`
	Unit        string `json:"unit,omitempty"`
	Address     string `json:"address,omitempty"`
	Fingerprint string `json:"fingerprint"`
}

// WriteBaseline writes the findings that count as a baseline.
func WriteBaseline(w io.Writer, r *Report) error {
	doc := jsonBaseline{Version, []jsonBaseItem{}}
	for i, f := range r.Findings {
		if f.Counts() {
			doc.Findings = append(doc.Findings, jsonBaseItem{f.Rule, f.Unit, f.Address, r.Prints[i]})
		}
	}
	slices.SortFunc(doc.Findings, func(a, b jsonBaseItem) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	return write(w, doc)
}

// ReadBaseline reads a baseline, or the JSON of a report.
func ReadBaseline(text []byte) (Baseline, error) {
	var doc struct {
		FormatVersion string         `json:"format_version"`
		Findings      []jsonBaseItem `json:"findings"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if doc.FormatVersion == "" || doc.Findings == nil {
		return nil, errors.New("it has no list of findings")
	}
	if doc.FormatVersion != Version {
		return nil, fmt.Errorf("its format version is %q, and this program reads %q", doc.FormatVersion, Version)
	}
	out := Baseline{}
	for _, f := range doc.Findings {
		out[f.Fingerprint] = true
	}
	return out, nil
}

// Without removes the findings of a baseline from a report.
func (r *Report) Without(b Baseline) {
	var all []*finding.Finding
	var prints []string
	for i, f := range r.Findings {
		if f.Counts() && b[r.Prints[i]] {
			r.Known++
			continue
		}
		all, prints = append(all, f), append(prints, r.Prints[i])
	}
	r.Findings, r.Prints = all, prints
}
