package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli"
	"golang.org/x/tools/txtar"
)

// A provocation is a small program that makes Terrace print a message with a certain code.
type provocation struct {
	code  string
	lines []string // commands; empty means "validate"
	files []txtar.File
}

// provocations reads testdata/codes. "=== CODE" begins a program. "$ COMMAND" runs in its
// directory, and "NAME=VALUE" sets an environment variable. The following text up to the first
// "-- FILE --" is main.tf. The file stdin is the input of commands. Programs with the source
// terrace/test have the test provider. In addition to the commands of the program there are:
//
//	rm FILE..., mv FROM TO, cp FROM TO
//	on WORD COMMAND  runs COMMAND once, when a later command prints WORD; COMMAND is
//	                 one of these, or interrupt, which sends a signal
//
// "$DIR" in commands and files is the directory. If there is a file server, "$SERVER" is the
// address of an HTTP server. The lines of that file are "METHOD PATH STATUS BODY". The server
// sends the first response whose method and path match (* matches any), and 404 otherwise.
func provocations(t *testing.T) []provocation {
	names, err := filepath.Glob("testdata/codes/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []provocation
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range strings.Split("\n"+string(text), "\n=== ") {
			if i == 0 {
				continue // description of the file
			}
			code, rest, _ := strings.Cut(part, "\n")
			p := provocation{code: strings.TrimSpace(code)}
			for strings.HasPrefix(rest, "$ ") {
				line, after, _ := strings.Cut(rest, "\n")
				p.lines, rest = append(p.lines, line[2:]), after
			}
			a := txtar.Parse([]byte(rest + "\n"))
			if main := strings.TrimSpace(string(a.Comment)); main != "" {
				p.files = append(p.files, txtar.File{Name: "main.tf", Data: a.Comment})
			}
			p.files = append(p.files, a.Files...)
			if p.lines == nil {
				p.lines = []string{"validate"}
			}
			out = append(out, p)
		}
	}
	return out
}

var codeLine = regexp.MustCompile(`(?m)^Code: (\S+)$`)

// A stage is the directory in which a program runs, with its output.
type stage struct {
	t       *testing.T
	dir     string
	expand  *strings.Replacer
	signals chan os.Signal

	mu      sync.Mutex // guards the fields below, which commands and their children write
	out     bytes.Buffer
	seen    int // number of bytes of out that were searched
	waiting [][]string
}

// Write stores output, and runs the commands of "on" whose word was printed.
func (s *stage) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.out.Write(b)
	for len(s.waiting) > 0 {
		at := bytes.Index(s.out.Bytes()[s.seen:], []byte(s.waiting[0][0]))
		if at < 0 {
			break
		}
		s.seen += at + 1
		do := s.waiting[0][1:]
		s.waiting = s.waiting[1:]
		if !s.does(do) {
			s.t.Errorf("there is no command %v", do)
		}
	}
	return n, err
}

// does runs a command that is not one of the program's.
func (s *stage) does(words []string) bool {
	if len(words) == 0 {
		return false
	}
	path := func(i int) string {
		if filepath.IsAbs(words[i]) {
			return words[i]
		}
		return filepath.Join(s.dir, words[i])
	}
	var err error
	switch name := words[0]; {
	case name == "interrupt":
		s.signals <- os.Interrupt
	case name == "rm":
		for i := range words[1:] {
			err = errors.Join(err, os.RemoveAll(path(i+1)))
		}
	case name == "mv" && len(words) == 3:
		err = os.Rename(path(1), path(2))
	case name == "cp" && len(words) == 3:
		var b []byte
		if b, err = os.ReadFile(path(1)); err == nil {
			err = os.WriteFile(path(2), b, 0o755)
		}
	default:
		return false
	}
	if err != nil {
		s.t.Error(err)
	}
	return true
}

// serve starts the server that a file describes.
func serve(t *testing.T, text string) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for line := range strings.Lines(text) {
			f := strings.SplitN(strings.TrimSpace(line), " ", 4)
			if len(f) < 3 {
				continue
			}
			method, _ := path.Match(f[0], r.Method)
			if fits, _ := path.Match(f[1], r.URL.Path); !fits || !method {
				continue
			}
			status, err := strconv.Atoi(f[2])
			if err != nil {
				t.Errorf("server: %v", err)
			}
			w.WriteHeader(status)
			if len(f) == 4 {
				_, _ = io.WriteString(w, f[3])
			}
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// run runs the program in a new directory and returns its output.
func (p *provocation) run(t *testing.T) string { return p.runIn(t, t.TempDir()) }

func (p *provocation) runIn(t *testing.T, dir string) string {
	s := &stage{t: t, dir: dir, signals: make(chan os.Signal, 2)}
	server := ""
	for _, f := range p.files {
		if f.Name == "server" {
			server = serve(t, string(f.Data))
		}
	}
	s.expand = strings.NewReplacer("$DIR", filepath.ToSlash(dir), "$SERVER", server)
	for _, f := range p.files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(s.expand.Replace(string(f.Data))), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	settings := filepath.Join(dir, "settings.rc")
	if _, err := os.Stat(settings); err != nil {
		text := "show_codes = true\n"
		if main, _ := os.ReadFile(filepath.Join(dir, "main.tf")); bytes.Contains(main, []byte("terrace/test")) {
			text += fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"terrace/test\" = %q\n  }\n}\n", filepath.Dir(testProvider(t)))
		}
		if err := os.WriteFile(settings, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stdin, _ := os.ReadFile(filepath.Join(dir, "stdin"))
	for _, line := range p.lines {
		words := strings.Fields(s.expand.Replace(line))
		env := sys.Env{"HOME=" + dir, "TF_CLI_CONFIG_FILE=" + settings, "PATH=" + os.Getenv("PATH")}
		for len(words) > 0 && strings.Contains(words[0], "=") && !strings.HasPrefix(words[0], "-") {
			env, words = append(env, words[0]), words[1:]
		}
		if len(words) > 2 && words[0] == "on" {
			s.waiting = append(s.waiting, words[1:])
			continue
		}
		if s.does(words) {
			continue
		}
		executable := os.Executable
		if _, err := os.Stat(filepath.Join(dir, "terrace-worker")); err == nil {
			executable = func() (string, error) { return filepath.Join(dir, "terrace"), nil }
		}
		system := &sys.System{
			Dir: dir, Env: env, Args: append([]string{"terrace"}, words...),
			Stdin: bytes.NewReader(stdin), Stdout: s, Stderr: s, Now: time.Now, Run: sys.Run,
			Terminal:   sys.Terminal{Width: func() int { return 0 }, Height: func() int { return 0 }},
			Interrupts: func() (<-chan os.Signal, func()) { return s.signals, func() {} },
			Executable: executable, Host: func() string { return "host" }, User: func() string { return "user" },
		}
		fmt.Fprintf(s, "$ %s\n", line)
		fmt.Fprintf(s, "status %d\n", cli.Main(context.Background(), system))
		for _, left := range s.waiting {
			t.Errorf("nothing printed %q", left[0])
		}
	}
	return s.out.String()
}

func testProvider(t *testing.T) string {
	bin, err := exec.LookPath("terraform-provider-test")
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// shownCode matches a line of a script that expects a message with a code.
var shownCode = regexp.MustCompile(`(?m)^std(?:out|err) '(?:\^?Code: |"code": ?")([a-z]+/[a-z-]+)["$]?'$`)

// inScripts returns the codes that scripts provoke. The tests that run the scripts check that
// they do.
func inScripts(t *testing.T) map[string]bool {
	out := map[string]bool{}
	for _, dir := range []string{"script", "backend", "cloud"} {
		names, err := filepath.Glob("testdata/" + dir + "/*.txtar")
		if err != nil {
			t.Fatal(err)
		}
		inScript(t, names, out)
	}
	return out
}

func inScript(t *testing.T, names []string, out map[string]bool) {
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shownCode.FindAllSubmatch(a.Comment, -1) {
			out[string(m[1])] = true
		}
	}
}

// TestCodesProvoked runs the programs of testdata/codes. It checks that every code in the
// table has a program, a call or a script that provokes it.
func TestCodesProvoked(t *testing.T) {
	t.Parallel()
	provoked := map[string]bool{}
	for _, p := range provocations(t) {
		provoked[p.code] = true
		t.Run(p.code, func(t *testing.T) {
			t.Parallel()
			out := p.run(t)
			var got []string
			for _, m := range codeLine.FindAllStringSubmatch(out, -1) {
				got = append(got, m[1])
			}
			if !slices.Contains(got, p.code) {
				t.Errorf("%s was not provoked, but %v:\n%s", p.code, got, out)
			}
		})
	}
	for code, call := range calls {
		if provoked[code] {
			t.Errorf("%s has a program in testdata/codes and needs no call", code)
		}
		provoked[code] = true
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			ds := call(t)
			if !slices.ContainsFunc(ds, func(m *diag.Message) bool { return m.CodeName() == code }) {
				t.Errorf("%s was not provoked, but %v", code, ds.Err())
			}
		})
	}
	for code := range inScripts(t) {
		provoked[code] = true
	}
	for _, c := range diag.Codes() {
		if !provoked[c.Name] {
			t.Errorf("no program provokes %s: write one in testdata/codes, or take the code and what gives it away", c.Name)
		}
	}
	for code := range provoked {
		if _, ok := diag.FindCode(code); !ok {
			t.Errorf("testdata/codes provokes %s, which is no code", code)
		}
	}
	t.Logf("%d codes", len(diag.Codes()))
}

// TestMessagesPage compares docs/messages.md with the table of codes. -update writes the page.
func TestMessagesPage(t *testing.T) {
	t.Parallel()
	const page = "../../docs/messages.md"
	var b strings.Builder
	b.WriteString(messagesHead)
	area := ""
	for _, c := range diag.Codes() {
		if a, _, _ := strings.Cut(c.Name, "/"); a != area {
			area = a
			fmt.Fprintf(&b, "\n## %s\n", area)
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n", c.Name, c.Text)
		if len(c.Summaries) > 0 {
			fmt.Fprintf(&b, "\nMessages: %s.\n", "“"+strings.ReplaceAll(strings.Join(c.Summaries, "”, “"), "*", "…")+"”")
		}
	}
	want := b.String()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("docs/messages.md is not what diag/codes.txt says (%v): run go test ./internal/cli -run TestMessagesPage -update", err)
	}
}

const messagesHead = `# Messages and their codes

Every error and warning has a code that stays what it is. It stands in the property ` + "`code`" + ` of the messages in ` + "`-json`" + ` output, where programs that know the peers' format do not look, and is shown to people with ` + "`show_codes = true`" + ` in the CLI configuration. ` + "`terrace explain -code CODE`" + ` prints what stands here; with ` + "`-json`" + ` as an object.

Warnings that you know are left out by code, in the CLI configuration (` + "`~/.tofurc`" + ` or the file in ` + "`TF_CLI_CONFIG_FILE`" + `):

` + "```hcl" + `
silence_warnings = ["cli/applied-with-targets", "plan/targeting"]
` + "```" + `

Errors cannot be silenced. A code that does not exist is reported with a warning.

This page is made from ` + "`diag/codes.txt`" + `.
`
