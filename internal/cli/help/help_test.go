package help_test

import (
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/help"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// table returns a table with the commands of this package and one other.
func table() *command.Table {
	none := func() flag.Flags { return nil }
	return &command.Table{Program: "terrace", Product: "Terrace", Global: none, Common: none, Units: none, Commands: append(help.Commands(), command.Command{
		Name: "plan", Synopsis: "Show changes", Args: []command.Arg{{Name: "file", Complete: flag.Files}},
		Prepare: func() (flag.Flags, command.Run) { return nil, nil },
	})}
}

// The overview describes the directory, and the commands to start with have the texts of the table.
func TestOverview(t *testing.T) {
	for _, tt := range []struct{ files, want, start string }{
		{"-- README --\n", "holds neither configuration nor units.", "help"},
		{"-- main.tf --\n-- a.tf --\n", "holds configuration in 2 files.", "init"},
		{"-- a/terragrunt.hcl --\n-- b/terragrunt.hcl --\n", "is an estate of 2 units.", "run --all plan"},
		{"-- terragrunt.hcl --\n-- b/terragrunt.hcl --\n", "is a unit, with 1 more below it.", "plan "},
	} {
		c := command.New(t.Context(), sys.Test(testkit.Files(t, tt.files)).System, table(), nil)
		if got := help.Overview(c); !strings.HasPrefix(got, c.Dir+" "+tt.want) || !strings.Contains(got, "\n  terrace "+tt.start) {
			t.Error(got)
		}
	}
}

// Each topic has a synopsis for the list of topics, and lines that fit on a terminal.
func TestTopics(t *testing.T) {
	for _, topic := range help.Topics([]command.Variable{{Name: "TF_LOG", Help: "Text."}}) {
		if topic.Synopsis == "" || strings.HasSuffix(topic.Synopsis, ".") {
			t.Errorf("%s: %q", topic.Name, topic.Synopsis)
		}
		for line := range strings.Lines(topic.Text) {
			if len(line) > 81 {
				t.Errorf("%s: %q", topic.Name, line)
			}
		}
	}
}

// Candidates are printed one per line, or a word with which the shell completes paths itself. A
// shell asks for them with a word or a variable of its own.
func TestCandidates(t *testing.T) {
	fake := sys.Test(t.TempDir())
	c := command.New(t.Context(), fake.System, table(), nil)
	if !help.Asked(c, []string{"__complete", "--", "pl"}) || help.Asked(c, []string{"plan"}) || help.Asked(c, nil) {
		t.Error("a shell is not recognized")
	}
	help.Candidates(t.Context(), c, []string{"__complete", "--", "pl"})
	if got := fake.Out.String(); !strings.Contains(got, "plan") || strings.Contains(got, "help\n") {
		t.Errorf("%q", got)
	}
	fake = sys.Test(t.TempDir())
	help.Candidates(t.Context(), command.New(t.Context(), fake.System, table(), nil), []string{"__complete", "--", "plan", ""})
	if got := fake.Out.String(); got != ":files\n" {
		t.Errorf("%q", got)
	}
	if c := command.New(t.Context(), sys.Test(t.TempDir(), "COMP_LINE=terrace pl").System, table(), nil); !help.Asked(c, nil) {
		t.Error("COMP_LINE is not recognized")
	}
}
