package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
)

// An Editor measures a language server as an editor uses it.
type Editor struct {
	Program []string // the server with its arguments
	Dir     string   // the workspace; absolute
	Files   []string // open documents, relative to Dir; edits change them
	Edits   int      // random edits
	Starts  int      // further starts of the server, in which only formatting while indexing is measured
	Seed    uint64
}

// Latency contains the times of one kind of request.
type Latency struct {
	Request string
	Times   []time.Duration // sorted
	Failed  int             // requests with an error
}

// At returns a quantile, such as 0.99. It returns 0 if there are no times.
func (l *Latency) At(q float64) time.Duration {
	if len(l.Times) == 0 {
		return 0
	}
	return l.Times[min(int(q*float64(len(l.Times))), len(l.Times)-1)]
}

// Over returns the number of times that are longer than a limit.
func (l *Latency) Over(limit time.Duration) int {
	i, _ := slices.BinarySearch(l.Times, limit+1)
	return len(l.Times) - i
}

// EditorFigures are the measurements of one server.
type EditorFigures struct {
	First   time.Duration // from the start of the process to the symbols of the first document
	Indexed time.Duration // from the start to the first answer about the whole workspace
	Idle    time.Duration // from the start until the process was idle for a second; 0 if that is unknown
	// Memory of the process in bytes, when idle: after the index, before the random edits (and after
	// 200 others) and after the edits. Most is the most memory at any time.
	MemoryIndexed, MemoryBefore, MemoryAfter, Most int64
	Requests                                       []Latency
}

// longDocument is the number of lines of the document that is formatted while the server indexes.
const longDocument = 5000

// formattingTime is the time in which the document is formatted up to 1000 times after that.
const formattingTime = 20 * time.Second

// long is the name of this document.
const long = "long.tf"

// editorTimeout is the time after which a request counts as failed.
const editorTimeout = 5 * time.Minute

// session is the connection to one server.
type session struct {
	e        *Editor
	started  time.Time // of the process
	rpc      *jrpc2.Client
	messages *arrivals
	pid      int
	r        *rand.Rand
	texts    map[string]*document.Text
	versions map[string]int

	mu    sync.Mutex
	times map[string]*Latency
}

// arrivals records when the last message arrived completely, so that the times do not contain the work of
// the client.
type arrivals struct {
	channel.Channel
	last atomic.Pointer[time.Time]
}

// Recv implements channel.Channel.
func (a *arrivals) Recv() ([]byte, error) {
	m, err := a.Channel.Recv()
	now := time.Now()
	a.last.Store(&now)
	return m, err
}

// Measure starts the server and measures it.
func (e *Editor) Measure(ctx context.Context) (*EditorFigures, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(300)) // collections of this process would delay the answers
	if len(e.Files) == 0 {
		return nil, errors.New("no document is named")
	}
	var f *EditorFigures
	err := e.start(ctx, func(ctx context.Context, s *session) (err error) {
		f, err = s.measure(ctx)
		return err
	})
	for i := 0; i < e.Starts && err == nil; i++ {
		err = e.start(ctx, func(ctx context.Context, s *session) error {
			if err := s.formatWhileIndexing(ctx, &EditorFigures{}, oftenApart); err != nil {
				return err
			}
			f.include(s.times[formattingEarly])
			return nil
		})
	}
	return f, err
}

// include adds the times of another start of the server.
func (f *EditorFigures) include(more *Latency) {
	i := slices.IndexFunc(f.Requests, func(l Latency) bool { return l.Request == more.Request })
	l := &f.Requests[i]
	l.Failed += more.Failed
	l.Times = append(l.Times, more.Times...)
	slices.Sort(l.Times)
}

// start starts the server, and stops it after use.
func (e *Editor) start(ctx context.Context, use func(context.Context, *session) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	started := time.Now()
	cmd := exec.CommandContext(ctx, e.Program[0], e.Program[1:]...)
	cmd.Dir, cmd.Stderr = e.Dir, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Wait() }() // the server is stopped
	defer stop()
	s := &session{e: e, started: started, pid: cmd.Process.Pid, r: rand.New(rand.NewPCG(e.Seed, 35)), texts: map[string]*document.Text{}, versions: map[string]int{}, times: map[string]*Latency{}}
	s.messages = &arrivals{Channel: channel.LSP(out, in)}
	s.rpc = jrpc2.NewClient(s.messages, &jrpc2.ClientOptions{
		OnCallback: func(context.Context, *jrpc2.Request) (any, error) { return nil, nil },
	})
	defer s.rpc.Close()
	return use(ctx, s)
}

// formattingEarly is the name of the requests for formatting while the server indexes.
const formattingEarly = "formatting while indexing"

// The time between two requests for formatting while the server indexes: in the start whose time for the
// index counts, and in the further ones.
const (
	apart      = 20 * time.Millisecond
	oftenApart = 5 * time.Millisecond
)

// formatWhileIndexing opens the workspace, and formats a long document again and again, with a pause
// between the requests, until the server has answered a question about the whole workspace.
func (s *session) formatWhileIndexing(ctx context.Context, f *EditorFigures, pause time.Duration) error {
	folder := map[string]any{"uri": document.URI(s.e.Dir), "name": filepath.Base(s.e.Dir)}
	if err := s.call(ctx, "initialize", map[string]any{
		"processId": os.Getpid(), "rootUri": document.URI(s.e.Dir), "workspaceFolders": []any{folder},
		"capabilities": map[string]any{
			"textDocument": map[string]any{"diagnostic": map[string]any{}},
			"workspace":    map[string]any{"didChangeWatchedFiles": map[string]any{"dynamicRegistration": true}, "workspaceFolders": true},
		},
	}); err != nil {
		return err
	}
	if err := s.rpc.Notify(ctx, "initialized", map[string]any{}); err != nil {
		return err
	}
	for _, name := range s.e.Files {
		text, err := os.ReadFile(filepath.Join(s.e.Dir, name))
		if err != nil {
			return err
		}
		if err := s.open(ctx, name, text); err != nil {
			return err
		}
	}
	if err := s.call(ctx, "textDocument/documentSymbol", s.document(s.e.Files[0])); err != nil {
		return err
	}
	f.First = time.Since(s.started)
	indexed := make(chan struct{})
	go func() { // ends with ctx
		s.timed(ctx, "index", "workspace/symbol", map[string]any{"query": "no such name anywhere"})
		f.Indexed = time.Since(s.started)
		close(indexed)
	}()
	if err := s.open(ctx, long, longText()); err != nil {
		return err
	}
	s.formatUntil(ctx, indexed, formattingEarly, pause)
	return nil
}

// formatUntil changes and formats the long document, at least once, with a pause after each answer, until ended is
// closed.
func (s *session) formatUntil(ctx context.Context, ended <-chan struct{}, name string, pause time.Duration) {
	for {
		s.formatLong(ctx, name)
		select {
		case <-ended:
			return
		case <-time.After(pause):
		}
	}
}

// formatLong changes a line of the long document and formats the document.
func (s *session) formatLong(ctx context.Context, name string) {
	at := s.texts[long].LineStart(s.r.IntN(longDocument))
	s.replace(ctx, long, at, at, " ")
	s.timed(ctx, name, "textDocument/formatting", s.formatting(long))
}

// formatWhileBusy formats the long document while the server answers requests about all open documents after
// a change of one of them, which is saved after every tenth change, and while it compares a file with the last
// commit.
func (s *session) formatWhileBusy(ctx context.Context, n int) error {
	during := func(name string, do func(ctx context.Context)) {
		ended := make(chan struct{})
		go func() { // ends with ctx
			defer close(ended)
			do(ctx)
		}()
		s.formatUntil(ctx, ended, name, oftenApart)
	}
	for i := range n {
		name := s.e.Files[i%len(s.e.Files)]
		if i/len(s.e.Files)%2 == 0 {
			s.replace(ctx, name, 0, 0, "# changed\n")
		} else {
			s.replace(ctx, name, 0, len("# changed\n"), "")
		}
		if i%10 == 0 {
			if err := s.rpc.Notify(ctx, "textDocument/didSave", s.document(name)); err != nil {
				return err
			}
		}
		during("formatting after an edit of another document", func(ctx context.Context) {
			for _, other := range s.e.Files {
				_ = s.call(ctx, "textDocument/diagnostic", s.document(other)) // only the time of formatting counts
			}
		})
	}
	during("formatting during the command affected", func(ctx context.Context) {
		s.timed(ctx, "affected", "workspace/executeCommand", map[string]any{"command": "terrace.affected", "arguments": []string{document.URI(filepath.Join(s.e.Dir, s.e.Files[0]))}})
	})
	return ctx.Err()
}

func (s *session) measure(ctx context.Context) (*EditorFigures, error) {
	f := &EditorFigures{}
	ended, most := make(chan struct{}), make(chan int64, 1)
	go func() { most <- watchMemory(s.pid, ended) }() // ends with ended
	defer func() {
		close(ended)
		f.Most = <-most
	}()
	if err := s.formatWhileIndexing(ctx, f, apart); err != nil {
		return nil, err
	}
	for from, i := time.Now(), 0; i < 1000 && time.Since(from) < formattingTime; i++ {
		s.formatLong(ctx, "formatting")
	}
	if err := s.formatWhileBusy(ctx, 2*len(s.e.Files)); err != nil {
		return nil, err
	}
	if err := s.rpc.Notify(ctx, "textDocument/didClose", map[string]any{"textDocument": s.identifier(long)}); err != nil {
		return nil, err
	}
	f.Idle = s.idle(ctx)
	f.MemoryIndexed = memoryOf(s.pid)
	kept := s.times
	s.times = map[string]*Latency{}
	s.edit(ctx, 200)
	s.times = kept
	s.idle(ctx)
	f.MemoryBefore = memoryOf(s.pid)
	s.edit(ctx, s.e.Edits)
	s.idle(ctx)
	f.MemoryAfter = memoryOf(s.pid)
	for _, l := range s.times {
		slices.Sort(l.Times)
		f.Requests = append(f.Requests, *l)
	}
	slices.SortFunc(f.Requests, func(a, b Latency) int { return strings.Compare(a.Request, b.Request) })
	return f, ctx.Err()
}

// longText returns a document whose lines need formatting.
func longText() []byte {
	var b strings.Builder
	for i := range longDocument / 5 {
		fmt.Fprintf(&b, "resource \"aws_instance\" \"i%d\" {\n  ami = var.ami\n    instance_type=\"t3\"\n  tags = { Name = \"x\" }\n}\n", i)
	}
	return []byte(b.String())
}

func (s *session) identifier(name string) map[string]any {
	return map[string]any{"uri": document.URI(filepath.Join(s.e.Dir, name))}
}

func (s *session) document(name string) map[string]any {
	return map[string]any{"textDocument": s.identifier(name)}
}

// formatting returns the parameters of a request for formatting.
func (s *session) formatting(name string) map[string]any {
	p := s.document(name)
	p["options"] = map[string]any{"tabSize": 2, "insertSpaces": true}
	return p
}

func (s *session) at(name string, offset int) map[string]any {
	p := s.document(name)
	p["position"] = s.texts[name].Position(offset, document.UTF16)
	return p
}

func (s *session) open(ctx context.Context, name string, text []byte) error {
	s.texts[name], s.versions[name] = document.New(text), 1
	language := "terraform"
	if strings.HasSuffix(name, ".hcl") {
		language = "hcl"
	}
	return s.rpc.Notify(ctx, "textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": document.URI(filepath.Join(s.e.Dir, name)), "languageId": language, "version": 1, "text": string(text),
	}})
}

// call makes a request and ignores the answer.
func (s *session) call(ctx context.Context, method string, params any) error {
	ctx, cancel := context.WithTimeout(ctx, editorTimeout)
	defer cancel()
	_, err := s.rpc.Call(ctx, method, params)
	return err
}

// timed makes a request and keeps its time under a name.
func (s *session) timed(ctx context.Context, name, method string, params any) {
	from := time.Now()
	err := s.call(ctx, method, params)
	took := time.Since(from)
	if at := s.messages.last.Load(); at != nil && at.After(from) {
		took = at.Sub(from)
	}
	s.keep(name, took, err)
}

func (s *session) keep(name string, d time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.times[name]
	if l == nil {
		l = &Latency{Request: name}
		s.times[name] = l
	}
	if err != nil {
		l.Failed++
		return
	}
	l.Times = append(l.Times, d)
}

// idle waits until the process was idle for a second, and returns the time since its start without this
// second.
func (s *session) idle(ctx context.Context) time.Duration {
	last, since := processorTime(s.pid), time.Now()
	for ctx.Err() == nil && time.Since(since) < time.Second {
		time.Sleep(50 * time.Millisecond)
		if now := processorTime(s.pid); now-last > 10*time.Millisecond {
			last, since = now, time.Now()
		}
	}
	return since.Sub(s.started)
}

// replace changes the bytes from start to end of a document.
func (s *session) replace(ctx context.Context, name string, start, end int, text string) {
	t := s.texts[name]
	change := protocol.TextDocumentContentChange{Text: text}
	at := t.Range(start, end, document.UTF16)
	change.Range = &at
	s.texts[name] = t.Apply([]protocol.TextDocumentContentChange{change}, document.UTF16)
	s.versions[name]++
	id := s.identifier(name)
	id["version"] = s.versions[name]
	_ = s.rpc.Notify(ctx, "textDocument/didChange", map[string]any{"textDocument": id, "contentChanges": []any{map[string]any{"range": at, "text": text}}}) // the next request fails too
}

var word = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]+`) })

// edit makes n random edits. After each, it requests the diagnostics of the document and of all open
// documents, hover and completion. Each document has at most three changes, which the next edit undoes.
func (s *session) edit(ctx context.Context, n int) {
	original := map[string]*document.Text{}
	changes := map[string]int{}
	for _, name := range s.e.Files {
		original[name] = s.texts[name]
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		name := s.e.Files[s.r.IntN(len(s.e.Files))]
		t := s.texts[name]
		at := 0
		if changes[name] == 3 || changes[name] > 0 && s.r.IntN(2) == 0 {
			s.replace(ctx, name, 0, len(t.Bytes), string(original[name].Bytes))
			changes[name] = 0
			at = s.r.IntN(len(original[name].Bytes) + 1)
		} else {
			at = s.r.IntN(len(t.Bytes) + 1)
			end := min(at+s.r.IntN(8)*s.r.IntN(2), len(t.Bytes))
			insert := []string{"x", "a", "\n", ".", "locals {\n  added = 1\n}\n", "\"", " "}[s.r.IntN(7)]
			s.replace(ctx, name, at, end, insert)
			changes[name]++
			at = min(at+len(insert), len(s.texts[name].Bytes))
		}
		from := time.Now()
		s.timed(ctx, "diagnostics of the file", "textDocument/diagnostic", s.document(name))
		s.timed(ctx, "completion", "textDocument/completion", s.at(name, at))
		words := word().FindAllIndex(s.texts[name].Bytes, -1)
		if len(words) > 0 {
			s.timed(ctx, "hover", "textDocument/hover", s.at(name, words[s.r.IntN(len(words))][0]))
		}
		if i%10 == 0 {
			for _, other := range s.e.Files {
				_ = s.call(ctx, "textDocument/diagnostic", s.document(other)) // the time is that of all
			}
			s.keep("diagnostics of all open files", time.Since(from), nil)
		}
	}
	for _, name := range s.e.Files {
		s.replace(ctx, name, 0, len(s.texts[name].Bytes), string(original[name].Bytes))
		s.timed(ctx, "save", "textDocument/formatting", s.formatting(name))
		_ = s.rpc.Notify(ctx, "textDocument/didSave", s.document(name)) // the next request fails too
	}
}
