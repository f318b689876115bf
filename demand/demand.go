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
// A cell must not start a task: the new task has frames of its own, so the reads that
// lead from the cell to what the new task asks for are recorded nowhere, and a wait
// between the two looks like a wait for another task. Only the driver of an evaluation
// starts tasks, and cells get no Graph. If a task is started all the same with the
// context of one that is computing, it knows that one as its parent. A wait then also
// follows parent → waiting child, and one that would never end is reported as a bug
// and ends with the fallback.
//
// A failure of the network or of a program, or that of a task whose context ended, is no
// property of the cell. In a graph of attempts it counts for the tasks that had begun when it
// happened: each of them sees the same, and none asks a server that is down twice. A task that
// begins later is a new attempt, and computes the cell again, with all cells that read it.
// What a canceled task left behind counts for other canceled tasks alone.
//
// A long chain of references would need a deep stack. Every segment of
// maxFrames computations runs on a goroutine of its own, whose stack starts
// empty; the asking goroutine waits for it, so the task is still one sequence.

import (
	"context"
	"slices"
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
	// Stop, if set, ends all waits of tasks for one another when it is closed: their
	// reads then yield fallbacks. It is set before there are tasks. nil means that
	// waits end only with what they wait for.
	Stop <-chan struct{}

	// Attempts says that each task is an attempt of its own, which may be canceled or
	// repeated while others go on; see Passing. It is set before there are tasks.
	Attempts bool

	begun   atomic.Int64 // tasks
	mu      sync.Mutex
	diags   []owned
	cycles  []*Node
	passing map[*Node]failure // of the nodes in that state
	stopped bool              // a wait was given up because of Stop
}

// A failure is the reason for which a computed cell is not kept.
type failure struct {
	begun    int64 // tasks when it happened
	canceled bool  // the context of the task that computed the cell had ended
}

// counts reports whether a task takes the value of a cell with this failure.
func (f failure) counts(t *Task) bool {
	if f.canceled {
		return t.ctx.Err() != nil
	}
	return t.begun <= f.begun
}

type owned struct {
	by *Node
	ds diag.List
}

// Task starts a task, to be used by one goroutine. It is for the driver of an
// evaluation; code that computes a cell uses the task that it was handed.
func (g *Graph) Task(ctx context.Context) *Task {
	t := &Task{g: g, ctx: ctx, begun: g.begun.Add(1)}
	if parent, _ := ctx.Value(taskKey{}).(*Task); parent != nil && parent.g == g {
		t.parent = parent
	}
	return t
}

// taskKey is the key of the task in the context that it gives out.
type taskKey struct{}

// Stopped reports whether a wait was given up because Stop was closed, so that
// something was not computed of which no message tells.
func (g *Graph) Stopped() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stopped
}

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
	inside context.Context // ctx with the task in it; nil until it is asked for
	parent *Task           // the task whose context this one was started with; nil for those of the driver
	begun  int64           // its number among the tasks of the graph
	top    *frame
	frames int
	// These are guarded by g.mu.
	waits *Node
	inner []*Task // tasks started with the context of this one that wait
}

// Context is the context that the task was started with. It contains the task, so that
// another one that is started with it is known to belong to this one.
func (t *Task) Context() context.Context {
	if t.inside == nil {
		t.inside = context.WithValue(t.ctx, taskKey{}, t)
	}
	return t.inside
}

// Report adds messages that belong to no cell to those of the task's graph.
func (t *Task) Report(ds diag.List) { t.g.Report(ds) }

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

// Passing says that what the task is computing fails for a reason that depends on the time or
// the place, such as a server that does not answer. In a graph of attempts, tasks that begin
// later compute it again. It does nothing in other graphs, which end with their attempt.
func Passing(t *Task) {
	if t.top != nil {
		t.top.passing = true
	}
}

type frame struct {
	node    *Node
	under   *frame
	reads   []Read
	cyclic  bool // read a cell of a cycle, or closed one
	passing bool // failed for the moment, or read a cell that did
}

// A Read is one read of a cell by another.
type Read struct {
	Node *Node
	At   *source.Range // nil where the reader stands in no file
}

const (
	idle uint32 = iota
	computing
	passing // computed, but not for later tasks; only in graphs of attempts
	done
)

// A Node is a cell without its value, as recorded reads name it.
type Node struct {
	What  Subject
	state atomic.Uint32
	// These are set before state becomes done. Before, the graph's lock guards them.
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

// Get returns the cell's value, computing it here or waiting for the task that does.
// ok is false when it failed; the value is then what the failed computation
// returned, or the fallback if the cell is part of a cycle or read one that
// is, or if the graph's Stop ended the wait. The failure has been or will be reported by the cell itself. at is the
// place of the reference and may be nil.
func (c *Cell[T]) Get(t *Task, at *source.Range) (v T, ok bool) {
	t.record(&c.Node, at)
	if c.state.Load() != done {
		switch t.claim(&c.Node) {
		case isOver:
			t.took(false, true)
			return c.fallback, false
		case closesCycle:
			t.top.cyclic = true
			return c.fallback, false
		case toCompute:
			if t.frames == 0 || t.frames%maxFrames != 0 {
				return c.run(t)
			}
			return c.runAside(t)
		case isPassing:
			defer t.g.mu.Unlock()
			t.took(c.cyclic, true)
			return c.value, c.ok
		}
	}
	t.took(c.cyclic, false)
	return c.value, c.ok
}

// runAside is run on a fresh stack.
func (c *Cell[T]) runAside(t *Task) (v T, ok bool) {
	finished := make(chan struct{})
	go func() { // waited for right below
		defer close(finished)
		v, ok = c.run(t)
	}()
	<-finished
	return v, ok
}

// took notes what the cell that the task is computing has read.
func (t *Task) took(cyclic, passing bool) {
	if t.top != nil {
		t.top.cyclic = t.top.cyclic || cyclic
		t.top.passing = t.top.passing || passing
	}
}

// Peek returns the value of a cell that is done.
func (c *Cell[T]) Peek() (v T, ok bool) {
	if c.state.Load() != done {
		return c.fallback, false
	}
	return c.value, c.ok
}

// run computes the cell and returns what Get does.
func (c *Cell[T]) run(t *Task) (v T, ok bool) {
	f := &frame{node: &c.Node, under: t.top}
	t.top = f
	t.frames++
	v, ds := c.compute(t)
	t.frames--
	t.top = f.under
	ok = !ds.HasErrors()
	if f.cyclic {
		v, ok = c.fallback, false
	}
	reads := once(f.reads)
	ds = visible(ds)
	g := t.g
	canceled := g.Attempts && t.ctx.Err() != nil
	later := g.Attempts && f.passing || canceled
	t.took(f.cyclic, later)

	g.mu.Lock()
	defer g.mu.Unlock()
	if _, again := g.passing[&c.Node]; again {
		delete(g.passing, &c.Node)
		g.diags = slices.DeleteFunc(g.diags, func(o owned) bool { return o.by == &c.Node })
	}
	c.value, c.ok, c.cyclic, c.reads = v, ok, f.cyclic, reads
	if len(ds) > 0 {
		g.diags = append(g.diags, owned{&c.Node, ds})
	}
	c.owner = nil
	if later {
		if g.passing == nil {
			g.passing = map[*Node]failure{}
		}
		g.passing[&c.Node] = failure{g.begun.Load(), canceled}
		c.state.Store(passing)
	} else {
		c.compute = nil
		c.state.Store(done)
	}
	if c.ready != nil {
		close(c.ready)
		c.ready = nil
	}
	return v, ok
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

// A claim is what a task has to do about a cell that was not done.
type claim uint8

const (
	isDone      claim = iota
	toCompute         // by this task
	closesCycle       // waiting for the cell would never end: the reader and it are cells of a cycle
	isOver            // waits are over, or a second evaluation would wait for the first
	isPassing         // the values for this task are there, and the graph's lock is held
)

// claim makes the task the one that computes the node, or waits until another task has.
func (t *Task) claim(n *Node) claim {
	g := t.g
	g.mu.Lock()
	for {
		switch state := n.state.Load(); {
		case state == done:
			g.mu.Unlock()
			return isDone
		case state == passing && g.passing[n].counts(t):
			return isPassing
		case state != computing:
			n.state.Store(computing)
			n.owner = t
			g.mu.Unlock()
			return toCompute
		}
		if met, nested := t.waitsForItself(n.owner); met {
			c := closesCycle
			if nested {
				c = isOver
				g.diags = append(g.diags, owned{nil, nestedTask(n)})
			} else {
				g.cycles = append(g.cycles, n)
			}
			g.mu.Unlock()
			return c
		}
		if !t.wait(n) {
			return isOver
		}
	}
}

// wait waits until another task has computed the node. It is called with the lock of the graph
// and returns with it, or with false and without the lock if waits are over.
func (t *Task) wait(n *Node) bool {
	g := t.g
	if n.ready == nil {
		n.ready = make(chan struct{})
	}
	ready := n.ready
	t.waits = n
	for p := t.parent; p != nil; p = p.parent {
		p.inner = append(p.inner, t)
	}
	g.mu.Unlock()
	back := func() {}
	if g.Rest != nil {
		back = g.Rest()
	}
	over := false
	select {
	case <-ready:
	case <-g.Stop:
		over = true
	}
	back()
	g.mu.Lock()
	t.waits = nil
	for p := t.parent; p != nil; p = p.parent {
		p.inner = slices.DeleteFunc(p.inner, func(x *Task) bool { return x == t })
	}
	if over {
		g.stopped = true
		g.mu.Unlock()
	}
	return !over
}

// waitsForItself reports whether a task that computes a node waits for t, directly or
// through others; nested tells that a task that was started within another one is on
// the way. It is called with the lock of the graph.
func (t *Task) waitsForItself(o *Task) (met, nested bool) {
	for o != nil {
		if o == t {
			return true, nested
		}
		for p := t.parent; p != nil; p = p.parent {
			if o == p {
				return true, true
			}
		}
		for _, child := range o.inner {
			if child.waits == nil {
				continue
			}
			if met, _ := t.waitsForItself(child.waits.owner); met {
				return true, true
			}
		}
		if o.waits == nil {
			return false, false
		}
		o = o.waits.owner
	}
	return false, false
}

// nestedTask is the message about a wait that would never end since a cell started a task.
func nestedTask(n *Node) diag.List {
	name, at := n.What.Describe()
	return diag.Errorf(diag.CodeEvalNestedTask, at, "Evaluation waits for itself", "Computing %s started a second evaluation that needs %s, so neither could end. This is a bug in Terrace: please report it with the configuration.", name, name)
}
