// Package report reports the progress and messages of a command: as text to people, and as a
// stream of JSON events to programs.
//
// Main type: Reporter. It passes messages, text and events to its two views, Human and Stream;
// a nil view prints nothing. The one rule: the command itself writes the output that another
// program reads from Stdout, and the reporter then writes to Stderr, with AboveStatus.
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
	Human   *view.Human  // text for people; nil with -json
	Stream  *view.Stream // JSON events; nil without -json and -json-into
	Set     *source.Set  // the files that messages refer to

	// Dir is the directory to which file names are relative. Out receives the output.
	Dir string
	Out io.Writer
	// Units means that the command is about units: messages for people show the paths of files relative
	// to Dir. Other commands show paths as OpenTofu does.
	Units bool
	// Unit is the unit that the command works on, if there are several. With -json, each line
	// contains it. "" means none.
	Unit string
	// Note is called with all messages, before they are filtered. It may be nil.
	Note func(diag.List)

	// Reported suppresses warnings that were already reported. nil suppresses none.
	Reported *Reported

	// Redactor removes secrets from every message.
	Redactor *diag.Redactor

	// Context carries the telemetry to which messages are logged.
	Context context.Context

	System *sys.System // provides the terminal and the environment

	Names diag.Names // the program's names in texts

	silent atomic.Bool // all further messages are dropped

	into *os.File   // the file of -json-into
	mu   sync.Mutex // guards Human and Stream, which the interrupt handler reads
}

// Options are the settings of the flags that every command accepts.
type Options struct {
	NoColor, CompactWarnings, Concise      bool
	ConsolidateWarnings, ConsolidateErrors bool
	ErrorsAlone                            bool     // warnings are dropped, as --log-level of units requests
	Deprecation                            string   // module:all, module:local or module:none
	ShowCodes                              bool     // messages for people end with their code
	Silenced                               []string // codes of warnings that are dropped
}

// Defaults returns the options without flags.
func Defaults() Options {
	return Options{ConsolidateWarnings: true, Deprecation: "module:all"}
}

// New returns a reporter without views.
func New(ctx context.Context, system *sys.System) *Reporter {
	return &Reporter{System: system, Dir: system.Dir, Out: system.Stdout, Set: &source.Set{}, Options: Defaults(), Context: ctx, Redactor: &diag.Redactor{}}
}

// Open creates the view for people. UseJSON may replace it.
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
		Out: r.Out, Errs: r.System.Stderr, Style: view.Style{Color: color, Width: width, Names: r.Names}, Concise: r.Options.Concise, Joined: r.Redraws() && r.System.Terminal.Err,
		Printer: &diag.Printer{
			Set: r.Set, Relative: r.Relative, Color: color, Width: width, Names: r.Names, Codes: r.Options.ShowCodes, Difference: view.Difference(view.Style{Color: color}),
			CompactWarnings: r.Options.CompactWarnings, ConsolidateWarnings: r.Options.ConsolidateWarnings, ConsolidateErrors: r.Options.ConsolidateErrors,
		},
	}
	r.setViews(human, nil)
}

// forced reports whether the user requests colors even if the output is not a terminal, for
// example for the logs of a CI system.
func forced(env sys.Env) bool {
	for _, name := range [...]string{"FORCE_COLOR", "CLICOLOR_FORCE"} {
		if v := env.Get(name); v != "" && v != "0" && v != "false" {
			return true
		}
	}
	return false
}

// Redraws reports whether the output is a terminal with colors and cursor control.
func (r *Reporter) Redraws() bool {
	return r.System.Terminal.Out && r.System.Env.Get("TERM") != "dumb"
}

// setViews replaces the views. It takes the lock, because the goroutine that waits for
// interrupts reads them.
func (r *Reporter) setViews(human *view.Human, stream *view.Stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Human, r.Stream = human, stream
}

// UseJSON turns on the stream. With on, the stream replaces the view for people. Otherwise it
// is written to the file into, in addition to that view. If UseJSON fails, it reports an error
// and returns false. The caller must call Finish at the end.
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
	r.setViews(human, &view.Stream{Out: out, Now: r.System.Now, Messages: view.JSONMessages(r.Set, r.Names), Version: config.LanguageVersion, Unit: unit})
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

// jsonInto is the name of the file of -json-into in messages.
const jsonInto = "The file of -json-into"

// noted writes to the file of -json-into and records errors.
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

// TellAbout is Tell with additional fields for the lines of the stream.
func (r *Reporter) TellAbout(ds diag.List, about map[string]any) {
	if r.Note != nil {
		r.Note(ds)
	}
	ds = r.Filter(ds)
	r.Human.Messages(ds)
	r.Stream.TellAbout(ds, about)
}

// Fail reports messages and returns the exit status of a failure.
func (r *Reporter) Fail(ds diag.List) int {
	r.Tell(ds)
	return 1
}

// Status reports messages. It returns exit status 1 if one is an error, and 0 otherwise.
func (r *Reporter) Status(ds diag.List) int {
	r.Tell(ds)
	if ds.HasErrors() {
		return 1
	}
	return 0
}

// UsageError reports an error in the command line and returns its exit status.
func (r *Reporter) UsageError(command, summary, detail string) int {
	r.openFirst()
	r.Tell(diag.Errorf(diag.CodeCLIFlags, nil, summary, "%s", detail))
	if r.Human != nil {
		r.Human.Complain(fmt.Sprintf("\nFor more help on using this command, run:\n  %s %s -help\n", r.Names.Program(), command))
	}
	return 1
}

// Complain reports an error that has no message code: one in the words before the name of the
// command.
func (r *Reporter) Complain(text string) int {
	r.openFirst()
	r.Human.Complain(text)
	return 1
}

// openFirst opens the view for people if the flags that select a view were not read yet.
func (r *Reporter) openFirst() {
	if r.Human == nil && r.Stream == nil {
		r.Open()
	}
}

// deprecations contains the codes of the warnings that -deprecation controls: uses of objects that
// the author of a module marked as deprecated.
var deprecations = []string{diag.CodeEvalDeprecatedSource, diag.CodeEvalDeprecatedVariable}

// Filter redacts messages and removes warnings that the options exclude: deprecations (all, or
// those in fetched modules), and warnings silenced by code. It logs the remaining messages to
// the telemetry.
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

// Say writes text for people, and as a log line to the stream.
func (r *Reporter) Say(text string) {
	text = r.Redactor.Text(text)
	r.Human.Say(text)
	r.Stream.Log(strings.TrimSpace(text))
}

// Copy writes text for people unchanged, and as a log line to the stream.
func (r *Reporter) Copy(text string) {
	text = r.Redactor.Text(text)
	r.Human.Copy(text)
	r.Stream.Log(strings.TrimSpace(text))
}

// Announce is Say for the goroutine that waits for interrupts, while the views may change. It
// calls do, if do is not nil, after the text for people and before the line of the stream. A
// program that reads that line may rely on the effect of do.
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

// Silence drops all further messages. The messages of a canceled command would only report the
// cancellation.
func (r *Reporter) Silence() { r.silent.Store(true) }

// Event passes an event of the engine to the views.
func (r *Reporter) Event(e event.Event) {
	r.Human.Event(e)
	r.Stream.Event(e)
}

// Applying informs the views that the apply of a plan begins.
func (r *Reporter) Applying() {
	r.Human.Applying()
	r.Stream.Applying()
}

// Printer returns a printer for messages that refer to the files of set.
func (r *Reporter) Printer(set *source.Set) *diag.Printer {
	p := r.Human.Printer
	return &diag.Printer{
		Set: set, Relative: r.Relative, Color: p.Color, Width: p.Width, Names: p.Names, Codes: p.Codes,
		CompactWarnings: p.CompactWarnings, ConsolidateWarnings: p.ConsolidateWarnings, ConsolidateErrors: p.ConsolidateErrors,
	}
}

// Plain returns a printer for messages in a file, such as a page: without colors, and without the
// options of the command. Its paths are those of Printer.
func (r *Reporter) Plain(set *source.Set) *diag.Printer {
	return &diag.Printer{Set: set, Relative: r.Relative}
}

// Relative returns a text with the absolute paths of files relative to r.Dir, if they are in this
// directory or in the repository that contains it, for a command about units.
func (r *Reporter) Relative(text string) string {
	if !r.Units {
		return text
	}
	return sys.RelativePaths(r.Dir, text)
}

// AboveStatus prints messages to Stderr, for a command whose Stdout other programs read.
func (r *Reporter) AboveStatus(ds diag.List) {
	if len(ds) > 0 {
		_ = r.Printer(nil).Print(r.System.Stderr, r.Filter(ds))
	}
}

// AsideHere is AboveStatus for messages that refer to the files of this reporter.
func (r *Reporter) AsideHere(ds diag.List) {
	if len(ds) > 0 {
		_ = r.Human.Printer.Print(r.System.Stderr, r.Filter(ds))
	}
}

// WarnBeside prints messages to Stderr. With -json, they are part of the stream instead.
func (r *Reporter) WarnBeside(ds diag.List) {
	if r.Human == nil {
		r.Tell(ds)
		return
	}
	r.AboveStatus(ds)
}

// TellFrom reports messages that refer to the files of another set.
func (r *Reporter) TellFrom(set *source.Set, ds diag.List) {
	if r.Human != nil {
		r.Human.With(r.Printer(set), r.Filter(ds))
	}
	if r.Stream != nil {
		r.Stream.For("", set).Tell(r.Filter(ds))
	}
}

// Wait reports, on Stderr, why the run waits.
func (r *Reporter) Wait(text string) {
	text = r.Redactor.Text(text)
	if r.Human != nil {
		r.Human.AboveStatus(text)
		return
	}
	_, _ = io.WriteString(r.System.Stderr, text)
}

// AsideWith is TellFrom, but writes all text for people to Stderr.
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

// Automated reports whether the program runs in automation, so that hints about the next
// command are left out.
func (r *Reporter) Automated() bool { return r.System.Env.Get("TF_IN_AUTOMATION") != "" }
