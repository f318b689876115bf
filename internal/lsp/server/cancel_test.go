package server

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// slowModule returns a directory whose validation takes long.
func slowModule(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "resource \"terraform_data\" \"r%d\" {\n  input = [for x in range(20) : \"${x}-${local.l%d}\"]\n}\nlocals {\n  l%d = join(\",\", [for k in [\"a\", \"b\"] : upper(k)])\n}\n", i, i, i)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A canceled request ends long before its answer would be there, with the error code of the protocol.
// The handler answers when its work has stopped.
func TestCanceledRequestsStop(t *testing.T) {
	if testing.Short() {
		t.Skip("the module is large")
	}
	dir := slowModule(t, 4000)
	d, who, err := workdir.Embedded(workdir.Embedding{Dir: dir, Environ: []string{"HOME=" + t.TempDir()}, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	done := make(chan bool, 1)
	go func() { done <- Serve(t.Context(), Options{Session: workspace.New(d, who)}, toServer, fromServer) }() // ends with the pipe
	ch := channel.LSP(toClient, fromClient)
	send := func(id int, method string, params any) {
		t.Helper()
		m := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
		if id != 0 {
			m["id"] = id
		}
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := ch.Send(raw); err != nil {
			t.Fatal(err)
		}
	}
	type answer struct {
		ID    int
		Error *jrpc2.Error
	}
	receive := func(id int) (a answer) {
		t.Helper()
		for {
			raw, err := ch.Recv()
			if err != nil {
				t.Fatal(err)
			}
			a = answer{}
			if json.Unmarshal(raw, &a) == nil && a.ID == id {
				return a
			}
		}
	}
	file := map[string]any{"uri": document.URI(filepath.Join(dir, "main.tf"))}
	send(1, "initialize", map[string]any{"rootUri": document.URI(dir), "capabilities": map[string]any{"textDocument": map[string]any{"diagnostic": map[string]any{}}}})
	receive(1)
	send(0, "initialized", map[string]any{})
	text, err := os.ReadFile(filepath.Join(dir, "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	send(0, "textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": file["uri"], "version": 1, "text": string(text)}})
	from := time.Now()
	send(2, "textDocument/diagnostic", map[string]any{"textDocument": file})
	if a := receive(2); a.Error != nil {
		t.Fatal(a.Error)
	}
	whole := time.Since(from)
	fastest := whole
	for i := range 3 { // on a busy machine, the notification may wait for the processor
		send(0, "textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": file["uri"], "version": 2 + i}, "contentChanges": []any{map[string]any{"text": fmt.Sprintf("%s\n# changed %d\n", text, i)}}})
		from = time.Now()
		send(3+i, "textDocument/diagnostic", map[string]any{"textDocument": file})
		time.Sleep(whole / 10)
		send(0, "$/cancelRequest", map[string]any{"id": 3 + i})
		a := receive(3 + i)
		if a.Error == nil || a.Error.Code != codeCanceled {
			t.Errorf("the answer of the canceled request is %v", a.Error)
		}
		if fastest = min(fastest, time.Since(from)); fastest < whole*2/3 {
			break
		}
	}
	t.Logf("the whole takes %s, the canceled request stopped after %s", whole.Round(time.Millisecond), fastest.Round(time.Millisecond))
	if fastest > whole*2/3 {
		t.Errorf("the canceled request stops after %s, and the whole takes %s", fastest, whole)
	}
	_ = ch.Close()
	<-done
}
