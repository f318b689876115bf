// Package demand computes values on first demand.
//
// A Cell is a named value that is computed once, on the stack of the Task that
// asks for it first; a task that asks for a cell which another task is
// computing waits, unless waiting would close a cycle, in which case the cells
// of the cycle fail and the Graph reports it. The reads of every cell are
// recorded with their places.
//
// Main types: Graph, Task and Cell. The one rule: whoever computes a cell calls
// Get with the task that it was handed, never with another.
package demand

// # How it works
//
// A cell is idle, being computed, or done. A done cell is read without a lock.
// All other transitions happen under the graph's lock, which is never held
// while a compute function runs.
//
// A task is one sequence of evaluation. It keeps the cells that it is computing
// as a stack of frames, and the cell that it waits for, if any. Before a task
// waits, it follows owner → waiting for → owner → … ; if that comes back to
// itself, waiting would be a deadlock, and just then the cells involved form a
// cycle. The reader gets the fallback value, and the cell where the cycle
// closed is remembered.
//
// Which read closes a cycle depends on timing; what anybody sees must not. So
// the cell whose read closed a cycle fails with its fallback whatever its
// function returns, and so does every cell that reads such a cell. By induction
// over the order in which cells are done, all members of a cycle and all that
// read them fail with their fallbacks: the first member that did not would have
// read another member, and that one was either being computed (then this read
// closed a cycle) or done and failed. Hence every function sees the same
// inputs and records the same reads in every run. Diags looks at these reads:
// it takes the strongly connected components around the remembered cells, drops
// what their members reported themselves, and tells for each component the
// shortest cycle through the member that stands first in the source.
//
// A long chain of references would need a deep stack. Every segment of
// maxFrames computations runs on a goroutine of its own, whose stack starts
// empty; the asking goroutine waits for it, so the task is still one sequence.

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// maxFrames is how many computations nest before they move to a fresh stack.
const maxFrames = 1000

// A Subject says what a cell is: its name for messages and the place of its
// definition, which may be nil.
type Subject interface {
	Describe() (name string, at *source.Range)
}

// A SelfReferencer is a Subject that has a heading of its own for the message that it refers to
// itself, with nothing in between.
type SelfReferencer interface {
	SelfReference() (summary string)
}

// A Graph is one evaluation: the tasks that work on it, and what they reported.
// The zero Graph is ready. Its methods may be called concurrently. A cell that
// is not done yet must be reached by tasks of one graph alone.
type Graph struct {
	// Rest, if set, is called by a task that is about to wait for another one, which
	// may be long; back is called when it goes on. It is set before there are tasks.
	Rest func() (back func())

	mu     sync.Mutex
	diags  []owned
	cycles []*Node
}

type owned struct {
	by *Node
	ds diag.List
}

// Task starts a task, to be used by one goroutine.
func (g *Graph) Task(ctx context.Context) *Task { return &Task{g: g, ctx: ctx} }

// Report adds messages that belong to no cell.
func (g *Graph) Report(ds diag.List) {
	if ds = visible(ds); len(ds) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.diags = append(g.diags, owned{nil, ds})
}

// Diags returns every message once, in source order, with one error for each cycle.
// It must not be called while tasks are computing.
func (g *Graph) Diags() diag.List {
	g.mu.Lock()
	defer g.mu.Unlock()
	inCycle, out := cycleReport(g.cycles)
	for _, o := range g.diags {
		if o.by == nil || !inCycle[o.by] {
			out = append(out, o.ds...)
		}
	}
	return out.Sort()
}

// A Task is one sequence of evaluation.
type Task struct {
	g      *Graph
	ctx    context.Context
	top    *frame
	frames int
	waits  *Node // guarded by g.mu
}

// Context is the context that the task was started with.
func (t *Task) Context() context.Context { return t.ctx }

// GraphOf is the graph that the task works on.
func GraphOf(t *Task) *Graph { return t.g }

// Current is the cell that the task is computing, or nil.
func Current(t *Task) *Node {
	if t.top == nil {
		return nil
	}
	return t.top.node
}

// ReadsOf lists what the cell that the task is computing has read so far. The
// slice is the caller's.
func ReadsOf(t *Task) []Read {
	if t.top == nil {
		return nil
	}
	return append([]Read(nil), t.top.reads...)
}

type frame struct {
	node   *Node
	under  *frame
	reads  []Read
	cyclic bool // read a cell of a cycle, or closed one
}

// A Read is one read of a cell by another.
type Read struct {
	Node *Node
	At   *source.Range // nil where the reader stands in no file
}

const (
	idle uint32 = iota
	computing
	done
)

// A Node is a cell without its value, as recorded reads name it.
type Node struct {
	What  Subject
	state atomic.Uint32
	// These are set before state becomes done.
	ok     bool
	cyclic bool // part of a cycle, or read a cell that is cyclic
	reads  []Read
	// These are guarded by the graph's lock.
	owner *Task
	ready chan struct{} // made by the first who waits
}

// Reads lists what the cell read, in order, each cell once. Valid once it is done.
func (n *Node) Reads() []Read {
	if n.state.Load() != done {
		return nil
	}
	return n.reads
}

// Done reports whether the cell was computed.
func (n *Node) Done() bool { return n.state.Load() == done }

// OK reports whether the cell was computed without an error.
func (n *Node) OK() bool { return n.state.Load() == done && n.ok }

// A Cell is a value that is computed once, on first demand.
type Cell[T any] struct {
	Node
	value    T
	fallback T
	compute  func(*Task) (T, diag.List)
}

// NewCell makes an idle cell. The fallback is what readers get when computing
// it fails or would need its own value.
func NewCell[T any](what Subject, fallback T, compute func(*Task) (T, diag.List)) *Cell[T] {
	c := new(Cell[T])
	c.Init(what, fallback, compute)
	return c
}

// Init makes a cell in place, for cells that are part of a larger struct.
func (c *Cell[T]) Init(what Subject, fallback T, compute func(*Task) (T, diag.List)) {
	c.What, c.fallback, c.compute = what, fallback, compute
}

// Ready makes the cell done with a value that needs no computing.
func (c *Cell[T]) Ready(what Subject, v T) {
	c.What, c.value, c.ok = what, v, true
	c.state.Store(done)
}

// Get returns the cell's value, computing it here or waiting for whoever does.
// ok is false when it failed; the value is then what the failed computation
// returned, or the fallback if the cell is part of a cycle or read one that
// is. The failure has been or will be reported by the cell itself. at is the
// place of the reference and may be nil.
func (c *Cell[T]) Get(t *Task, at *source.Range) (v T, ok bool) {
	t.record(&c.Node, at)
	if c.state.Load() != done {
		mine, cycle := t.claim(&c.Node)
		switch {
		case cycle:
			t.top.cyclic = true
			return c.fallback, false
		case mine && t.frames > 0 && t.frames%maxFrames == 0:
			finished := make(chan struct{})
			go func() { // on a fresh stack; waited for right below
				defer close(finished)
				c.run(t)
			}()
			<-finished
		case mine:
			c.run(t)
		}
	}
	if c.cyclic && t.top != nil {
		t.top.cyclic = true
	}
	return c.value, c.ok
}

// Peek returns the value of a cell that is done.
func (c *Cell[T]) Peek() (v T, ok bool) {
	if c.state.Load() != done {
		return c.fallback, false
	}
	return c.value, c.ok
}

func (c *Cell[T]) run(t *Task) {
	f := &frame{node: &c.Node, under: t.top}
	t.top = f
	t.frames++
	v, ds := c.compute(t)
	t.frames--
	t.top = f.under
	c.value, c.ok, c.reads = v, !ds.HasErrors(), once(f.reads)
	if f.cyclic {
		c.value, c.ok, c.cyclic = c.fallback, false, true
	}
	c.compute = nil
	ds = visible(ds)

	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	if len(ds) > 0 {
		t.g.diags = append(t.g.diags, owned{&c.Node, ds})
	}
	c.owner = nil
	c.state.Store(done)
	if c.ready != nil {
		close(c.ready)
		c.ready = nil
	}
}

// Fail lets a computation mark its cell as failed without a message of its own,
// because what it read failed. The value stands as a placeholder.
func Fail() diag.List { return diag.List{{Severity: diag.Error, Code: silentCode}} }

const silentCode = "demand/silent"

// visible drops the marks that Fail left among messages.
func visible(ds diag.List) diag.List {
	if len(ds) == 0 {
		return nil
	}
	out := ds[:0:0]
	for _, m := range ds {
		if m.Code != silentCode {
			out = append(out, m)
		}
	}
	return out
}

// fewReads is how many reads are looked through to find one again.
const fewReads = 8

// record notes a read in the frame on top, unless it was noted lately.
func (t *Task) record(n *Node, at *source.Range) {
	f := t.top
	if f == nil {
		return
	}
	for i := len(f.reads) - 1; i >= 0 && i >= len(f.reads)-fewReads; i-- {
		if f.reads[i].Node == n {
			return
		}
	}
	f.reads = append(f.reads, Read{n, at})
}

// once drops all but the first read of each cell.
func once(reads []Read) []Read {
	if len(reads) <= fewReads {
		return reads // record saw to it
	}
	seen := make(map[*Node]struct{}, len(reads))
	out := reads[:0]
	for _, r := range reads {
		if _, again := seen[r.Node]; !again {
			seen[r.Node] = struct{}{}
			out = append(out, r)
		}
	}
	return out
}

// claim makes the task the one that computes the node (mine), or waits until
// the node is done, or finds that waiting would never end (cycle).
func (t *Task) claim(n *Node) (mine, cycle bool) {
	g := t.g
	g.mu.Lock()
	switch n.state.Load() {
	case done:
		g.mu.Unlock()
		return false, false
	case idle:
		n.state.Store(computing)
		n.owner = t
		g.mu.Unlock()
		return true, false
	}
	for o := n.owner; o != nil; {
		if o == t {
			g.cycles = append(g.cycles, n)
			g.mu.Unlock()
			return false, true
		}
		if o.waits == nil {
			break
		}
		o = o.waits.owner
	}
	if n.ready == nil {
		n.ready = make(chan struct{})
	}
	ready := n.ready
	t.waits = n
	g.mu.Unlock()
	if g.Rest == nil {
		<-ready
	} else {
		back := g.Rest()
		<-ready
		back()
	}
	g.mu.Lock()
	t.waits = nil
	g.mu.Unlock()
	return false, false
}
