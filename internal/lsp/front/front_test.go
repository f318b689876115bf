package front

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/server"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// pair returns the two ends of a connection.
func pair() (a, b channel.Channel) {
	toB, fromA := io.Pipe()
	toA, fromB := io.Pipe()
	return channel.LSP(toA, fromA), channel.LSP(toB, fromB)
}

// serve starts the language server, and returns its client's end of the connection.
func serve(t *testing.T, dir string) channel.Channel {
	d, who, err := workdir.Embedded(workdir.Embedding{Dir: dir, Environ: []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	in, fromClient := io.Pipe()
	toClient, out := io.Pipe()
	ended := make(chan struct{})
	go func() { // ends with the connection
		defer close(ended)
		server.Serve(context.Background(), server.Options{Session: workspace.New(d, who), Version: "test"}, in, out)
		_ = out.Close()
	}()
	t.Cleanup(func() {
		_ = fromClient.Close()
		_ = toClient.Close() // the server may be sending
		<-ended
	})
	return channel.LSP(toClient, fromClient)
}

// relayAndClose relays, and closes the connection to the client as the end of the process does.
func relayAndClose(client, server channel.Channel) {
	Relay(client, server)
	_ = client.Close()
}

// recorder records the methods of the messages that are sent.
type recorder struct {
	channel.Channel
	mu   sync.Mutex
	sent []string
}

func (r *recorder) Send(m []byte) error {
	requests, _ := jrpc2.ParseRequests(m)
	r.mu.Lock()
	for _, q := range requests {
		r.sent = append(r.sent, q.Method)
	}
	r.mu.Unlock()
	return r.Channel.Send(m)
}

func (r *recorder) count(method string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.sent {
		if m == method {
			n++
		}
	}
	return n
}

// client is a client of the server.
type client struct {
	t   *testing.T
	rpc *jrpc2.Client
	dir string
}

func connect(t *testing.T, c channel.Channel, dir string, encodings ...string) *client {
	out := &client{t: t, dir: dir, rpc: jrpc2.NewClient(c, &jrpc2.ClientOptions{OnCallback: func(context.Context, *jrpc2.Request) (any, error) { return nil, nil }})}
	t.Cleanup(func() { _ = out.rpc.Close() })
	out.call("initialize", map[string]any{"rootUri": document.URI(dir), "capabilities": map[string]any{"general": map[string]any{"positionEncodings": encodings}}})
	out.notify("initialized", map[string]any{})
	return out
}

// call returns the answer as JSON, or the error.
func (c *client) call(method string, params any) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	r, err := c.rpc.Call(ctx, method, params)
	if err != nil {
		return "error: " + err.Error()
	}
	return r.ResultString()
}

func (c *client) notify(method string, params any) {
	c.t.Helper()
	if err := c.rpc.Notify(c.t.Context(), method, params); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) id(name string) map[string]any {
	return map[string]any{"uri": document.URI(filepath.Join(c.dir, name)), "version": 1}
}

func (c *client) open(name, text string) {
	c.t.Helper()
	id := c.id(name)
	id["text"] = text
	c.notify("textDocument/didOpen", map[string]any{"textDocument": id})
}

func (c *client) formatting(name string) string {
	c.t.Helper()
	return c.call("textDocument/formatting", map[string]any{"textDocument": c.id(name), "options": map[string]any{"tabSize": 2, "insertSpaces": true}})
}

// After random edits, the front gives the answers that the server alone gives, and the server receives requests
// only for documents that are not open.
func TestSameAnswers(t *testing.T) {
	for _, encodings := range [][]string{nil, {"utf-8"}} {
		t.Run(fmt.Sprint(encodings), func(t *testing.T) {
			dir := t.TempDir()
			direct := connect(t, serve(t, dir), dir, encodings...)
			editor, ours := pair()
			behind := &recorder{Channel: serve(t, dir)}
			go relayAndClose(ours, behind) // ends with the server
			fronted := connect(t, editor, dir, encodings...)

			r := rand.New(rand.NewPCG(35, uint64(len(encodings))))
			enc := document.UTF16
			if encodings != nil {
				enc = document.UTF8
			}
			names := []string{"main.tf", "terragrunt.hcl", "x.auto.tfvars", "data.json", "new.tf"}
			texts := map[string]*document.Text{}
			both := func(do func(c *client)) { do(direct); do(fronted) }
			pieces := []string{"x", "\n", "  ", "😀é", "\"", "# 𝒳 comment\n", "a=1\n", "locals {\na = \"😀\"   \n  bcd = 2\n}\n", "}", "{", "\r\n", "variable \"v\" {\ntype = \"string\"\n}\n", "y = \"${var.a}\"\n"}
			different, answered, open := 0, 0, 0
			for i := range 1500 {
				name := names[r.IntN(len(names))]
				text := texts[name]
				switch {
				case text == nil:
					text = document.New([]byte(strings.Repeat("locals {\n  é = 1\n a=\"😀\"\n}\n", r.IntN(4))))
					both(func(c *client) { c.open(name, string(text.Bytes)) })
				case r.IntN(30) == 0:
					both(func(c *client) { c.notify("textDocument/didClose", map[string]any{"textDocument": c.id(name)}) })
					text = nil
				case r.IntN(4) == 0:
					text = document.New([]byte(strings.Repeat("locals {\n  é = \"😀\" # 😀\n a=\"😀\"\n}\n", 1+r.IntN(4))))
					both(func(c *client) {
						c.notify("textDocument/didChange", map[string]any{"textDocument": c.id(name), "contentChanges": []any{map[string]any{"text": string(text.Bytes)}}})
					})
				default:
					var changes []protocol.TextDocumentContentChange
					for range 1 + r.IntN(2) {
						line, to := r.IntN(text.Lines()+1), r.IntN(3)
						at := protocol.Range{Start: protocol.Position{Line: line, Character: r.IntN(12)}, End: protocol.Position{Line: line + to/2, Character: r.IntN(14)}}
						one := protocol.TextDocumentContentChange{Range: &at, Text: pieces[r.IntN(len(pieces))]}
						changes = append(changes, one)
						text = text.Apply([]protocol.TextDocumentContentChange{one}, enc)
					}
					both(func(c *client) {
						c.notify("textDocument/didChange", map[string]any{"textDocument": c.id(name), "contentChanges": changes})
					})
				}
				texts[name] = text
				want, got := direct.formatting(name), fronted.formatting(name)
				if got != want {
					t.Fatalf("edit %d of %s: the front answers\n%s\nthe server answers\n%s", i, name, got, want)
				}
				params := map[string]any{"textDocument": direct.id(name), "range": protocol.Range{Start: protocol.Position{Line: r.IntN(4)}, End: protocol.Position{Line: 4 + r.IntN(4), Character: r.IntN(3)}}}
				if want, got := direct.call("textDocument/rangeFormatting", params), fronted.call("textDocument/rangeFormatting", params); got != want {
					t.Fatalf("edit %d of %s: the front answers for a range\n%s\nthe server answers\n%s", i, name, got, want)
				}
				if answered++; strings.Contains(want, "newText") {
					different++
				}
				if text == nil {
					open++
				}
			}
			if different < 100 || open < 10 {
				t.Errorf("only %d of %d answers have edits, and %d are about documents that are not open", different, answered, open)
			}
			if n := behind.count("textDocument/formatting"); n != open {
				t.Errorf("the server received %d requests for formatting, not the %d for documents that are not open", n, open)
			}
		})
	}
}

// All other messages reach the other side without a change and in order. The front stops answering after a message
// that it does not understand.
func TestOrder(t *testing.T) {
	editor, ours := pair()
	theirs, srv := pair()
	relayed := make(chan struct{})
	go func() {
		Relay(ours, theirs)
		close(relayed)
	}()
	send := func(c channel.Channel, m string) {
		t.Helper()
		if err := c.Send([]byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	receive := func(c channel.Channel, want string) {
		t.Helper()
		if m, err := c.Recv(); err != nil || string(m) != want {
			t.Fatalf("received %s, %v, not %s", m, err, want)
		}
	}
	through := func(from, to channel.Channel, ms ...string) {
		t.Helper()
		go func() { // ends when all messages are received
			for _, m := range ms {
				_ = from.Send([]byte(m))
			}
		}()
		for _, m := range ms {
			receive(to, m)
		}
	}
	format := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"textDocument/formatting","params":{"textDocument":{"uri":"file:///a.tf"}}}`
	}
	opened := `{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a.tf","text":"a=1\n"}}}`
	initialize := `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}`
	initialized := `{"jsonrpc":"2.0","id":"i","result":{"capabilities":{"positionEncoding":"utf-16"}}}`

	through(editor, srv, format("1"), initialize)
	through(srv, editor, `{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"m"}}`, `{"jsonrpc":"2.0","id":"i","method":"x"}`, initialized)
	through(editor, srv, opened, format("null"), `{"jsonrpc":"2.0","method":"textDocument/formatting","params":{}}`,
		`{"jsonrpc":"2.0","id":7,"method":"textDocument/hover","params":{"a" : [1, 2]}}`, `{"jsonrpc":"2.0","id":4,"result":null}`, `{ broken`, `3`, `{"id":1}`,
		`{"jsonrpc":"2.0","id":9,"method":"textDocument/formatting","params":{"textDocument":{"uri":"file:///b.tf"}}}`,
		`{"jsonrpc":"2.0","id":9,"method":"textDocument/formatting","params":{"textDocument":3}}`,
		`{"jsonrpc":"2.0","id":9,"method":"textDocument/formatting","params":{"textDocument":{"uri":"file:///a.tf"}},"more":1}`,
		`{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///a.tf"},"contentChanges":3}}`,
		`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7}}`)
	send(editor, format(`"f"`))
	receive(editor, `{"jsonrpc":"2.0","id":"f","result":[{"range":{"start":{"line":0,"character":0},"end":{"line":1,"character":0}},"newText":"a = 1\n"}]}`)
	through(editor, srv, `[`+format("2")+`]`, format("3")) // the array may have changed a document
	through(srv, editor, `{"jsonrpc":"2.0","method":"window/logMessage","params":{}}`, `{"jsonrpc":"2.0","id":3,"result":null}`)

	_ = srv.Close()
	select {
	case <-relayed:
	case <-time.After(time.Minute):
		t.Error("the relay does not end with the server")
	}
}

// A document that is opened before the answer to initialize may be unknown to the server.
func TestOpenedTooEarly(t *testing.T) {
	r := newRelay(nil, nil)
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
		`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a.tf","text":"a=1\n"}}}`,
	} {
		if r.answers([]byte(m)) {
			t.Errorf("the server does not receive %s", m)
		}
	}
	r.learn([]byte(`{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"positionEncoding":"utf-16"}}}`))
	if r.answers([]byte(`{"jsonrpc":"2.0","id":2,"method":"textDocument/formatting","params":{"textDocument":{"uri":"file:///a.tf"}}}`)) {
		t.Error("the front answers")
	}
}

// ready returns a relay that has a document open, and the other ends of its connections.
func ready(text string) (r *relay, editor, server channel.Channel) {
	editor, ours := pair()
	theirs, server := pair()
	r = newRelay(ours, theirs)
	r.state, r.encoding = following, document.UTF16
	r.documents[document.Path("file:///a.tf")] = document.New([]byte(text))
	go r.run() // ends with the server
	return r, editor, server
}

// A request that is canceled while the front formats has the error of a canceled request, and other messages pass
// meanwhile.
func TestCancel(t *testing.T) {
	r, editor, server := ready("a=1\n")
	started, canceled := make(chan struct{}), make(chan struct{})
	r.edits = func(string, string, *document.Text, protocol.Range, document.Encoding) []protocol.TextEdit {
		close(started)
		<-canceled
		return []protocol.TextEdit{}
	}
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":5,"method":"textDocument/formatting","params":{"textDocument":{"uri":"file:///a.tf"}}}`,
		`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":5}}`,
	} {
		if err := editor.Send([]byte(m)); err != nil {
			t.Fatal(err)
		}
		<-started
	}
	hover := `{"jsonrpc":"2.0","id":6,"method":"textDocument/hover","params":{}}`
	go func() { _ = editor.Send([]byte(hover)) }() // ends when the message is received
	if m, err := server.Recv(); err != nil || string(m) != hover {
		t.Errorf("the server received %s, %v", m, err)
	}
	close(canceled)
	m, err := editor.Recv()
	if want := `{"jsonrpc":"2.0","id":5,"error":{"code":-32800,"message":"the request was canceled"}}`; err != nil || string(m) != want {
		t.Errorf("received %s, %v", m, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) > 0 {
		t.Error("the request is kept")
	}
}

// If the formatter has a bug, the server answers.
func TestBug(t *testing.T) {
	r, editor, server := ready("a=1\n")
	r.edits = func(string, string, *document.Text, protocol.Range, document.Encoding) []protocol.TextEdit {
		panic("bug")
	}
	m := `{"jsonrpc":"2.0","id":5,"method":"textDocument/formatting","params":{"textDocument":{"uri":"file:///a.tf"}}}`
	if err := editor.Send([]byte(m)); err != nil {
		t.Fatal(err)
	}
	if got, err := server.Recv(); err != nil || string(got) != m {
		t.Errorf("the server received %s, %v", got, err)
	}
}

// The connection to the server is closed when the client disconnects.
func TestClientDisconnects(t *testing.T) {
	_, editor, server := ready("")
	if err := editor.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err := server.Recv(); err != io.EOF {
		t.Errorf("the server received %s, %v", m, err)
	}
}

// Requests that run at once are all answered, each once.
func TestManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	editor, ours := pair()
	go relayAndClose(ours, serve(t, dir)) // ends with the server
	c := connect(t, editor, dir)
	c.open("main.tf", strings.Repeat("locals {\na = 1\n}\n", 500))
	want := c.formatting("main.tf")
	var wg sync.WaitGroup
	answers := make([]string, 100)
	for i := range answers {
		wg.Go(func() {
			if i%2 == 0 {
				answers[i] = c.formatting("main.tf")
			} else {
				answers[i] = c.call("textDocument/hover", map[string]any{"textDocument": c.id("main.tf"), "position": protocol.Position{}})
			}
		})
	}
	wg.Wait()
	if n := slices.IndexFunc(answers, func(a string) bool { return a != want && a != "null" }); n >= 0 {
		t.Errorf("answer %d is %s", n, answers[n])
	}
	var edits []protocol.TextEdit
	if err := json.Unmarshal([]byte(want), &edits); err != nil || len(edits) != 500 {
		t.Errorf("%d edits: %v", len(edits), err)
	}
}
