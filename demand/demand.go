// Package demand computes values when they are first read.
//
// A Cell is a named value that is computed once, by the Task that reads it first. A task that reads a
// cell which another task is computing waits for that task. If waiting would close a cycle, the cells of
// the cycle fail and the Graph reports an error. The reads of every cell are recorded with their source
// ranges.
//
// Main types: Graph, Task and Cell. The one rule: a function that computes a cell calls Get with the task
// that it received, never with another task.
package demand

// # Implementation
//
// A cell is idle, being computed, or done. A done cell is read without a lock. All other transitions
// happen under the graph's lock, which is never held while a compute function runs.
//
// A task is one sequence of evaluation. It contains the cells that it is computing as a stack of frames,
// and the cell that it waits for, if any. Before a task waits, it follows the chain from the cell to the
// task that computes it, to the cell that this task waits for, and so on. If the chain leads back to the
// first task, waiting would be a deadlock, and the cells in the chain form a cycle. The reader then gets
// the fallback value, and the graph records the cell at which the cycle was closed.
//
// Timing decides which read closes a cycle, but it must not affect results. Therefore, the cell whose
// read closed a cycle fails with its fallback, whatever its function returns, and so does every cell that
// reads such a cell. By induction over the order in which cells are done, all members of a cycle and all
// their readers fail with their fallbacks. The first member that did not fail would have read another
// member, which was either being computed (then this read closed a cycle) or done and failed. Hence every
// function receives the same inputs and records the same reads in every run. Diags uses these reads: it
// computes the strongly connected components around the recorded cells, drops the messages of their
// members, and reports for each component the shortest cycle through the member that comes first in the
// source.
//
// A cell must not start a task. The new task has its own frames, so that the reads from the cell through
// the new task are not recorded, and a wait between the two looks like a wait for an unrelated task. Only
// the driver of an evaluation starts tasks, and cells have no access to the Graph. If a task is
// nevertheless started with the context of a computing task, that task becomes its parent. The check
// before a wait then also follows the chain from a parent to its waiting children. A wait that would
// never end is reported as a bug and ends with the fallback.
//
// Failures of the network, of programs, and of canceled tasks are temporary. In a graph with Attempts, a
// temporary failure applies to the tasks that had begun when it happened: all of them see the same
// failure, and none requests a server again that does not respond. A task that begins later is a new
// attempt. It computes the cell, and all cells that read it, again. A failure of a canceled task only
// applies to other canceled tasks.
//
// A long chain of references would need a deep stack. Therefore, each segment of maxFrames computations
// runs in a new goroutine, whose stack is empty. The calling goroutine waits for it, so that the task is
// still one sequence.

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// maxFrames is the number of nested computations on one stack.
const maxFrames = 1000

// A Subject describes a cell in messages: its name, and the source range of its definition, which may be
// nil.
type Subject interface {
	// Describe returns the name of the cell and the source range of its definition. at may be nil.
	Describe() (name string, at *source.Range)
}

// A SelfReferencer is a Subject with its own summary for the error that the cell refers directly to
// itself.
type SelfReferencer interface {
	// SelfReference returns the summary of the error.
	SelfReference() (summary string)
}

// A Graph is one evaluation: its tasks and their messages. The zero Graph is ready to use. Its methods may
// be called concurrently, except Diags. A cell that is not done must be read by tasks of one graph only.
type Graph struct {
	// Rest, if set, is called before a task waits for another task. back is called after the wait.
	// It must be set before the first task is started.
	Rest func() (back func())
	// Stop, if set, ends all waits for other tasks when it is closed. The reads then return
	// fallbacks. It must be set before the first task is started.
	Stop <-chan struct{}

	// Attempts means that each task is a separate attempt, which may be canceled or repeated while
	// other tasks continue; see Passing. It must be set before the first task is started.
	Attempts bool

	begun   atomic.Int64 // number of tasks that were started
	mu      sync.Mutex
	diags   []owned
	cycles  []*Node
	passing map[*Node]failure // failures of the nodes in the state passing
	stopped bool              // a wait ended because of Stop
}

// A failure is a temporary failure of a computed cell.
type failure struct {
	begun    int64 // number of tasks when it happened
	canceled bool  // the context of the task that computed the cell was done
}

// counts reports whether the failure applies to a task.
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

// Task starts a task, which must be used by one goroutine at a time. Only the driver of an evaluation
// calls it; a function that computes a cell uses the task that it received.
func (g *Graph) Task(ctx context.Context) *Task {
	t := &Task{g: g, ctx: ctx, begun: g.begun.Add(1)}
	if parent, _ := ctx.Value(taskKey{}).(*Task); parent != nil && parent.g == g {
		t.parent = parent
	}
	return t
}

// taskKey is the key of a task in the context that Task.Context returns.
type taskKey struct{}

// Stopped reports whether a wait ended because Stop was closed. Some cells then have failed without a
// message.
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

// Diags returns every message once, in source order, with one error for each cycle. It must not be called
// while tasks are computing.
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
	inside context.Context // ctx with the task as a value; nil until Context is called
	parent *Task           // task with whose context this task was started; nil if the driver started it
	begun  int64           // number of the task in the graph, from 1
	top    *frame
	frames int
	// These are guarded by g.mu.
	waits *Node
	inner []*Task // waiting tasks that were started with the context of this task
}

// Context returns the context with which the task was started. It contains the task, so that a task which
// is started with it has this task as its parent.
func (t *Task) Context() context.Context {
	if t.inside == nil {
		t.inside = context.WithValue(t.ctx, taskKey{}, t)
	}
	return t.inside
}

// Report adds messages that belong to no cell to those of the task's graph.
func (t *Task) Report(ds diag.List) { t.g.Report(ds) }

// Current returns the cell that the task is computing, or nil.
func Current(t *Task) *Node {
	if t.top == nil {
		return nil
	}
	return t.top.node
}

// ReadsOf returns the reads so far of the cell that the task is computing. The caller may modify the
// slice.
func ReadsOf(t *Task) []Read {
	if t.top == nil {
		return nil
	}
	return append([]Read(nil), t.top.reads...)
}

// Passing marks the failure of the cell that the task is computing as temporary, for example because a
// server does not respond. In a graph with Attempts, tasks that begin later compute the cell again. In
// other graphs it has no effect.
func Passing(t *Task) {
	if t.top != nil {
		t.top.passing = true
	}
}

type frame struct {
	node    *Node
	under   *frame
	reads   []Read
	cyclic  bool // the cell closed a cycle, or read a cell that is part of one
	passing bool // the cell has failed temporarily, or read a cell that has
}

// A Read is one read of a cell by another.
type Read struct {
	Node *Node
	At   *source.Range // nil if the reference is not in a file
}

const (
	idle uint32 = iota
	computing
	passing // failed temporarily: later tasks compute it again; only in graphs with Attempts
	done
)

// A Node is the part of a cell that does not depend on the type of its value. Reads refer to nodes.
type Node struct {
	What  Subject
	state atomic.Uint32
	// These are set before state becomes done. Before, the graph's lock guards them.
	ok     bool
	cyclic bool // part of a cycle, or read a cell that is cyclic
	reads  []Read
	// These are guarded by the graph's lock.
	owner *Task
	ready chan struct{} // created by the first task that waits; closed when the cell is computed
}

// Reads returns the cells that the cell has read, in order and without duplicates. It returns nil if the
// cell is not done. The caller must not modify the slice.
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

// A Cell is a value that is computed once, when it is first read.
type Cell[T any] struct {
	Node
	value    T
	fallback T
	compute  func(*Task) (T, diag.List)
}

// NewCell returns an idle cell. fallback is the value for readers if the cell is part of a cycle, reads a
// cell that is, or if the wait for it is stopped.
func NewCell[T any](what Subject, fallback T, compute func(*Task) (T, diag.List)) *Cell[T] {
	c := new(Cell[T])
	c.Init(what, fallback, compute)
	return c
}

// Init initializes a cell that is part of a larger struct.
func (c *Cell[T]) Init(what Subject, fallback T, compute func(*Task) (T, diag.List)) {
	c.What, c.fallback, c.compute = what, fallback, compute
}

// Ready initializes a cell with a value that is already computed.
func (c *Cell[T]) Ready(what Subject, v T) {
	c.What, c.value, c.ok = what, v, true
	c.state.Store(done)
}

// Get returns the value of the cell. It computes the cell, or waits for the task that is computing it. ok
// is false if the cell has failed. The value is then the result of the failed computation. It is the
// fallback if the cell is part of a cycle or reads one that is, or if Stop ended the wait. The cell itself
// reports its errors; the caller must not report them. at is the range of the reference and may be nil.
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

// runAside is like run, on a new stack.
func (c *Cell[T]) runAside(t *Task) (v T, ok bool) {
	finished := make(chan struct{})
	go func() { // runAside waits for it
		defer close(finished)
		v, ok = c.run(t)
	}()
	<-finished
	return v, ok
}

// took records properties of a cell that the current cell has read.
func (t *Task) took(cyclic, passing bool) {
	if t.top != nil {
		t.top.cyclic = t.top.cyclic || cyclic
		t.top.passing = t.top.passing || passing
	}
}

// Peek returns the value of a cell without computing it. If the cell is not done, it returns the fallback
// and false.
func (c *Cell[T]) Peek() (v T, ok bool) {
	if c.state.Load() != done {
		return c.fallback, false
	}
	return c.value, c.ok
}

// run computes the cell and returns the results of Get.
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

// Fail returns an error without a message. A computation returns it, with a placeholder value, if its cell
// fails because a cell that it has read has failed.
func Fail() diag.List { return diag.List{{Severity: diag.Error, Code: silentCode}} }

const silentCode = "demand/silent"

// visible removes the errors that Fail has returned.
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

// fewReads is the number of recent reads in which record searches for duplicates.
const fewReads = 8

// record adds a read to the current frame, unless one of the last fewReads reads is of the same cell.
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

// once removes all reads except the first of each cell.
func once(reads []Read) []Read {
	if len(reads) <= fewReads {
		return reads // record has removed the duplicates
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

// A claim is the action that a task takes for a cell that was not done.
type claim uint8

const (
	isDone      claim = iota
	toCompute         // the task computes the cell
	closesCycle       // waiting would never end, because the reader and the cell are part of a cycle
	isOver            // Stop has ended the wait, or a nested task would wait for its parent
	isPassing         // the cell has failed temporarily, also for this task; the caller holds the graph's lock
)

// claim makes the task the owner of the node, which must compute it, or waits until another task has
// computed the node.
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

// wait waits until another task has computed the node. The caller holds the lock of the graph. wait
// returns true with the lock held, or false without the lock if Stop has ended the wait.
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

// waitsForItself reports whether the task o waits for t, directly or through other tasks. nested means that
// the chain contains a task that was started by a cell. The caller holds the lock of the graph.
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

// nestedTask returns the error about a wait that would never end because a cell has started a task.
func nestedTask(n *Node) diag.List {
	name, at := n.What.Describe()
	return diag.Errorf(diag.CodeEvalNestedTask, at, "Evaluation waits for itself", "Computing %s started a second evaluation that needs %s, so neither could end. This is a bug in Terrace: please report it with the configuration.", name, name)
}
