package schedule

// A Progress is the progress of tasks: which can begin, and which are refused and why. All
// schedulers use it. It is deterministic: the same calls in the same order return the same
// results. Create it with NewProgress. Its methods must not be called concurrently.
type Progress struct {
	tasks []Task
	rules Rules
	after [][]int // dependent tasks, by task

	left    []int        // number of unfinished dependencies, by task
	blocked map[int]int  // dependency that prevents a task from running, by task
	notRun  map[int]bool // tasks that were not run, or stopped early
	failed  bool
}

// NewProgress returns the initial progress of tasks, and the tasks that can begin at once, in
// order.
func NewProgress(tasks []Task, rules Rules) (p *Progress, ready []int) {
	p = &Progress{
		tasks: tasks, rules: rules, after: neededBy(tasks), left: make([]int, len(tasks)),
		blocked: map[int]int{}, notRun: map[int]bool{},
	}
	if rules.IgnoreOrder {
		p.after = make([][]int, len(tasks))
	} else {
		for i, t := range tasks {
			p.left[i] = len(t.Needs)
		}
	}
	for _, i := range Order(tasks) {
		switch {
		case tasks[i].Skip:
			ready = append(ready, p.release(i)...)
		case rules.IgnoreOrder || len(tasks[i].Needs) == 0:
			ready = append(ready, i)
		}
	}
	return p, ready
}

// Begin reports whether a task may run. If not, why is the reason, and the caller calls End with
// NotRun. stopping means that no more tasks may begin.
func (p *Progress) Begin(i int, stopping bool) (why Refusal, ok bool) {
	switch by, isBlocked := p.blocked[i]; {
	case isBlocked:
		return p.blockedBy(by), false
	case stopping:
		return Refusal{Reason: Stopping}, false
	case p.rules.FailFast && p.failed:
		return Refusal{Reason: Failing}, false
	}
	return Refusal{}, true
}

// blockedBy returns the refusal of a task whose dependency by did not succeed. It finds the first
// task that caused it.
func (p *Progress) blockedBy(by int) Refusal {
	first := by
	for {
		up, ok := p.blocked[first]
		if !ok {
			return Refusal{Reason: Blocked, By: by, First: first, FirstNotRun: p.notRun[first]}
		}
		first = up
	}
}

// End records the outcome of a task and returns the tasks that can begin now, sorted by name.
func (p *Progress) End(i int, out Outcome) (ready []int) {
	p.failed = p.failed || out == Failed
	if p.notRun[i] = out == NotRun; out != Done && !p.rules.IgnoreErrors {
		for _, n := range p.after[i] {
			if have, ok := p.blocked[n]; !ok || p.tasks[i].Name < p.tasks[have].Name {
				p.blocked[n] = i
			}
		}
	}
	return p.release(i)
}

// release marks a task as done and returns the tasks that can begin now.
func (p *Progress) release(i int) []int {
	var out []int
	for _, n := range p.after[i] {
		if p.left[n]--; p.left[n] == 0 && !p.tasks[n].Skip {
			out = append(out, n)
		}
	}
	byName(p.tasks, out)
	return out
}
