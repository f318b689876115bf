package estate

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/unit"
)

// # The source that --source gives
//
// For the unit that a command is about alone it is the source as it stands, also where
// the unit has none of its own. For several units, and for those that the one reads
// outputs of, it is where the modules of all lie: the folder that the unit's own source
// names behind its //, or its last name, is looked for in it.

// overridden is the source of a unit as the request has it; own is the unit's, "" for none.
func (e *Estate) overridden(u *Unit, own string) string {
	base := e.o.Request.Source
	if base == "" {
		return own
	}
	if own == "" || !e.o.Sources.Base && e.byID[u.ID] != nil {
		return base
	}
	return sourceBelow(base, own)
}

// sourceBelow is the folder in a base that a source means. A base that names a folder
// itself is taken as it is.
func sourceBelow(base, own string) string {
	root, sub := unit.SplitSource(unit.Getter(own))
	if _, has := unit.SplitSource(base); has != "" {
		return base
	}
	if sub == "" {
		address, _, _ := strings.Cut(root, "?")
		sub = strings.TrimSuffix(path.Base(filepath.ToSlash(address)), ".git")
	}
	if sub == "." || sub == ".." || sub == "/" {
		return base
	}
	address, query, has := strings.Cut(base, "?")
	if has {
		query = "?" + query
	}
	return address + "//" + sub + query
}
