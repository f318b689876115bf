// Package lsp implements the command lsp: the language server for editors.
//
// Main function: Command. The one rule: standard output belongs to the protocol, and nothing else is
// written to it.
package lsp

import (
	"context"
	"io"

	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/lsp/server"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// The garbage collector runs when the heap has perFile bytes for each file of the workspace, but at least
// leastHeap and at most mostHeap. An edit creates much garbage, and a request that arrives during a
// collection waits for a part of it.
const (
	leastHeap = 64 << 20
	mostHeap  = 256 << 20
	perFile   = 32 << 10
)

// Command declares lsp.
func Command() command.Command {
	return command.Command{
		Name: "lsp", Synopsis: "Run the language server for editors", Usage: "[options]",
		Help: `Runs a language server that speaks the Language Server Protocol on standard
input and output. Editors start it; docs/editor.md has their settings.

The server starts no provider, uses no network, and reads no state. The
schemas of providers are those that earlier commands have kept; the editor's
command "terrace.schemas" fetches others after a confirmation. In unit files,
functions that run programs have unknown values, unless the editor's option
"trust" allows them for the directory. With --no-exec, no program runs in any
case.`,
		Examples: []command.Example{{Line: "lsp", Text: "Answer the requests of an editor."}},
		Exits:    []command.Exit{{Code: 0, Help: "The editor requested the shutdown."}, {Code: 1, Help: "The connection ended before that."}},
		Prepare: func() (flag.Flags, command.Run) {
			stdio, relayed := true, false
			fs := flag.Flags{
				flag.Bool(&stdio, "stdio", "Use standard input and output, which is the default. Some editors add this flag.").WithTwoDashes(),
				flag.Bool(&relayed, "relayed", "Serve behind another process of the language server, which starts this one.").Hide(),
			}
			return fs, func(ctx context.Context, c *command.Call) int {
				if len(c.Args) > 0 {
					return c.UsageError("Too many command line arguments", "The command takes no arguments. The editor names the directories.")
				}
				if lower := c.System.LowerPriority; relayed && lower != nil {
					lower() // formatting comes first
				}
				serve := func(in io.Reader, out io.WriteCloser) int {
					if !server.Serve(ctx, options(c), in, out) {
						return 1
					}
					return 0
				}
				if executable := c.System.Executable; !relayed && !c.NoPrograms && executable != nil {
					if program, err := executable(); err == nil {
						return relay(ctx, c, program, serve)
					}
				}
				return serve(c.System.Stdin, output{c.Stdout})
			}
		},
	}
}

// options returns the options of the server.
func options(c *command.Call) server.Options {
	o := server.Options{Session: workspace.New(c.Directory, c.Who()), Version: release.Version}
	run := c.Run // the session has none
	o.Affected = func(ctx context.Context, dir string, buffers map[string][]byte) (string, error) {
		return affected(ctx, c, run, dir, buffers)
	}
	if hold := c.System.HoldHeap; hold != nil {
		o.Session.Index.Counted = func(files int) { hold(min(max(int64(files)*perFile, leastHeap), mostHeap)) }
	}
	o.Schemas = func(ctx context.Context, dir string, required []workspace.Requirement) error {
		return fetchSchemas(ctx, c, run, dir, required)
	}
	return o
}

// output is standard output, which the server must not close.
type output struct{ io.Writer }

// Close implements io.Closer.
func (output) Close() error { return nil }
