package state

import (
	"cmp"
	"slices"
)

// CheckKind is the kind of thing that conditions are written on.
type CheckKind string

// The kinds, as state files have them.
const (
	CheckResource CheckKind = "resource"
	CheckOutput   CheckKind = "output"
	CheckBlock    CheckKind = "check"
	CheckVariable CheckKind = "var"
)

// CheckStatus is how a check went.
type CheckStatus string

// The statuses, as state files have them.
const (
	CheckPass    CheckStatus = "pass"
	CheckFail    CheckStatus = "fail"
	CheckError   CheckStatus = "error"
	CheckUnknown CheckStatus = "unknown"
)

// A CheckResult is how the conditions of one configuration block went.
type CheckResult struct {
	Kind    CheckKind
	Addr    string // the block's address without instance keys
	Status  CheckStatus
	Objects []CheckObject // nil: it is not known which objects there are
}

// A CheckObject is how the conditions of one instance of the block went.
type CheckObject struct {
	Addr     string
	Status   CheckStatus
	Failures []string // error messages of the conditions that failed
}

// SortChecks orders results by kind and address, and their objects by address,
// in place: the order in which checks ran means nothing.
func SortChecks(cs []CheckResult) {
	slices.SortFunc(cs, func(a, b CheckResult) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Addr, b.Addr))
	})
	for _, c := range cs {
		slices.SortFunc(c.Objects, func(a, b CheckObject) int { return cmp.Compare(a.Addr, b.Addr) })
	}
}

func equalChecks(a, b []CheckResult) bool {
	return slices.EqualFunc(a, b, func(a, b CheckResult) bool {
		return a.Kind == b.Kind && a.Addr == b.Addr && a.Status == b.Status &&
			slices.EqualFunc(a.Objects, b.Objects, func(a, b CheckObject) bool {
				return a.Addr == b.Addr && a.Status == b.Status && slices.Equal(a.Failures, b.Failures)
			})
	})
}
