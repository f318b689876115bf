package schedule

// A Progress is how far tasks are that have their turns one after the other or at once:
// which can begin, which are refused and why. It is what all schedulers have in common,
// and it is deterministic: the same calls in the same order give the same answers. Make
// it with NewProgress; the caller sees to it that its methods are not called
// concurrently.
type Progress struct {
	tasks []Task
	rules Rules
	after [][]int // by task, those that need it

	left    []int        // how many of its needs each task still waits for
	blocked map[int]int  // by which of its needs a task is kept from running
	notRun  map[int]bool // tasks that had no turn, or broke it off
	failed  bool
}

// NewProgress is the beginning of tasks, and those that can begin at once, in order.
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

// Begin reports whether a task that can begin has its turn. If not, why says so, and the
// task ends with NotRun. stopping says that nothing more is to begin.
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

// blockedBy goes from a task that was not run to the one that is behind that.
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

// End notes what came of a task and returns those that can begin now, by name.
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

// release counts a task as done and returns those that can begin now.
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
