package discovery

import (
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/diag"
)

// identity identifies a message. Equal messages occur repeatedly if units share files.
type identity struct {
	code, summary, detail, file string
	line, column                int
}

func identify(m *diag.Message) identity {
	id := identity{code: m.Code, summary: m.Summary, detail: m.Detail}
	if m.At != nil {
		id.file, id.line, id.column = m.At.Filename, m.At.Start.Line, m.At.Start.Column
	}
	return id
}

// NamedUnits is the maximum number of units that a message about several units names.
const NamedUnits = 3

// Reported is the set of messages that were reported, so that none is reported twice.
type Reported map[identity]bool

// Join concatenates the messages of each unit, without those reported before, and records them. A
// message that occurs in several units is returned once and names them.
func (r Reported) Join(units []*Unit, all []diag.List) diag.List {
	first, in := map[identity]*diag.Message{}, map[*diag.Message][]*Unit{}
	var ds diag.List
	for i, one := range all {
		for _, m := range one {
			id := identify(m)
			if r[id] {
				continue
			}
			if first[id] == nil {
				c := *m
				first[id] = &c
				ds = append(ds, &c)
			}
			if m.Severity == diag.Error { // an error in one unit makes it an error
				first[id].Severity = diag.Error
			}
			m := first[id]
			if have := in[m]; len(have) == 0 || have[len(have)-1] != units[i] {
				in[m] = append(have, units[i])
			}
		}
	}
	for id, m := range first {
		r[id] = true
		if text := cameUp(m, in[m]); text != "" {
			m.Detail += " This came up in " + text + "."
		}
	}
	return ds
}

// cameUp returns a phrase with the units that a message occurred in. It returns "" if the
// message's own source range shows that.
func cameUp(m *diag.Message, units []*Unit) string {
	if len(units) == 1 && m.At != nil && m.At.Filename == units[0].Path {
		return ""
	}
	var names []string
	for _, u := range units[:min(len(units), NamedUnits)] {
		names = append(names, u.Called())
	}
	switch text := strings.Join(names, ", "); {
	case len(units) == 1:
		return "the unit " + text
	case len(units) <= NamedUnits:
		return "the units " + text
	default:
		return fmt.Sprintf("%d units, %s among them", len(units), text)
	}
}
