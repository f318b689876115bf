package discovery

import (
	"cmp"
	"path/filepath"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/unit"
)

// A Unit is one unit of an estate.
type Unit struct {
	*unit.Unit
	Name     string // path relative to the estate's root, with slashes
	Needs    []*Unit
	NeededBy []*Unit
	External []string // IDs of dependencies outside of the estate
	// Excluded is the reason why the unit is excluded from the command. "" means that it is not.
	Excluded string
	// Outside is true for units outside of the estate's root, which filters add.
	Outside bool
	// Broken contains the errors of a unit file that cannot be read. Such units only exist if
	// Settings.Lenient or Settings.Whole is set. Only their names are known and, with Lenient,
	// the dependencies that can be read. It is empty but not nil for units that are Removed or
	// known only by name.
	Broken diag.List
	// Partial means that the file was read in part. Only checks and listings use such units.
	Partial bool
	// Removed is true for units that were deleted between the commits of a git filter. All their
	// objects are destroyed.
	Removed bool
	// Former contains the units that depended on a Removed unit in the earlier commit, and do
	// not any more. The unit is destroyed after them.
	Former []*Unit
	// Invalid contains the errors that discovery found in the unit.
	Invalid diag.List
	// Commit is the commit in which a git filter found the unit, or zero.
	Commit Commit

	edges  []unit.Edge
	tree   string   // of a Removed unit: the worktree that it was read from
	early  *early   // nil means that it was not computed when the unit was read
	judged *verdict // nil means that it was not computed with the dependencies
	// ofStack contains the units of each stack that the unit depends on, by the ID of the edge.
	ofStack map[string][]*Unit
	// stackDirs contains the directories of all units of these stacks, including those not
	// generated yet.
	stackDirs map[string][]string
}

// Called returns the name of the unit in messages. For the unit in the root directory it is the
// name of that directory.
func (u *Unit) Called() string {
	if u.Name == "." {
		return filepath.Base(u.Dir)
	}
	return u.Name
}

// A Commit is the commit in which a git filter found a unit.
type Commit struct {
	Ref  string // the commit, as written in the filter
	Name string // path of the unit in the repository
}

// unread reports whether only the name of a unit is known.
func (u *Unit) unread() bool { return u.Broken != nil && !u.Partial }

// ByName compares units by name.
func ByName(a, b *Unit) int { return cmp.Compare(a.Name, b.Name) }

// needs and neededBy return Needs and NeededBy, as functions that select the direction of a graph
// traversal.
func needs(u *Unit) []*Unit    { return u.Needs }
func neededBy(u *Unit) []*Unit { return u.NeededBy }
