// Package placement reads the file that assigns the units of an estate to workers: the queue of
// each unit, the number of concurrent units, and the memory of each. Unit files do not contain
// these settings, so that other tools can read them.
//
// Main type: File. The one rule: if several blocks match a unit, the last one that sets a value
// is used.
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

// FileName is the name of the file at the root of an estate.
const FileName = "estate.workers.hcl"

// A File is the parsed content of the file.
type File struct {
	Dir    string // directory that filters are relative to
	Units  []Units
	Queues []Queue
	// Calls is the maximum number of concurrent calls to a provider with one configuration, in
	// all units.
	Calls map[addr.Provider]int
}

// Units contains the settings of units that match filters.
type Units struct {
	Filter []string // as --filter; none means all units
	Queue  string   // "" means the queue of the run
	Memory int      // memory of a turn in MiB; 0 means that it is not considered

	at []hcl.Range // source ranges of the elements of Filter, then of the whole argument
}

// Queue contains the settings of a queue.
type Queue struct {
	Name  string
	Turns int // maximum number of concurrent turns on all workers; 0 means no limit
}

// content is the syntax of the file.
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

// Load reads a file and adds its text to set. If path is "", the result is empty.
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

// filters returns the elements of an argument, and their source ranges followed by that of the
// whole argument. It returns none if the argument is missing.
func filters(a *hcl.Attribute) (texts []string, at []hcl.Range, ds diag.List) {
	if a == nil {
		return nil, nil, nil
	}
	if diags := gohcl.DecodeExpression(a.Expr, nil, &texts); diags.HasErrors() {
		return nil, nil, diag.FromHCL(diags)
	}
	list, diags := hcl.ExprList(a.Expr)
	for i := range texts {
		if diags.HasErrors() || i >= len(list) { // the expression is not a list
			at = append(at, a.Expr.Range())
			continue
		}
		at = append(at, list[i].Range())
	}
	return texts, append(at, a.Expr.Range()), nil
}

// count returns the value of a number argument, which must be at least 1, or 0 if the argument is
// missing.
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

// A Plan contains the settings of the units of a run.
type Plan struct {
	Queues map[string]string // by unit; units without an entry use the queue of the run
	Memory map[string]int    // by unit, in MiB
	Turns  map[string]int    // maximum number of concurrent turns, by queue
}

// A Match returns the names of the units that match filters relative to a directory.
type Match func(dir string, filters []string) (map[string]bool, diag.List)

// Plan applies the file to units. whole means that they are all units of the estate. Plan then
// warns about filters without a match.
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

// unmatched returns warnings about filters that match no unit. found contains the units that all
// filters of the block match together.
func (u Units) unmatched(dir string, found map[string]bool, match Match) (ds diag.List) {
	for i, text := range u.Filter {
		if strings.HasPrefix(strings.TrimSpace(text), "!") {
			continue // negative filters remove units that others match
		}
		if alone, _ := match(dir, []string{text}); len(alone) == 0 {
			ds = append(ds, diag.Warnf(diag.CodeRemoteFilter, &u.at[i], noUnit, "No unit of the estate is found by the filter %q. Its paths are seen from the directory of this file.", text)...)
		}
	}
	if len(ds) == 0 && len(found) == 0 && len(u.Filter) > 0 {
		ds = diag.Warnf(diag.CodeRemoteFilter, &u.at[len(u.Filter)], noUnit, "No unit of the estate is left by the filters of this block, so nothing comes of it.")
	}
	return ds
}

const noUnit = "Filter of estate.workers.hcl finds no unit"

// Shares contains the share of each turn of calls that are limited on all workers together.
type Shares struct {
	Turns   int            // maximum number of concurrent turns; 0 means no limit
	Calls   int            // calls to all providers; 0 means no limit
	CallsOf map[string]int // calls to one configuration of a provider, by its source
}

// mostTurns is the number of turns that share limited calls, unless the run limits the number of
// concurrent turns.
const mostTurns = 16

// Share divides the concurrent calls that the run and the file allow among the concurrent turns.
// calls is the limit of the run and turns its maximum number of concurrent turns; 0 means no
// limit for both. There are never more turns than calls, so that each turn has at least one,
// because workers do not coordinate.
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
