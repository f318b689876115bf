// Package finding defines the results of rules and of the built-in lint.
//
// Main types: Finding, and Edit, a change of a file that mends a finding. The one rule: the
// fingerprint of a finding contains no position, so that it survives moved lines.
package finding

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/source"
)

// Level is the importance of a finding. A higher level is more important.
type Level uint8

// The levels, as in the `level` argument of a rule. Only Error changes the exit code.
const (
	Advice Level = iota + 1
	Warning
	Error
)

// levels are the names of the levels.
var levels = []string{Advice: "advice", Warning: "warning", Error: "error"}

// String returns the name of the level: "advice", "warning" or "error".
func (l Level) String() string { return name(levels, int(l)) }

// ParseLevel returns the level with the given name.
func ParseLevel(name string) (Level, bool) {
	i := slices.Index(levels, name)
	return Level(max(i, 0)), i > 0
}

// Verdict is the result of a rule for one subject.
type Verdict uint8

// The verdicts. Unknown means that a value is not known yet, so that the rule can neither pass
// nor fail.
const (
	Pass Verdict = iota + 1
	Fail
	Unknown
)

// String returns the name of the verdict: "pass", "fail" or "unknown".
func (v Verdict) String() string {
	return name([]string{Pass: "pass", Fail: "fail", Unknown: "unknown"}, int(v))
}

// name returns the name with the given index, or its number if there is none.
func name(names []string, i int) string {
	if i > 0 && i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("invalid (%d)", i)
}

// Finding is the result of one rule, or one lint, for one subject.
type Finding struct {
	Rule    string // the name of the rule, or the code of the lint
	Level   Level
	Verdict Verdict
	Message string
	Unit    string // the name of the unit as it is shown; "" in a directory
	Address string // the subject: resource instance, module, provider, unit or edge
	Path    string // the attribute path inside the subject; "" for the whole subject
	// Text identifies the value or the text of the subject in the fingerprint. It is never
	// shown. "" if Address and Path suffice.
	Text    string
	SetAt   source.Range  // where the value was set, as `explain` reports it
	Layer   *source.Layer // the layer of the file of SetAt; nil means base
	Defined source.Range  // the declaration of the subject
	RuleAt  source.Range  // the declaration of the rule; zero for built-in lint
	Waived  string        // the reason of a recorded exception; "" if there is none
	Fix     []Edit        // the edits that mend the finding; nil unless exactly one fix exists
	// Rewrite is true if `check -fix` mends the finding, and Fix is nil because the edits are in
	// several files.
	Rewrite bool
}

// Edit replaces a range of a file by a text. A range whose start is its end inserts the text.
type Edit struct {
	At   source.Range
	Text string
}

// At returns the position that a finding is reported at: where the value was set, else the
// declaration of the subject, else the rule.
func (f *Finding) At() source.Range {
	for _, at := range []source.Range{f.SetAt, f.Defined} {
		if at.Filename != "" {
			return at
		}
	}
	return f.RuleAt
}

// Counts reports whether a finding counts against the result: it failed and has no exception.
func (f *Finding) Counts() bool { return f.Verdict == Fail && f.Waived == "" }

// Fingerprint returns an identifier of a finding that survives moved lines and changed white
// space. Two findings of one subject that differ in nothing but their position have the same
// fingerprint; Fingerprints numbers them.
func (f *Finding) Fingerprint() string {
	h := sha256.New()
	for _, s := range []string{f.Rule, f.Unit, f.Address, f.Path, strings.Join(strings.Fields(f.Text), " ")} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Fingerprints returns the fingerprints of findings in their order, each only once: the second
// finding with the same fingerprint gets the suffix "/2".
func Fingerprints(all []*Finding) []string {
	out := make([]string, len(all))
	seen := map[string]int{}
	for i, f := range all {
		p := f.Fingerprint()
		seen[p]++
		if out[i] = p; seen[p] > 1 {
			out[i] = fmt.Sprintf("%s/%d", p, seen[p])
		}
	}
	return out
}

// Sort sorts findings by unit, position, rule and subject, so that the order does not depend on
// the order in which they were found. It removes findings that are equal in all of these.
func Sort(all []*Finding) []*Finding {
	slices.SortStableFunc(all, compare)
	return slices.CompactFunc(all, func(a, b *Finding) bool { return compare(a, b) == 0 })
}

func compare(a, b *Finding) int {
	if n := strings.Compare(a.Unit, b.Unit); n != 0 {
		return n
	}
	x, y := a.At(), b.At()
	if n := strings.Compare(x.Filename, y.Filename); n != 0 {
		return n
	}
	if n := cmp.Or(x.Start.Byte-y.Start.Byte, x.End.Byte-y.End.Byte); n != 0 {
		return n
	}
	return cmp.Or(
		strings.Compare(a.Rule, b.Rule), strings.Compare(a.Address, b.Address), strings.Compare(a.Path, b.Path),
		strings.Compare(a.Message, b.Message), cmp.Compare(a.Verdict, b.Verdict),
	)
}
