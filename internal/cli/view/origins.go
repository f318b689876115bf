package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/plan"
)

// An Origin is the place that sets a new value of an object; see plan.Cause.
type Origin struct {
	Address string `json:"address"`        // of the object
	Path    string `json:"path"`           // of the value in the object, such as tags.cost; "" for the whole object
	File    string `json:"file,omitempty"` // "" if the value does not come from the configuration
	Line    int    `json:"line,omitempty"`
	Replace bool   `json:"replace,omitempty"` // the change forces the replacement of the object
	Was     string `json:"was,omitempty"`     // the text at the place in the revision of --since
	Kept    bool   `json:"unchanged,omitempty"`
}

// AllOrigins returns the origins of all values of a plan if it contains them, and otherwise those of the
// new values.
func AllOrigins(p *plan.Plan) []Origin {
	if len(p.DataRead) == 0 && !slices.ContainsFunc(p.Changes, func(c *plan.Change) bool { return len(c.Origins) > 0 }) && !slices.ContainsFunc(p.Outputs, func(o *plan.OutputChange) bool { return len(o.Origins) > 0 }) {
		return Origins(p)
	}
	var out []Origin
	add := func(address string, all []plan.Cause) {
		for _, x := range all {
			out = append(out, originOf(address, x))
		}
	}
	for _, c := range p.Changes {
		for _, x := range c.Causes {
			if len(x.Path) == 0 || x.Path.Equals(plan.TriggersPath()) { // of no value
				out = append(out, originOf(c.Addr.String(), x))
			}
		}
		add(c.Addr.String(), c.Origins)
	}
	for _, d := range p.DataRead {
		add(d.Addr.String(), d.Origins)
	}
	for _, o := range p.Outputs {
		add("output."+o.Name, o.Origins)
	}
	return out
}

// Changed returns the origins of new values.
func Changed(all []Origin) []Origin {
	return slices.DeleteFunc(slices.Clone(all), func(o Origin) bool { return o.Kept || strings.HasPrefix(o.Address, "output.") })
}

func originOf(address string, x plan.Cause) Origin {
	return Origin{Address: address, Path: strings.TrimPrefix(value.PathString(x.Path), "."), File: x.File, Line: x.Line, Replace: x.Forces, Was: x.Was, Kept: x.Kept}
}

// Origins returns the causes of a plan, in the order of its changes.
func Origins(p *plan.Plan) []Origin {
	var out []Origin
	for _, c := range p.Changes {
		for _, x := range c.Causes {
			out = append(out, originOf(c.Addr.String(), x))
		}
	}
	return out
}

// WriteOrigins writes a document with origins as JSON to a file.
func WriteOrigins(path string, doc any) diag.List {
	b, err := json.MarshalIndent(doc, "", "  ")
	if err == nil {
		err = atomicfile.Write(path, append(b, '\n'), 0o600)
	}
	if err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write the causes", "The file of -causes-out could not be written: %s.", err)
	}
	return nil
}

// A CauseGroup is one place that sets the same attribute of several objects.
type CauseGroup struct {
	Attribute string // a path without indexes of lists, or "replacement" for a whole object
	File      string // "" if the values do not come from the configuration
	Line      int
	Was       string // the text at the place in the revision of --since
	Objects   int
	Units     []string
}

// withoutIndexes returns a path without indexes of lists, such as ingress.cidr for ingress[0].cidr.
func withoutIndexes(path string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(path, "[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if key, err := strconv.QuotedPrefix(rest); err == nil {
			b.WriteString("[" + key)
			path = rest[len(key):]
			continue
		}
		_, path, _ = strings.Cut(rest, "]")
	}
}

// Place returns the place of the group as text.
func (g CauseGroup) Place() string {
	if g.File == "" {
		return NotFromConfiguration
	}
	return Place(g.File, g.Line, g.Was)
}

// GroupCauses groups the origins of units by place and attribute. Groups with more objects come
// first. Values that no file sets, such as the defaults of a provider, come last.
func GroupCauses(units []string, of func(unit string) []Origin) []CauseGroup {
	type key struct {
		attribute, file string
		line            int
	}
	at := map[key]int{}
	var out []CauseGroup
	for _, u := range units {
		seen := map[key]string{} // the last object that was counted: several elements of a list are one
		for _, o := range of(u) {
			k := key{cmp.Or(withoutIndexes(o.Path), "replacement"), o.File, o.Line}
			last, ok := seen[k]
			if ok && last == o.Address {
				continue
			}
			seen[k] = o.Address
			i, have := at[k]
			if !have {
				i = len(out)
				at[k] = i
				out = append(out, CauseGroup{Attribute: k.attribute, File: k.file, Line: k.line, Was: o.Was})
			}
			out[i].Objects++
			if !ok {
				out[i].Units = append(out[i].Units, u)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b CauseGroup) int {
		if (a.File == "") != (b.File == "") { // the defaults of new objects are many, and explain little
			return cmp.Compare(b.File, a.File)
		}
		return cmp.Or(cmp.Compare(b.Objects, a.Objects), cmp.Compare(a.Attribute, b.Attribute), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return out
}
