// Package placement is where the units of an estate have their turns, as a file at its root
// says: in which queue, how many at once, and how much memory one takes. Unit files know
// nothing of it, so that other tools read them.
//
// Main type: File. The one rule: of several blocks that find a unit, the last one that says
// something counts for that.
package placement

import (
	"fmt"
	"path/filepath"

	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/hclnative"
	"github.com/terrace-iac/terrace/internal/readfile"
)

// FileName is the name of the file.
const FileName = "estate.workers.hcl"

// A File is what the file says.
type File struct {
	Dir    string  // the folder that filters are seen from
	Units  []Units `hcl:"units,block"`
	Queues []Queue `hcl:"queue,block"`
}

// Units says something of those that filters find.
type Units struct {
	Filter []string `hcl:"filter,optional"` // as --filter; none: all units
	Queue  string   `hcl:"queue,optional"`  // "" for that of the run
	Memory int      `hcl:"memory,optional"` // MiB that a turn takes; 0: nobody counts
}

// Queue says something of a queue.
type Queue struct {
	Name  string `hcl:"name,label"`
	Turns int    `hcl:"turns,optional"` // how many at once on all workers; 0: no limit
}

// Load reads a file. Without one nothing is said.
func Load(path string) (*File, diag.List) {
	out := &File{}
	if path == "" {
		return out, nil
	}
	text, err := readfile.Whole(path)
	if err != nil {
		return out, wrong("%s.", err)
	}
	file, diags := hclnative.ParseConfig(text, path)
	if !diags.HasErrors() {
		diags = append(diags, gohcl.DecodeBody(file.Body, nil, out)...)
	}
	if diags.HasErrors() {
		return out, diag.FromHCL(diags)
	}
	out.Dir = filepath.Dir(path)
	for _, u := range out.Units {
		if u.Memory < 0 {
			return out, wrong("memory is a number of MiB, not %d, in %s.", u.Memory, path)
		}
	}
	for _, q := range out.Queues {
		if q.Turns < 0 {
			return out, wrong("The queue %q has %d turns at once, in %s.", q.Name, q.Turns, path)
		}
	}
	return out, nil
}

func wrong(format string, args ...any) diag.List {
	return diag.Errorf(nil, "Distributed run not begun", "What says where units run cannot be read: %s", fmt.Sprintf(format, args...))
}

// A Plan is what a file says of the units of a run.
type Plan struct {
	Queues map[string]string // by unit, those that have one
	Memory map[string]int    // by unit, MiB
	Turns  map[string]int    // by queue
}

// Plan applies the file to units. match tells which of them filters find, as seen from the
// folder of the file.
func (f *File) Plan(units []string, match func(dir string, filters []string) (map[string]bool, diag.List)) (Plan, diag.List) {
	p := Plan{Queues: map[string]string{}, Memory: map[string]int{}, Turns: map[string]int{}}
	var ds diag.List
	for _, u := range f.Units {
		found, more := match(f.Dir, u.Filter)
		if ds = append(ds, more...); more.HasErrors() {
			continue
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
