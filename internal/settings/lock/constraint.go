package lock

import (
	"cmp"
	"slices"
	"strings"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/apparentlymart/go-versions/versions/constraints"
)

// Constraints contains version constraints of a provider, which must all be met. nil Constraints
// allow every released version.
type Constraints []constraints.SelectionSpec

// ParseConstraints parses comma-separated constraints of a provider, such as
// ">= 1.2, < 2.0".
func ParseConstraints(text string) (Constraints, error) {
	spec, err := constraints.ParseRubyStyleMulti(text)
	return Constraints(spec), err
}

// Allows returns the set of versions that meet the constraints. It contains a prerelease only if
// a constraint names it exactly.
func (c Constraints) Allows() versions.Set {
	return versions.MeetingConstraints(constraints.IntersectionSpec(c))
}

// opRank returns the position of an operator among constraints on one version.
func opRank(op constraints.SelectionOp) int {
	switch op {
	case constraints.OpGreaterThan:
		return 1
	case constraints.OpGreaterThanOrEqual:
		return 2
	case constraints.OpEqual:
		return 3
	case constraints.OpGreaterThanOrEqualPatchOnly:
		return 4
	case constraints.OpGreaterThanOrEqualMinorOnly:
		return 5
	case constraints.OpLessThanOrEqual:
		return 6
	case constraints.OpLessThan:
		return 7
	case constraints.OpNotEqual:
		return 8
	default:
		return 9
	}
}

// String returns the canonical form: sorted by version and operator, without duplicates, with
// complete version numbers. Without constraints it is "".
func (c Constraints) String() string {
	sorted := slices.Clone(c)
	slices.SortStableFunc(sorted, func(a, b constraints.SelectionSpec) int {
		return cmp.Or(
			compareBoundary(a.Boundary, b.Boundary),
			cmp.Compare(opRank(a.Operator), opRank(b.Operator)),
			cmp.Compare(a.Boundary.Metadata, b.Boundary.Metadata),
		)
	})
	parts := make([]string, 0, len(sorted))
	for _, s := range sorted {
		parts = append(parts, specText(s))
	}
	return strings.Join(slices.Compact(parts), ", ")
}

func compareBoundary(a, b constraints.VersionSpec) int {
	va, vb := boundaryVersion(a), boundaryVersion(b)
	switch {
	case va.LessThan(vb):
		return -1
	case vb.LessThan(va):
		return 1
	}
	return 0
}

func boundaryVersion(b constraints.VersionSpec) versions.Version {
	return versions.Version{
		Major: b.Major.Num, Minor: b.Minor.Num, Patch: b.Patch.Num,
		Prerelease: versions.VersionExtra(b.Prerelease),
	}
}

func specText(s constraints.SelectionSpec) string {
	v := boundaryVersion(s.Boundary)
	v.Metadata = versions.VersionExtra(s.Boundary.Metadata)
	text := v.String()
	switch s.Operator {
	case constraints.OpGreaterThan:
		return "> " + text
	case constraints.OpGreaterThanOrEqual:
		return ">= " + text
	case constraints.OpLessThan:
		return "< " + text
	case constraints.OpLessThanOrEqual:
		return "<= " + text
	case constraints.OpNotEqual:
		return "!= " + text
	case constraints.OpGreaterThanOrEqualPatchOnly:
		return "~> " + text
	case constraints.OpGreaterThanOrEqualMinorOnly:
		head := versions.Version{Major: v.Major, Minor: v.Minor}.String()
		return "~> " + strings.TrimSuffix(head, ".0") + strings.TrimPrefix(text, versions.Version{Major: v.Major, Minor: v.Minor, Patch: v.Patch}.String())
	default:
		return text
	}
}
