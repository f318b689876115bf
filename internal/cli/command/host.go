package command

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// host implements the Host of the directory in which a call works.
type host struct{ c *Call }

func (h host) Asks() bool { return h.c.Prompt.May(true) }

func (h host) Ask(ctx context.Context, q workdir.Question) (string, error) {
	if !h.Asks() {
		return "", workdir.ErrNobody
	}
	out := prompt.Question{Title: q.Title, Text: q.Text}
	if v := q.Variable; v != nil {
		out.Title, out.Secret = prompt.Variable(v), v.Sensitive
	}
	return h.c.Prompt.Ask(ctx, out)
}

func (h host) Event(e event.Event) { h.c.Report.Event(e) }

func (h host) Slow(text string) { h.c.Report.Wait(text) }

func (h host) Waiting(holder *store.LockInfo) {
	if holder == nil {
		const text = "Acquiring state lock. This may take a few moments..."
		h.c.Report.Human.Say(text + "\n")
		h.c.Report.Stream.Typed(text, "state_lock_acquire", nil)
		return
	}
	h.Note("The state is locked by " + backend.Describe(holder) + ". Waiting for the lock...")
}

func (h host) Note(sentence string) {
	h.c.Report.Human.Say(sentence + "\n")
	h.c.Report.Stream.Log(sentence)
}

func (h host) Rescue(text []byte) diag.List { return workdir.Rescue(h.c.Stdout, text) }

func (h host) Expect(bytes int64, plugins bool) {
	if f := h.c.System.ExpectHeap; f != nil && bytes > 0 {
		f(bytes)
	}
	if f := h.c.System.ShareProcessors; f != nil && plugins {
		f()
	}
}

func (h host) Running(end func()) { h.c.Interrupts.EndsProviders(end) }

// Changing makes a second interrupt abandon the state, so that the journal of the apply stays
// as it is.
func (h host) Changing(s *statemgr.State) func() {
	h.c.Interrupts.WhenKilled(s.Abandon)
	return func() { h.c.Interrupts.WhenKilled(nil) }
}
