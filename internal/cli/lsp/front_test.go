package lsp

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/creachadair/jrpc2/channel"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// If the system starts no other process, the server serves in this one, without losing a message.
func TestNoSecondProcess(t *testing.T) {
	in, fromEditor := io.Pipe()
	toEditor, out := io.Pipe()
	c := &command.Call{
		Directory: &workdir.Directory{Run: func(context.Context, sys.Command) error { return errors.New("refused") }},
		System:    &sys.System{Args: []string{"terrace", "lsp"}, Stdin: in},
		Stdout:    out,
	}
	editor := channel.LSP(toEditor, fromEditor)
	code := make(chan int)
	go func() { // ends with the server
		code <- relay(t.Context(), c, "terrace", func(in io.Reader, out io.WriteCloser) int {
			server := channel.LSP(in, out)
			m, err := server.Recv()
			if err == nil {
				err = server.Send(m)
			}
			if err != nil {
				t.Error(err)
			}
			return 7
		})
	}()
	m := `{"jsonrpc":"2.0","method":"x"}`
	if err := editor.Send([]byte(m)); err != nil {
		t.Fatal(err)
	}
	if got, err := editor.Recv(); err != nil || string(got) != m {
		t.Errorf("received %s, %v", got, err)
	}
	if got := <-code; got != 7 {
		t.Errorf("the exit status is %d", got)
	}
}
