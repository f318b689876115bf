package lint

import (
	"go/ast"
	"go/token"
	"strings"
)

// effects are names with effects outside of the program, and the alternatives.
var effects = map[string]string{
	"os.Getwd":                      "take the directory as an argument",
	"os.Chdir":                      "take the directory as an argument",
	"path/filepath.Abs":             "it asks for the working directory; take it as an argument and join",
	"os.Getenv":                     "take a sys.Env or the value",
	"os.LookupEnv":                  "take a sys.Env or the value",
	"os.Environ":                    "take a sys.Env",
	"os.Setenv":                     "give child processes their environment explicitly",
	"os.Unsetenv":                   "give child processes their environment explicitly",
	"os.Clearenv":                   "give child processes their environment explicitly",
	"os.ExpandEnv":                  "take a sys.Env",
	"os.UserHomeDir":                "use sys.System.Home",
	"os.UserCacheDir":               "use sys.System.Home",
	"os.UserConfigDir":              "use sys.System.Home",
	"os.TempDir":                    "take the directory as an argument",
	"os.Hostname":                   "use sys.System.Host",
	"os.Executable":                 "use sys.System.Executable",
	"os.Args":                       "use sys.System.Args",
	"os.Exit":                       "return a status",
	"os.ReadFile":                   "use internal/base/readfile, which refuses devices and bounds what it reads",
	"os.Stdin":                      "take an io.Reader",
	"os.Stdout":                     "take an io.Writer",
	"os.Stderr":                     "take an io.Writer",
	"os.StartProcess":               "use sys.System.Run",
	"os/exec.Command":               "use sys.System.Run or sys.Command.Prepare",
	"os/exec.CommandContext":        "use sys.System.Run or sys.Command.Prepare",
	"os/exec.LookPath":              "use sys.LookPath",
	"os/signal.Notify":              "use sys.System.Interrupts",
	"os/signal.NotifyContext":       "use sys.System.Interrupts",
	"os/user.Current":               "use sys.System.User",
	"time.Now":                      "take a clock",
	"time.Since":                    "take a clock",
	"time.Until":                    "take a clock",
	"fmt.Print":                     "write to an io.Writer",
	"fmt.Printf":                    "write to an io.Writer",
	"fmt.Println":                   "write to an io.Writer",
	"net/http.Get":                  "take a client",
	"net/http.Post":                 "take a client",
	"net/http.PostForm":             "take a client",
	"net/http.Head":                 "take a client",
	"net/http.DefaultClient":        "take a client",
	"net/http.DefaultTransport":     "make a transport of your own",
	"net/http.ProxyFromEnvironment": "take the proxies from a sys.Env",
}

// owners are the packages that may have effects.
var owners = map[string]bool{
	"internal/base/sys":  true,
	"cmd/terrace":        true,
	"cmd/terrace-worker": true,
}

// apart are separate programs and test kits, which are not part of the program. Only the
// rules about comments apply to them.
var apart = map[string]bool{
	"internal/dev/bench":                                         true,
	"internal/dev/testkit":                                       true,
	"internal/provider/testprovider":                             true,
	"internal/provider/testprovider/cmd/terraform-provider-test": true,
	"internal/net/registry/registrytest":                         true,
	"internal/state/statetest":                                   true,
	"internal/estate/schedule/scheduletest":                      true,
	"internal/state/store/storetest":                             true,
	"internal/state/backend/backendtest":                         true,
	"internal/state/backend/backendtest/servers":                 true,
	"internal/dev/bench/cmd":                                     true,
	"internal/dev/lspgen":                                        true,
}

// excused are single uses of effects in other packages, with the reason.
var excused = map[string]string{
	"internal/base/filelock path/filepath.Abs":        "the table of locks of the process needs one name for a file",
	"internal/provider/install path/filepath.Abs":     "the target of a link must not depend on the directory of the link",
	"internal/lang/funcs path/filepath.Abs":           "only of what is absolute already, if the scope has a directory",
	"engine path/filepath.Abs":                        "embedders may name a directory relative to their own",
	"internal/base/readfile time.Now":                 "the deadline of a read is by the clock of the machine",
	"internal/base/readfile time.Since":               "how old a file is, the system and its file system say by one clock",
	"internal/dev/lint os.ReadFile":                   "the source of the module",
	"internal/base/sys os.ReadFile":                   "files of the kernel",
	"internal/net/transfer time.Now":                  "how long a server keeps us waiting is measured",
	"internal/net/transfer time.Since":                "the same",
	"engine time.Now":                                 "the clock of embedders that give none",
	"internal/provider/resourceclient time.Until":     "a provider says when to renew by the clock on the wall",
	"internal/net/transfer net/http.DefaultTransport": "a copy with its settings, not itself",
	"internal/net/transfer net/http.DefaultClient":    "for the zero Client",
}

// detached are the functions that do not use the context of the command, with the reason.
var detached = map[string]string{
	"internal/net/gcp metadata.Token":               "oauth2.TokenSource has no context; three seconds at most",
	"internal/provider/rpc end":                     "a plugin is ended although the command was interrupted",
	"internal/provider/manager Host.left":           "a provider is told to stop although the command was interrupted",
	"internal/net/otlp newQueue":                    "what is queued is sent after the command ended; close ends it",
	"internal/state/backend/pg end":                 "a connection is closed, and its lock released, although the command was interrupted; five seconds at most",
	"internal/state/backend/pg pool.foreign":        "the time for the request is over when the cause is looked for; two seconds at most, not after an interrupt",
	"internal/state/backend/etcdv3 etcdBackend.why": "the time for the request is over when the cause is looked for; not after an interrupt",
	"internal/temporal/worker lease.note":           "the last words of a turn reach the engine although the turn was interrupted; half the time of the lease at most",
	"internal/temporal/worker activities.serve":     "a session outlives the activity that opened it; closeAll ends it",
	"internal/estate/run Refuse":                    "nothing runs, and the results are complete although the command was interrupted",
	"internal/cli/interrupt Handler.Kill":           "what is left behind is removed after the interrupt; killPause at most",
	"internal/provider/provisioner dialFunc.Dial":   "the interface of x/net/proxy, which calls DialContext",
}

// spawners are the packages that may start goroutines.
var spawners = map[string]string{
	"internal/base/parallel":           "loops, worklists and queues",
	"demand":                           "fresh stacks for long chains",
	"internal/plan/apply":              "the action scheduler",
	"internal/base/sys":                "streams of child processes",
	"internal/provider/rpc":            "plugin processes and their streams",
	"internal/provider/builtin":        "output of provisioners",
	"internal/net/registry":            "the local server that the end of a login comes to",
	"internal/provider/provisioner":    "output and connections of provisioners",
	"internal/provider/resourceclient": "renewal of open ephemeral objects",
	"internal/state/journal":           "the writer that groups fsyncs",
	"internal/state/store/local":       "waiting for a lock",
	"internal/cli":                     "signals and prompts",
	"internal/state/backend/consul":    "renewal of the session that holds a lock",
	"internal/cli/interrupt":           "signals",
	"internal/lsp/workspace":           "one walk over the workspace in the background",
	"internal/lsp/front":               "the messages of both sides, and the answers of the front",
	"internal/cli/lsp":                 "the relay between the editor and the server, which is another process",
	"internal/lsp/server":              "requests of the editor, which run beside the computation of diagnostics",
	"internal/cli/prompt":              "waiting for an answer",
	"internal/cli/login":               "the browser of the user",
	"internal/cli/run":                 "the program that speaks with an engine",
	"internal/temporal/program":        "what comes from the other end of a pipe, and signals",
	"internal/net/otlp":                "the senders of telemetry, which Close waits for",
	"engine":                           "stops of providers while an apply runs",
}

// state contains the package-level variables that are neither tables nor sentinels, with
// the reason.
var state = map[string]string{
	"diag.codesText":                     "what is embedded has no value in the source and cannot be changed",
	"internal/cli/planhtml.files":        "what is embedded has no value in the source and cannot be changed",
	"internal/base/filelock.held":        "locks are per process, so one table of the process must know them",
	"unit.deepBlock":                     "a function that joins, put together from functions",
	"internal/state/store/local.process": "one table in the process must own every descriptor of a state file",
}

// makers are functions whose results are allowed at package level, because they are cheap
// and their results are immutable. A name ending with a dot covers a whole package.
var makers = map[string]bool{
	"errors.New":                     true,
	"sync.OnceValue":                 true,
	"sync.OnceValues":                true,
	"sync.OnceFunc":                  true,
	"strings.Repeat":                 true,
	"strings.NewReplacer":            true,
	"github.com/zclconf/go-cty/cty.": true,
}

// readers are the functions that read the text of messages, by package, with the reason:
// messages of other libraries and services can only be distinguished by their text.
var readers = map[string]string{
	"diag FromHCL":                            "HCL's messages about keys have neither a code nor a type",
	"internal/rules missing":                  "HCL's messages about values that do not exist have neither a code nor a type",
	"unit explainMissing":                     "HCL's messages about names have neither a code nor a type",
	"unit withoutReasons":                     "HCL's messages about names and keys have neither a code nor a type",
	"internal/provider/resourceclient Schema": "whether a provider's own words name it, which no code tells",
	"internal/state/backend/tfe wants":        "the service answers a state that is missing with a text alone",
}

// comment checks that every package has a comment.
func (c *checker) comment() {
	for _, f := range c.p.Files {
		if f.AST.Doc != nil && (strings.HasPrefix(f.AST.Doc.Text(), "Package "+f.AST.Name.Name+" ") || strings.HasPrefix(f.AST.Doc.Text(), "Command ")) {
			return
		}
	}
	c.f = c.p.Files[0]
	c.report(c.f.AST.Package, "package %s has no package comment", c.f.AST.Name.Name)
}

// effects checks that effects are passed in.
func (c *checker) effects() {
	if owners[c.p.Name] || apart[c.p.Name] {
		return
	}
	ast.Inspect(c.f.AST, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			if p := strings.Trim(n.Path.Value, `"`); p == "log" || p == "log/slog" {
				c.report(n.Pos(), "%s is imported: messages to the user are diag, the rest is not printed", p)
			}
			if n.Name != nil && n.Name.Name == "." {
				c.report(n.Pos(), "an import without a name hides what is used")
			}
		case *ast.SelectorExpr:
			name := c.f.qualified(n)
			instead, bad := effects[name]
			if bad && excused[c.p.Name+" "+name] == "" {
				c.report(n.Pos(), "%s outside of the package that owns it: %s", name, instead)
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
				c.report(n.Pos(), "%s writes to the error stream: write to an io.Writer", id.Name)
			}
		}
		return true
	})
}

// contexts checks that only main functions and those in detached create a context. All
// others use the caller's, so that an interrupt reaches the calls that they wait for.
func (c *checker) contexts() {
	if owners[c.p.Name] || apart[c.p.Name] {
		return
	}
	for _, d := range c.f.AST.Decls {
		where := "package level"
		if fn, ok := d.(*ast.FuncDecl); ok {
			where = named(fn)
		}
		ast.Inspect(d, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			name := c.f.qualified(s)
			if (name == "context.Background" || name == "context.TODO") && detached[c.p.Name+" "+where] == "" {
				c.report(s.Pos(), "%s in %s: take the context of the caller, so that an interrupt reaches what is waited for", name, where)
			}
			return true
		})
	}
}

// named returns the name of a function. For a method it begins with the type.
func named(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	if x, ok := t.(*ast.IndexExpr); ok {
		t = x.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// goroutines checks that only some packages start goroutines, and that a comment above or
// within each goroutine names its owner.
func (c *checker) goroutines() {
	if apart[c.p.Name] {
		return
	}
	commented := map[int]bool{}
	for _, g := range c.f.AST.Comments {
		for line := c.f.line(g.Pos()); line <= c.f.line(g.End()); line++ {
			commented[line] = true
		}
	}
	ast.Inspect(c.f.AST, func(n ast.Node) bool {
		g, ok := n.(*ast.GoStmt)
		if !ok {
			return true
		}
		if spawners[c.p.Name] == "" {
			c.report(g.Pos(), "a goroutine is started here: use par, demand or the scheduler of apply")
			return true
		}
		for line := c.f.line(g.Pos()) - 1; line <= c.f.line(g.End()); line++ {
			if commented[line] {
				return true
			}
		}
		c.report(g.Pos(), "a goroutine without a comment that says who waits for it")
		return true
	})
}

func (f *File) line(pos token.Pos) int { return f.fset.Position(pos).Line }

// unfinished checks that there are no comments about unfinished work.
func (c *checker) unfinished() {
	for _, g := range c.f.AST.Comments {
		for _, line := range g.List {
			for _, word := range []string{"TODO", "FIXME", "XXX", "HACK"} {
				if strings.Contains(line.Text, word) && !strings.Contains(line.Text, `"`+word+`"`) {
					c.report(line.Pos(), "%s: finish it or leave it out", word)
				}
			}
		}
	}
}

// docNames checks that the comment of a function, method or type begins with its name,
// possibly after an article.
func (c *checker) docNames() {
	check := func(doc *ast.CommentGroup, name *ast.Ident) {
		if doc == nil || name.Name == "_" {
			return
		}
		line, _, _ := strings.Cut(doc.Text(), "\n")
		words := strings.Fields(line)
		for _, w := range words[:min(4, len(words))] {
			w = strings.TrimSuffix(strings.TrimRight(w, ",:;"), "'s")
			if w == name.Name {
				return
			}
		}
		if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "https://") {
			c.report(name.Pos(), "the comment of %s does not begin with its name", name.Name)
		}
	}
	for _, d := range c.f.AST.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			check(d.Doc, d.Name)
		case *ast.GenDecl:
			if d.Tok == token.TYPE && len(d.Specs) == 1 {
				check(d.Doc, d.Specs[0].(*ast.TypeSpec).Name)
			}
		}
	}
}
