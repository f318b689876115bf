// Package report is how a command reports: to people, and as a stream of JSON
// events to programs.
//
// Main type: Reporter. It has at most two views, Human and Stream, and hands
// messages, text and events to both; a nil view says nothing. The one rule: what
// another program reads from Stdout is written by the command itself, and what is
// reported beside it goes by AboveStatus to Stderr.
package report

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/source"
)

// A Reporter reports one run of a command. New makes one.
type Reporter struct {
	Options Options
	Human   *view.Human  // nil with -json
	Stream  *view.Stream // nil without -json and -json-into
	Set     *source.Set  // the files that messages are about

	// Dir is the folder that names of files count from, and Out what other programs read.
	Dir string
	Out io.Writer
	// Unit is the unit of several that the command works on, which -json names on every
	// line; "" for none.
	Unit string
	// Note is called with all messages, before they are filtered. It may be nil.
	Note func(diag.List)

	// Reported remembers what was reported; nil where nobody asks.
	Reported *Reported

	// Redactor takes out of messages what they must not show: each passes it.
	Redactor *diag.Redactor

	// Context carries the telemetry that messages are logged to.
	Context context.Context

	System *sys.System // whose terminal and environment count

	silent atomic.Bool // nothing is reported any more

	into *os.File   // the file of -json-into
	mu   sync.Mutex // of Human and Stream, which interrupts look at
}

// Options are what the flags say that every command understands.
type Options struct {
	NoColor, CompactWarnings, Concise      bool
	ConsolidateWarnings, ConsolidateErrors bool
	ErrorsAlone                            bool     // of units, as --log-level says
	Deprecation                            string   // module:all, module:local or module:none
	ShowCodes                              bool     // messages for people end with their code
	Silenced                               []string // codes of warnings that are left out
}

// Defaults are the options without flags.
func Defaults() Options {
	return Options{ConsolidateWarnings: true, Deprecation: "module:all"}
}

// New makes a reporter without views.
func New(ctx context.Context, system *sys.System) *Reporter {
	return &Reporter{System: system, Dir: system.Dir, Out: system.Stdout, Set: &source.Set{}, Options: Defaults(), Context: ctx, Redactor: &diag.Redactor{}}
}

// Open makes the view for people; UseJSON replaces it.
func (r *Reporter) Open() {
	if off, err := strconv.ParseBool(r.System.Env.Get("TG_NO_COLOR")); err == nil && off {
		r.Options.NoColor = true
	}
	color := (r.Redraws() || forced(r.System.Env)) && !r.Options.NoColor && r.System.Env.Get("NO_COLOR") == ""
	width := 0
	if r.System.Terminal.Out {
		width = r.System.Terminal.Width()
	}
	human := &view.Human{
		Out: r.Out, Errs: r.System.Stderr, Style: view.Style{Color: color, Width: width}, Concise: r.Options.Concise, Joined: r.Redraws() && r.System.Terminal.Err,
		Printer: &diag.Printer{
			Set: r.Set, Color: color, Width: width, Program: view.Program, Codes: r.Options.ShowCodes, Difference: view.Difference(view.Style{Color: color}),
			CompactWarnings: r.Options.CompactWarnings, ConsolidateWarnings: r.Options.ConsolidateWarnings, ConsolidateErrors: r.Options.ConsolidateErrors,
		},
	}
	r.setViews(human, nil)
}

// forced reports whether colors are asked for though the output is no terminal, as logs of
// CI systems show them.
func forced(env sys.Env) bool {
	for _, name := range [...]string{"FORCE_COLOR", "CLICOLOR_FORCE"} {
		if v := env.Get(name); v != "" && v != "0" && v != "false" {
			return true
		}
	}
	return false
}

// Redraws reports whether the output is a terminal that knows colors and a cursor.
func (r *Reporter) Redraws() bool {
	return r.System.Terminal.Out && r.System.Env.Get("TERM") != "dumb"
}

// setViews changes the views, which the goroutine that waits for interrupts reads.
func (r *Reporter) setViews(human *view.Human, stream *view.Stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Human, r.Stream = human, stream
}

// UseJSON turns on the stream: in place of the view for people, or with into in a
// file beside it. ok is false after a mistake, which is reported. The caller calls
// Finish at the end.
func (r *Reporter) UseJSON(on bool, into string) (ok bool) {
	if !on && into == "" {
		return true
	}
	out, human, unit := r.Out, r.Human, r.Unit
	if into != "" && !on {
		f, err := os.OpenFile(sys.Join(r.Dir, into), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			r.Tell(diag.Errorf(diag.CodeCLIFlags, nil, "Invalid argument", "The file of -json-into cannot be opened: %s.", err))
			return false
		}
		r.into, out, unit = f, noted{f, r.System.Lost}, ""
	} else {
		human = nil
	}
	r.setViews(human, &view.Stream{Out: out, Now: r.System.Now, Messages: view.JSONMessages(r.Set), Version: config.LanguageVersion, Unit: unit})
	r.Stream.Start()
	if on && into != "" {
		r.Tell(diag.Errorf(diag.CodeCLIFlags, nil, "Invalid output format", "The -json and -json-into arguments are mutually exclusive"))
		return false
	}
	return true
}

// Finish closes the file of -json-into.
func (r *Reporter) Finish() {
	if r.into != nil {
		r.System.Lost.Note(jsonInto, r.into.Close())
	}
}

// jsonInto is what a message calls the file of -json-into.
const jsonInto = "The file of -json-into"

// noted writes to the file of -json-into, and notes errors.
type noted struct {
	f    *os.File
	lost *sys.Lost
}

func (w noted) Write(b []byte) (int, error) {
	n, err := w.f.Write(b)
	w.lost.Note(jsonInto, err)
	return n, err
}

// Tell reports messages in every view.
func (r *Reporter) Tell(ds diag.List) {
	if r.Note != nil {
		r.Note(ds)
	}
	ds = r.Filter(ds)
	r.Human.Messages(ds)
	r.Stream.Tell(ds)
}

// TellAbout is Tell with more fields for the lines of the stream, which say what the
// messages are about.
func (r *Reporter) TellAbout(ds diag.List, about map[string]any) {
	if r.Note != nil {
		r.Note(ds)
	}
	ds = r.Filter(ds)
	r.Human.Messages(ds)
	r.Stream.TellAbout(ds, about)
}

// Fail reports messages and returns the status of a failure.
func (r *Reporter) Fail(ds diag.List) int {
	r.Tell(ds)
	return 1
}

// Status reports messages and returns the status that they mean.
func (r *Reporter) Status(ds diag.List) int {
	r.Tell(ds)
	if ds.HasErrors() {
		return 1
	}
	return 0
}

// UsageError reports a mistake on the command line and returns the status of it.
func (r *Reporter) UsageError(command, summary, detail string) int {
	if r.Human == nil && r.Stream == nil {
		r.Open()
	}
	r.Tell(diag.Errorf(diag.CodeCLIFlags, nil, summary, "%s", detail))
	if r.Human != nil {
		fmt.Fprintf(r.System.Stderr, "\nFor more help on using this command, run:\n  %s %s -help\n", view.Program, command)
	}
	return 1
}

// deprecations are the codes of the warnings that -deprecation is about: of what the author
// of a module calls deprecated.
var deprecations = []string{diag.CodeEvalDeprecatedSource, diag.CodeEvalDeprecatedVariable}

// Filter leaves out warnings as the options say: those of deprecations, all of
// them or those in modules that were brought from elsewhere, and those that the
// user silenced by code. What is left is logged.
func (r *Reporter) Filter(ds diag.List) diag.List {
	ds = r.passed(ds)
	if telemetry.On(r.Context) {
		for _, m := range ds {
			level := "warn"
			if m.Severity == diag.Error {
				level = "error"
			}
			telemetry.Log(r.Context, level, strings.TrimSpace(m.Summary+"\n\n"+m.Detail), "")
		}
	}
	return ds
}

func (r *Reporter) passed(ds diag.List) diag.List {
	if r.silent.Load() {
		return nil
	}
	ds = r.Reported.Fresh(r.Redactor.List(ds))
	if r.Options.ErrorsAlone {
		ds = ds.Errors()
	}
	if r.Options.Deprecation == "module:all" && len(r.Options.Silenced) == 0 {
		return ds
	}
	fetched := filepath.ToSlash(filepath.Join(cmp.Or(r.System.Env.Get("TF_DATA_DIR"), ".terraform"), "modules")) + "/"
	return slices.DeleteFunc(slices.Clone(ds), func(m *diag.Message) bool {
		switch {
		case m.Severity != diag.Warning:
			return false
		case slices.Contains(r.Options.Silenced, m.CodeName()):
			return true
		case r.Options.Deprecation == "module:all" || !slices.Contains(deprecations, m.CodeName()):
			return false
		}
		return r.Options.Deprecation == "module:none" || m.At != nil && strings.HasPrefix(filepath.ToSlash(m.At.Filename), fetched)
	})
}

// Say writes text for people, and to the log of the stream.
func (r *Reporter) Say(text string) {
	text = r.Redactor.Text(text)
	r.Human.Say(text)
	r.Stream.Log(strings.TrimSpace(text))
}

// Announce is Say for the goroutine that waits for interrupts, which may see
// views come and go. What is announced is done, if do is not nil, after people are
// reported and before programs are started, which may count on it.
func (r *Reporter) Announce(text string, do func()) {
	r.mu.Lock()
	human, stream := r.Human, r.Stream
	r.mu.Unlock()
	human.Say(text)
	if do != nil {
		do()
	}
	stream.Log(strings.TrimSpace(text))
}

// Silence drops all messages from now on: those of a command that was ended are about
// what the end did to it.
func (r *Reporter) Silence() { r.silent.Store(true) }

// Event takes events of the engine.
func (r *Reporter) Event(e event.Event) {
	r.Human.Event(e)
	r.Stream.Event(e)
}

// Applying tells the views that a plan is carried out from now on.
func (r *Reporter) Applying() {
	r.Human.Applying()
	r.Stream.Applying()
}

// Printer prints messages about the files of a set.
func (r *Reporter) Printer(set *source.Set) *diag.Printer {
	p := r.Human.Printer
	return &diag.Printer{
		Set: set, Color: p.Color, Width: p.Width, Program: p.Program, Codes: p.Codes,
		CompactWarnings: p.CompactWarnings, ConsolidateWarnings: p.ConsolidateWarnings, ConsolidateErrors: p.ConsolidateErrors,
	}
}

// AboveStatus tells warnings of a command whose Stdout others read.
func (r *Reporter) AboveStatus(ds diag.List) {
	if len(ds) > 0 {
		_ = r.Printer(nil).Print(r.System.Stderr, r.Filter(ds))
	}
}

// AsideHere is AboveStatus about the files of this reporter.
func (r *Reporter) AsideHere(ds diag.List) {
	if len(ds) > 0 {
		_ = r.Human.Printer.Print(r.System.Stderr, r.Filter(ds))
	}
}

// WarnBeside tells warnings where they do not stand among what a program reads.
func (r *Reporter) WarnBeside(ds diag.List) {
	if r.Human == nil {
		r.Tell(ds)
		return
	}
	r.AboveStatus(ds)
}

// TellFrom tells messages about the files of another set.
func (r *Reporter) TellFrom(set *source.Set, ds diag.List) {
	if r.Human != nil {
		r.Human.With(r.Printer(set), r.Filter(ds))
	}
	if r.Stream != nil {
		r.Stream.For("", set).Tell(r.Filter(ds))
	}
}

// Wait says what a run waits for, beside what it prints.
func (r *Reporter) Wait(text string) {
	text = r.Redactor.Text(text)
	if r.Human != nil {
		r.Human.AboveStatus(text)
		return
	}
	_, _ = io.WriteString(r.System.Stderr, text)
}

// AsideWith is TellFrom with all text for people on Stderr.
func (r *Reporter) AsideWith(set *source.Set, ds diag.List) {
	if r.Human == nil {
		r.TellFrom(set, ds)
		return
	}
	ds = r.Filter(ds)
	r.Human.WithAside(r.Printer(set), ds)
	if r.Stream != nil {
		r.Stream.For("", set).Tell(ds)
	}
}

// Automated reports whether hints about commands to type are left out.
func (r *Reporter) Automated() bool { return r.System.Env.Get("TF_IN_AUTOMATION") != "" }
