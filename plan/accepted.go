package plan

import (
	"slices"
	"strings"
)

// An Acceptance is an entry in the list of accepted drift. In Address, Unit and the steps of
// Attribute, "*" represents any text.
type Acceptance struct {
	Address   string // address of the instance
	Attribute string // path of the attribute, such as "tags[\"Name\"]"; "" means everything, also that the object is gone
	Provider  string // source of the provider, such as "hashicorp/aws"; "" means any
	Unit      string // directory of the unit, relative to the directory of the file; "" means any
	Reason    string
	Expires   string // the last day on which the entry accepts drift, such as "2027-01-31"; "" means never
	Expired   bool   // the entry accepts nothing
	File      string // as shown to users
	Line      int
}

// AcceptedDrift is a change made outside of Terrace that the list of accepted drift contains.
type AcceptedDrift struct {
	Address    string
	Attributes []string     // the changed parts; empty if the object is gone
	By         []Acceptance // the entries, each once
}

// Acceptances is the list of accepted drift.
type Acceptances struct {
	Entries []Acceptance
	Dir     string // directory of the run, relative to that of the file, with slashes; "" means the same
}

// In returns the entries for the unit in a directory, which is relative to that of the file.
func (l Acceptances) In(dir string) Acceptances {
	l.Entries = slices.DeleteFunc(slices.Clone(l.Entries), func(e Acceptance) bool { return e.Unit != "" && !Wildcard(e.Unit, dir) })
	l.Dir = dir
	return l
}

// Wildcard reports whether a text matches a pattern, in which "*" represents any text.
func Wildcard(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return strings.HasSuffix(text, last)
}
