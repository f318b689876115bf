package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/cliconfig"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/terrace-iac/terrace/source"
)

// A session is one run of a command: the system, the views and what an
// interrupt has to reach.
type session struct {
	*sys.System        // its Dir is the one that -chdir names
	launch      string // the folder that the program was started in
	command     string
	input       *bufio.Reader // Stdin, once something was read
	set         *source.Set
	views       viewOptions
	unit        *unitSession // nil in a plain folder
	tolerant    bool         // what is wrong with the unit's inputs is no error
	backends    func() *backend.Set
	programs    func() sys.Env // the environment of provisioners' programs; nil: Env
	hashes      *install.Hashes

	human  *view.Human  // nil with -json
	stream *view.Stream // nil without -json and -json-into
	into   *os.File     // the file of -json-into

	ctx context.Context // ends at the first interrupt while nothing can be stopped more gently

	mu    sync.Mutex // of human, stream and reach, which interrupts look at
	reach reach
}

// viewOptions are the flags that every command understands.
type viewOptions struct {
	noColor, compactWarnings, concise      bool
	consolidateWarnings, consolidateErrors bool
	errorsAlone                            bool // of units, as --log-level says
	deprecation                            string
	heard                                  *heard // what was told; nil where nobody asks
}

func newSession(system *sys.System) *session {
	return &session{
		System: system, backends: sync.OnceValue(func() *backend.Set { return newBackends(system) }), launch: system.Dir, set: &source.Set{}, reach: reach{abort: make(chan struct{}), trees: &estate.Worktrees{}}, hashes: &install.Hashes{},
		views: viewOptions{consolidateWarnings: true, deprecation: "module:all"},
	}
}

// viewFlags takes the flags that every command understands out of the arguments.
func (s *session) viewFlags(args []string) ([]string, error) {
	var rest []string
	for i, a := range args {
		if a == "--" {
			return append(rest, args[i:]...), nil
		}
		name, value, has := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-"), "=")
		if !strings.HasPrefix(a, "-") {
			name = ""
		}
		var err error
		switch {
		case name == "no-color" && !has:
			s.views.noColor = true
		case name == "compact-warnings" && !has:
			s.views.compactWarnings = true
		case name == "concise" && !has:
			s.views.concise = true
		case name == "consolidate-warnings":
			s.views.consolidateWarnings, err = boolOf(name, value, has)
		case name == "consolidate-errors":
			s.views.consolidateErrors, err = boolOf(name, value, has)
		case name == "deprecation" && has:
			if value != "module:all" && value != "module:local" && value != "module:none" {
				err = fmt.Errorf("invalid value %q for flag -deprecation: it must be module:all, module:local or module:none", value)
			}
			s.views.deprecation = value
		default:
			rest = append(rest, a)
		}
		if err != nil {
			return nil, err
		}
	}
	return rest, nil
}

func boolOf(name, value string, has bool) (bool, error) {
	if !has {
		return true, nil
	}
	b, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("invalid boolean value %q for -%s", value, name)
	}
	return b, nil
}

// openViews makes the human view; useJSON replaces it.
func (s *session) openViews() {
	if off, err := strconv.ParseBool(s.Env.Get("TG_NO_COLOR")); err == nil && off {
		s.views.noColor = true
	}
	color := s.redraws() && !s.views.noColor && s.Env.Get("NO_COLOR") == ""
	width := 0
	if s.Terminal.Out {
		width = s.Terminal.Width()
	}
	human := &view.Human{
		Out: s.Stdout, Errs: s.Stderr, Style: view.Style{Color: color, Width: width}, Concise: s.views.concise, Joined: s.redraws() && s.Terminal.Err,
		Printer: &diag.Printer{
			Set: s.set, Color: color, Width: width, Program: view.Program, Difference: view.Difference(view.Style{Color: color}),
			CompactWarnings: s.views.compactWarnings, ConsolidateWarnings: s.views.consolidateWarnings, ConsolidateErrors: s.views.consolidateErrors,
		},
	}
	s.setViews(human, nil)
}

// redraws reports whether the output is a terminal that knows colors and a cursor.
func (s *session) redraws() bool { return s.Terminal.Out && s.Env.Get("TERM") != "dumb" }

// setViews changes the views, which the goroutine that waits for interrupts reads.
func (s *session) setViews(human *view.Human, stream *view.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.human, s.stream = human, stream
}

// useJSON turns on the stream, in place of the human view or into a file beside it.
func (s *session) useJSON(j jsonFlags) bool {
	if !j.on && j.into == "" {
		return true
	}
	out, human := s.Stdout, s.human
	if j.into != "" && !j.on {
		f, err := os.OpenFile(s.Path(j.into), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			s.tell(diag.Errorf(nil, "Invalid argument", "The file of -json-into cannot be opened: %s.", err))
			return false
		}
		s.into, out = f, io.Writer(f)
	} else {
		human = nil
	}
	s.setViews(human, &view.Stream{Out: out, Now: s.Now, Messages: view.JSONMessages(s.set), Version: config.LanguageVersion})
	s.stream.Start()
	if j.on && j.into != "" {
		s.tell(diag.Errorf(nil, "Invalid output format", "The -json and -json-into arguments are mutually exclusive"))
		return false
	}
	return true
}

// tell reports messages in every view.
func (s *session) tell(ds diag.List) {
	s.unit.note(ds)
	ds = s.filter(ds)
	s.human.Messages(ds)
	s.stream.Tell(ds)
}

// fail reports messages and returns the status of a failure.
func (s *session) fail(ds diag.List) int {
	s.tell(ds)
	return 1
}

// status reports messages and returns the status that they mean.
func (s *session) status(ds diag.List) int {
	s.tell(ds)
	if ds.HasErrors() {
		return 1
	}
	return 0
}

// deprecations are the warnings that -deprecation is about: of what the author
// of a module calls deprecated.
var deprecations = []string{"Variable marked as deprecated by the module author", "Value derived from a deprecated source", "Deprecated variable used from the root module"}

// filter leaves out warnings of deprecations as -deprecation says: all of them,
// or those in modules that were brought from elsewhere.
func (s *session) filter(ds diag.List) diag.List {
	ds = s.passed(ds)
	s.logged(ds)
	return ds
}

func (s *session) passed(ds diag.List) diag.List {
	ds = s.views.heard.fresh(ds)
	if s.views.errorsAlone {
		ds = ds.Errors()
	}
	if s.views.deprecation == "module:all" {
		return ds
	}
	fetched := filepath.ToSlash(filepath.Join(s.dataDir(), "modules")) + "/"
	var out diag.List
	for _, m := range ds {
		if m.Severity == diag.Warning && slices.Contains(deprecations, m.Summary) {
			if s.views.deprecation == "module:none" || m.At != nil && strings.HasPrefix(filepath.ToSlash(m.At.Filename), fetched) {
				continue
			}
		}
		out = append(out, m)
	}
	return out
}

// say writes text for people, and to the log of the stream.
func (s *session) say(text string) {
	s.human.Say(text)
	s.stream.Log(strings.TrimSpace(text))
}

// event takes events of the engine.
func (s *session) event(e event.Event) {
	s.human.Event(e)
	s.stream.Event(e)
}

// applying tells the views that a plan is carried out from now on.
func (s *session) applying() {
	s.human.Applying()
	s.stream.Applying()
}

// usageError reports a mistake on the command line.
func (s *session) usageError(command, summary, detail string) int {
	if s.human == nil && s.stream == nil {
		s.openViews()
	}
	s.tell(diag.Errorf(nil, summary, "%s", detail))
	if s.human != nil {
		fmt.Fprintf(s.Stderr, "\nFor more help on using this command, run:\n  %s %s -help\n", view.Program, command)
	}
	return 1
}

// dataDir is the folder of the program's own files, relative to Dir or absolute.
func (s *session) dataDir() string { return cmp.Or(s.Env.Get("TF_DATA_DIR"), ".terraform") }

// dataPath is the path of a file in the data folder.
func (s *session) dataPath(names ...string) string {
	return filepath.Join(append([]string{s.Path(s.dataDir())}, names...)...)
}

// settings reads the user's CLI configuration.
func (s *session) settings() (*cliconfig.Config, diag.List) {
	return cliconfig.Load(s.Env, s.Home(), s.launch)
}

// mayAsk reports whether questions may be asked.
func (s *session) mayAsk(input bool) bool {
	if s.human == nil {
		return false
	}
	if v, ok := s.Env.Lookup("TF_INPUT"); ok && (v == "0" || strings.EqualFold(v, "false")) {
		return false
	}
	return input
}

// automated reports whether hints about commands to type are left out.
func (s *session) automated() bool { return s.Env.Get("TF_IN_AUTOMATION") != "" }

// finish closes the file of -json-into.
func (s *session) finish() {
	if s.into != nil {
		_ = s.into.Close()
	}
}

func isDir(path string) error {
	info, err := os.Stat(path)
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return errno
	case err != nil:
		return err
	case !info.IsDir():
		return syscall.ENOTDIR
	}
	return nil
}
