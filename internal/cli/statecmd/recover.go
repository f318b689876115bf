package statecmd

import (
	"context"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/prompt"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

func recoverJournal() command.Command {
	return command.Command{
		Name: "state recover", Synopsis: "Take over the journal of another user or machine", Usage: "[options]",
		Uses:  command.State,
		Units: command.InUnit | command.OneUnit,
		Help: `Bring the journal of an interrupted run into the state, whoever wrote it.

Every command that takes the lock of the state does this for a journal that the
same user wrote on the same machine in the same directory. Other journals may
have come with the directory, so those commands stop: a journal of a container
that was replaced, of a directory that was moved, of another user, or of an
earlier version. This command shows what such a journal contains, asks, and
then uses it by the same rules: onto the state that it continues; otherwise its
objects are saved to errored.tfstate.`,
		Examples: []command.Example{{Line: "state recover", Text: "Show what a journal contains, and take it over after a question."}},
		Prepare: func() (flag.Flags, command.Run) {
			o, approved := &common{}, false
			fs := append(flag.Flags{flag.Bool(&approved, "auto-approve", "Do not ask.")}, o.writing()...)
			return fs, func(ctx context.Context, c *command.Call) int {
				if len(c.Args) > 0 {
					return c.UsageError("Invalid number of arguments", "No arguments expected")
				}
				if !o.json.Use(c.Report) {
					return 1
				}
				defer c.Report.Finish()
				if !o.state.On {
					return c.UsageError("Lock required", "A journal is taken over under the lock of the state: leave -lock=false out.")
				}
				if o.json.On && !approved {
					return c.UsageError("Auto-approve required", "With -json nothing can be asked: use -auto-approve too.")
				}
				return o.recover(ctx, c, approved)
			}
		},
	}
}

// noticing notices that a journal is merged.
type noticing struct {
	statemgr.Host
	found *bool
}

func (n noticing) Note(sentence string) {
	*n.found = true
	n.Host.Note(sentence)
}

// recover locks the state and merges its journals into it. Without approved, it asks before it
// merges a journal of another user.
func (o *common) recover(ctx context.Context, c *command.Call, approved bool) int {
	at, _, ds := o.open(ctx, c)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	found := false
	at.Host = noticing{at.Host, &found}
	at.Adopt = func(where string, rec *journal.Recovered) diag.List {
		found = true
		c.Report.Say("Journal: " + where + "\n" + upper(rec.Foreign.Error()) + ".\n" + rec.Contents() + "\n")
		if approved {
			return nil
		}
		answer, err := c.Prompt.Ask(ctx, prompt.Question{Title: "Do you want to bring this journal into the state?", Text: "Only 'yes' will be accepted to continue."})
		if err != nil {
			return diag.Errorf(diag.CodeCLINotApproved, nil, "Error asking for approval", "%s.", err)
		}
		if answer != "yes" {
			return diag.Errorf(diag.CodeJournalForeign, nil, "Journal not recovered", "The journal was not brought into the state. Nothing was changed, and the journal was kept.")
		}
		return nil
	}
	h, more := o.takeAt(ctx, c, at, "state-recover")
	ds = append(ds, more...)
	if h == nil {
		return c.Fail(ds)
	}
	if ds = append(ds, h.Release()...); !ds.HasErrors() {
		said := "There is no journal to recover"
		if found {
			said = "The journal was recovered"
		}
		c.Report.Human.Say(said + ".\n")
		c.Report.Stream.Log(said)
	}
	return c.Report.Status(ds)
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
