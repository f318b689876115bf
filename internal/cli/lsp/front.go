package lsp

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/creachadair/jrpc2/channel"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/lsp/front"
)

// frontHeap is the size of the heap, in bytes, at which the process in front collects garbage. Formatting 5,000
// lines creates 1 MB of garbage.
const frontHeap = 32 << 20

// relay runs the language server in another process of this program, and relays its messages, as package front
// describes. It returns the exit status of the server. If the system does not start another process, serve
// serves in this one.
func relay(ctx context.Context, c *command.Call, program string, serve func(in io.Reader, out io.WriteCloser) int) int {
	in, toServer, err := os.Pipe()
	if err != nil {
		return serve(c.System.Stdin, output{c.Stdout})
	}
	fromServer, out, err := os.Pipe()
	if err != nil {
		_, _ = in.Close(), toServer.Close()
		return serve(c.System.Stdin, output{c.Stdout})
	}
	if hold := c.System.HoldHeap; hold != nil {
		hold(frontHeap)
	}
	relayed := make(chan struct{})
	go func() { // ends with the server, or with this process if the editor reads no more
		defer close(relayed)
		front.Relay(channel.LSP(c.System.Stdin, output{c.Stdout}), channel.LSP(fromServer, toServer))
	}()
	env := c.System.Env
	if as := c.CalledAs(); as != "" { // the path of the program may have another name
		env = env.With("TERRACE_AS=" + as)
	}
	err = c.Run(ctx, sys.Command{
		Path: program, Args: append(slices.Clone(c.System.Args[1:]), "--relayed"), Dir: c.System.Dir, Env: env,
		Stdin: in, Stdout: out, Stderr: c.System.Stderr,
	})
	code, ran := sys.ExitCode(err)
	if !ran && ctx.Err() == nil {
		code = serve(in, out)
	}
	_, _ = in.Close(), out.Close() // this ends the relay
	select {
	case <-relayed:
	case <-ctx.Done():
	}
	if code < 0 {
		fmt.Fprintf(c.System.Stderr, "The language server ended: %v\n", err)
		return 1
	}
	return code
}
