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
	Name     string // the path from the estate's root, with slashes
	Needs    []*Unit
	NeededBy []*Unit
	External []string // dependencies that lie outside of the estate
	// Excluded says why the unit takes no part in the command; "" if it does.
	Excluded string
	// Outside is true for units that do not lie below the estate's root, which
	// filters bring in.
	Outside bool
	// Broken is what is wrong with a unit file that cannot be read. Such units are there
	// only where Settings.Lenient or Settings.Whole is set, and nothing but their names is
	// known, and with Lenient those of their dependencies that can be read. Empty, but not
	// nil, for units that are Removed.
	Broken diag.List
	// Partial is set where the file was read in part: only the check and what lists units
	// work with it.
	Partial bool
	// Removed is true for units that are no longer there, which filters by git bring
	// in: all that they manage is to be destroyed.
	Removed bool
	// Invalid is what discovery found wrong with the unit.
	Invalid diag.List
	// Commit is where a filter by git found the unit; zero if none did.
	Commit Commit

	edges []unit.Edge
	early *early // nil: it is asked for
	// ofStack are the units behind an edge that leads to a stack, by its ID.
	ofStack map[string][]*Unit
	// stackDirs are the folders of the units of such a stack, whether they were made or not.
	stackDirs map[string][]string
}

// Called is how messages call the unit: its name or, of the one in the working folder, that
// of the folder.
func (u *Unit) Called() string {
	if u.Name == "." {
		return filepath.Base(u.Dir)
	}
	return u.Name
}

// A Commit is where a filter by git found a unit.
type Commit struct {
	Ref  string // the commit, as it was written
	Name string // the unit's path from the repository
}

// unread reports whether nothing but the name of a unit is known.
func (u *Unit) unread() bool { return u.Broken != nil && !u.Partial }

// ByName compares units by name.
func ByName(a, b *Unit) int { return cmp.Compare(a.Name, b.Name) }

// needs is Needs or NeededBy as a function, for those who go through a graph one way or the other.
func needs(u *Unit) []*Unit    { return u.Needs }
func neededBy(u *Unit) []*Unit { return u.NeededBy }
