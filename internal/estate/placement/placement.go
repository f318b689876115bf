// Package placement is where the units of an estate have their turns, as a file at its root
// says: in which queue, how many at once, and how much memory one takes. Unit files know
// nothing of it, so that other tools read them.
//
// Main type: File. The one rule: of several blocks that find a unit, the last one that says
// something counts for that.
package placement

import (
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/source"
)

// FileName is the name of the file.
const FileName = "estate.workers.hcl"

// A File is what the file says.
type File struct {
	Dir    string // the folder that filters are seen from
	Units  []Units
	Queues []Queue
	// Calls is how many calls of a provider with one configuration there are at once, in
	// all units.
	Calls map[addr.Provider]int
}

// Units says something of those that filters find.
type Units struct {
	Filter []string // as --filter; none: all units
	Queue  string   // "" for that of the run
	Memory int      // MiB that a turn takes; 0: nobody counts

	at []hcl.Range // the places of Filter, then that of all of it
}

// Queue says something of a queue.
type Queue struct {
	Name  string
	Turns int // how many at once on all workers; 0: no limit
}

// content is the file as it is written.
type content struct {
	Units []struct {
		Filter *hcl.Attribute `hcl:"filter,optional"`
		Queue  string         `hcl:"queue,optional"`
		Memory *hcl.Attribute `hcl:"memory,optional"`
	} `hcl:"units,block"`
	Queues []struct {
		Name  string         `hcl:"name,label"`
		Turns *hcl.Attribute `hcl:"turns,optional"`
	} `hcl:"queue,block"`
	Providers []struct {
		Source string         `hcl:"source,label"`
		Calls  *hcl.Attribute `hcl:"calls"`
		At     hcl.Range      `hcl:",def_range"`
	} `hcl:"provider,block"`
}

// Load reads a file; its text is added to set. Without a file nothing is said.
func Load(path string, set *source.Set) (*File, diag.List) {
	out := &File{}
	if path == "" {
		return out, nil
	}
	text, err := readfile.Whole(path)
	if err != nil {
		return out, diag.Errorf(diag.CodeRemoteNotBegun, nil, "Distributed run not begun", "The file %s, which says where units have their turns, cannot be read: %s.", path, diag.Reason(err))
	}
	set.Add(&source.File{Path: path, Bytes: text, Layer: &source.Layer{Kind: source.Base, Name: path}})
	var in content
	file, diags := hclnative.ParseConfig(text, path)
	if !diags.HasErrors() {
		diags = append(diags, gohcl.DecodeBody(file.Body, nil, &in)...)
	}
	if diags.HasErrors() {
		return out, diag.FromHCL(diags)
	}
	out.Dir = filepath.Dir(path)
	var ds diag.List
	for _, u := range in.Units {
		memory, more := count(u.Memory, "is how many MiB a turn takes")
		ds = append(ds, more...)
		texts, at, more := filters(u.Filter)
		ds = append(ds, more...)
		out.Units = append(out.Units, Units{Filter: texts, Queue: u.Queue, Memory: memory, at: at})
	}
	for _, q := range in.Queues {
		turns, more := count(q.Turns, "is how many units have their turns at once")
		ds = append(ds, more...)
		out.Queues = append(out.Queues, Queue{Name: q.Name, Turns: turns})
	}
	for _, p := range in.Providers {
		calls, more := count(p.Calls, "is how many calls there are at once with one configuration of the provider")
		ds = append(ds, more...)
		a, err := addr.ParseProvider(p.Source)
		if err != nil {
			at := p.At
			ds = append(ds, diag.Errorf(diag.CodeRemoteNotBegun, &at, "Distributed run not begun", "%q is not the source of a provider, as in \"hashicorp/aws\": %s.", p.Source, diag.Reason(err))...)
			continue
		}
		if out.Calls == nil {
			out.Calls = map[addr.Provider]int{}
		}
		out.Calls[a] = calls
	}
	return out, ds
}

// filters are the texts of an argument, and their places with that of all of it; none where
// it is not there.
func filters(a *hcl.Attribute) (texts []string, at []hcl.Range, ds diag.List) {
	if a == nil {
		return nil, nil, nil
	}
	if diags := gohcl.DecodeExpression(a.Expr, nil, &texts); diags.HasErrors() {
		return nil, nil, diag.FromHCL(diags)
	}
	list, diags := hcl.ExprList(a.Expr)
	for i := range texts {
		if diags.HasErrors() || i >= len(list) { // not written as a list
			at = append(at, a.Expr.Range())
			continue
		}
		at = append(at, list[i].Range())
	}
	return texts, append(at, a.Expr.Range()), nil
}

// count is the number of an argument, which is one or more, 0 where it is not there.
func count(a *hcl.Attribute, means string) (n int, ds diag.List) {
	if a == nil {
		return 0, nil
	}
	if diags := gohcl.DecodeExpression(a.Expr, nil, &n); diags.HasErrors() {
		return 0, diag.FromHCL(diags)
	}
	if n < 1 {
		at := a.Expr.Range()
		return 0, diag.Errorf(diag.CodeRemoteNotBegun, &at, "Distributed run not begun", "%q %s: a whole number from 1 on. Leave it out for no limit.", a.Name, means)
	}
	return n, nil
}

// A Plan is what a file says of the units of a run.
type Plan struct {
	Queues map[string]string // by unit, those that have one
	Memory map[string]int    // by unit, MiB
	Turns  map[string]int    // by queue
}

// A Match tells which units filters find, as seen from a folder.
type Match func(dir string, filters []string) (map[string]bool, diag.List)

// Plan applies the file to units. whole says that they are all units of the estate, so that
// filters that find none of them are warned about.
func (f *File) Plan(units []string, whole bool, match Match) (Plan, diag.List) {
	p := Plan{Queues: map[string]string{}, Memory: map[string]int{}, Turns: map[string]int{}}
	var ds diag.List
	for _, u := range f.Units {
		found, more := match(f.Dir, u.Filter)
		if ds = append(ds, more...); more.HasErrors() {
			continue
		}
		if whole {
			ds = append(ds, u.unmatched(f.Dir, found, match)...)
		}
		for _, name := range units {
			if !found[name] {
				continue
			}
			if u.Queue != "" {
				p.Queues[name] = u.Queue
			}
			if u.Memory > 0 {
				p.Memory[name] = u.Memory
			}
		}
	}
	for _, q := range f.Queues {
		if q.Turns > 0 {
			p.Turns[q.Name] = q.Turns
		}
	}
	return p, ds
}

// unmatched warns about filters that find no unit. What they find together is found.
func (u Units) unmatched(dir string, found map[string]bool, match Match) (ds diag.List) {
	for i, text := range u.Filter {
		if strings.HasPrefix(strings.TrimSpace(text), "!") {
			continue // it leaves out what others find
		}
		if alone, _ := match(dir, []string{text}); len(alone) == 0 {
			ds = append(ds, diag.Warnf(diag.CodeRemoteFilter, &u.at[i], noUnit, "No unit of the estate is found by the filter %q. Its paths are seen from the folder of this file.", text)...)
		}
	}
	if len(ds) == 0 && len(found) == 0 && len(u.Filter) > 0 {
		ds = diag.Warnf(diag.CodeRemoteFilter, &u.at[len(u.Filter)], noUnit, "No unit of the estate is left by the filters of this block, so nothing comes of it.")
	}
	return ds
}

const noUnit = "Filter of estate.workers.hcl finds no unit"

// Shares are what each turn has of calls that are limited on all workers together.
type Shares struct {
	Turns   int            // how many at once; 0: any number
	Calls   int            // of all providers; 0: no limit
	CallsOf map[string]int // of one configuration of a provider, by its source
}

// mostTurns is among how many turns limited calls are shared, unless the run says how many
// there are at once.
const mostTurns = 16

// Share divides the calls that the run (0: no limit) and the file allow among as many turns
// as there are at once (0: any number). There are no more turns than calls, so that each
// has one at least, since workers do not know of each other.
func (f *File) Share(calls, turns int) Shares {
	least := calls
	for _, n := range f.Calls {
		if least == 0 || n < least {
			least = n
		}
	}
	s := Shares{Turns: turns}
	if least == 0 {
		return s
	}
	if turns == 0 || turns > least {
		s.Turns = min(least, mostTurns)
	}
	s.Calls = calls / s.Turns
	for a, n := range f.Calls {
		if s.CallsOf == nil {
			s.CallsOf = map[string]int{}
		}
		s.CallsOf[a.String()] = n / s.Turns
	}
	return s
}
