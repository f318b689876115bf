// Package help implements the help on the command line itself: help, completion for shells,
// man pages, and the overview without a command.
//
// Main type: folder, which provides the candidates for completion from the working directory.
// The one rule: this package knows no command by name, and takes all texts from the table.
package help

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/wrap"
	"github.com/terrace-iac/terrace/internal/cli/command"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Commands declares help, completion, man and the hidden command that completion scripts call.
func Commands() []command.Command {
	return []command.Command{
		{
			Name: "help", Synopsis: "Show help on a command or a topic", Usage: "[COMMAND | TOPIC]",
			Help: `Shows the help of a command, as "COMMAND -help" does, or of a topic. Without
an argument, it lists both.`,
			Args:     []command.Arg{{Name: "COMMAND", Help: "A command or a topic.", Optional: true, Repeated: true, Complete: flag.Commands}},
			Examples: []command.Example{{Line: "help variables", Text: "Show where values of variables come from."}},
			Prepare: func() (flag.Flags, command.Run) {
				return nil, func(_ context.Context, c *command.Call) int { return show(c) }
			},
		},
		{
			Name: "completion", Synopsis: "Print the completion for a shell", Usage: "<bash|fish|zsh>",
			Help: `Prints a script with which a shell completes commands, flags and their values,
such as workspaces, addresses, units and variable files.`,
			Args: []command.Arg{{Name: "shell", Help: "bash, fish or zsh.", Choices: command.Shells()}},
			Examples: []command.Example{
				{Line: "completion bash > ~/.local/share/bash-completion/completions/terrace", Text: "For bash."},
				{Line: "completion fish > ~/.config/fish/completions/terrace.fish", Text: "For fish."},
				{Line: "completion zsh > ~/.zfunc/_terrace", Text: "For zsh, with fpath=(~/.zfunc $fpath) before compinit in ~/.zshrc."},
			},
			Prepare: func() (flag.Flags, command.Run) {
				return nil, func(_ context.Context, c *command.Call) int {
					text := command.Script(c.Arg(0), completedNames(c))
					if len(c.Args) != 1 || text == "" {
						return c.UsageError("Shell required", "Name one of these shells: "+strings.Join(command.Shells(), ", ")+".")
					}
					fmt.Fprint(c.Stdout, text)
					return 0
				}
			},
		},
		{
			Name: "man", Synopsis: "Write man pages", Usage: "<DIR>",
			Help:     "Writes a man page for the program and one for each command to a directory.",
			Args:     []command.Arg{{Name: "DIR", Help: "The directory, such as /usr/local/share/man/man1.", Complete: flag.Folders}},
			Examples: []command.Example{{Line: "man ~/.local/share/man/man1", Text: "Write the pages to a directory that man searches."}},
			Prepare: func() (flag.Flags, command.Run) {
				return nil, func(_ context.Context, c *command.Call) int {
					if len(c.Args) != 1 {
						return c.UsageError("Directory required", "Name the directory that the pages are written to.")
					}
					return pages(c, c.Path(c.Arg(0)))
				}
			},
		},
	}
}

// show prints the help on the subject that the arguments name.
func show(c *command.Call) int {
	name := strings.Join(c.Args, " ")
	if name == "" {
		fmt.Fprintln(c.Stdout, c.Table.Usage())
		fmt.Fprintf(c.Stdout, "\nTopics (see them with \"%s help TOPIC\"):\n", c.Table.Program)
		for _, t := range c.Table.Topics {
			fmt.Fprintf(c.Stdout, "  %-12s  %s\n", t.Name, t.Synopsis)
		}
		return 0
	}
	if cmd := c.Table.Named(name); cmd != nil {
		fmt.Fprintln(c.Stdout, c.Table.HelpOf(cmd))
		return 0
	}
	for _, t := range c.Table.Topics {
		if t.Name == name {
			fmt.Fprintln(c.Stdout, wrap.Fit(strings.TrimSpace(t.Text), c.Table.Width, 0))
			return 0
		}
	}
	return c.Unknown(c.Args)
}

// pages writes the man pages to a directory.
func pages(c *command.Call, dir string) int {
	err := os.MkdirAll(dir, 0o755)
	write := func(name, text string) {
		if err == nil {
			err = atomicfile.Write(filepath.Join(dir, name+".1"), []byte(text), 0o644)
		}
	}
	write(c.Table.Program, c.Table.Man(nil))
	n := 1
	for i := range c.Table.Commands {
		if cmd := &c.Table.Commands[i]; !cmd.Hidden {
			write(c.Table.Program+"-"+strings.ReplaceAll(cmd.Name, " ", "-"), c.Table.Man(cmd))
			n++
		}
	}
	if err != nil {
		return c.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write man pages", "%s.", err))
	}
	c.Report.Say(fmt.Sprintf("Man pages written to %s: %d.\n", dir, n))
	return 0
}
