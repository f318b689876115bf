package state

import (
	"cmp"
	"slices"
)

// CheckKind is the kind of block that contains conditions.
type CheckKind string

// The kinds, as spelled in state files.
const (
	CheckResource CheckKind = "resource"
	CheckOutput   CheckKind = "output"
	CheckBlock    CheckKind = "check"
	CheckVariable CheckKind = "var"
)

// CheckStatus is the result of a check.
type CheckStatus string

// The statuses, as spelled in state files.
const (
	CheckPass    CheckStatus = "pass"
	CheckFail    CheckStatus = "fail"
	CheckError   CheckStatus = "error"
	CheckUnknown CheckStatus = "unknown"
)

// A CheckResult is the combined result of the conditions in one configuration block.
type CheckResult struct {
	Kind    CheckKind
	Addr    string // address of the block without instance keys
	Status  CheckStatus
	Objects []CheckObject // nil means that the instances are not known
}

// A CheckObject is the combined result of the conditions for one instance of the block.
type CheckObject struct {
	Addr     string
	Status   CheckStatus
	Failures []string // error messages of the failed conditions
}

// SortChecks sorts results by kind and address, and their objects by address, in place. The
// order in which checks ran has no meaning.
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
