package cli

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/cli/vars"
)

// newFlags makes the flag set of a command. Names work with one dash and with
// two, values behind "=" or as the next argument (the rules of package flag).
func newFlags(name string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	return f
}

// listFlag is a flag that may be repeated.
type listFlag []string

func (l *listFlag) String() string { return strings.Join(*l, ",") }
func (l *listFlag) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// varFlag is -var or -var-file; both go to one list, in their order.
type varFlag struct {
	list *[]vars.Flag
	file bool
}

func (v varFlag) String() string { return "" }
func (v varFlag) Set(s string) error {
	*v.list = append(*v.list, vars.Flag{File: v.file, Value: s})
	return nil
}

func addVars(f *flag.FlagSet, list *[]vars.Flag) {
	f.Var(varFlag{list, false}, "var", "")
	f.Var(varFlag{list, true}, "var-file", "")
}

// jsonFlags are -json and -json-into.
type jsonFlags struct {
	on   bool
	into string
}

func (j *jsonFlags) add(f *flag.FlagSet) {
	f.BoolVar(&j.on, "json", false, "")
	f.StringVar(&j.into, "json-into", "", "")
}

// lockFlags are -lock and -lock-timeout.
type lockFlags struct {
	on      bool
	timeout time.Duration
}

func (l *lockFlags) add(f *flag.FlagSet) {
	f.BoolVar(&l.on, "lock", true, "")
	f.DurationVar(&l.timeout, "lock-timeout", 0, "")
}

// stateFlags say which state is worked on.
type stateFlags struct {
	lockFlags
	path, out, backup string
}

func (s *stateFlags) add(f *flag.FlagSet) {
	s.lockFlags.add(f)
	f.StringVar(&s.path, "state", "", "")
	f.StringVar(&s.out, "state-out", "", "")
	f.StringVar(&s.backup, "backup", "", "")
}

// parse parses the flags of a command. ok is false after a mistake, which is
// reported with the status to return.
func (s *session) parse(f *flag.FlagSet, args []string) (ok bool) {
	if err := f.Parse(args); err != nil {
		s.usageError(f.Name(), "Failed to parse command-line flags", err.Error())
		return false
	}
	return true
}

// usageText puts the help of a command together.
func usageText(head string, options ...string) func() string {
	return func() string {
		if len(options) == 0 {
			return strings.TrimSpace(head)
		}
		return strings.TrimSpace(head + "\n\nOptions:\n\n" + strings.Join(options, "\n"))
	}
}

// option is one entry of a help text: the flag and what it is for.
func option(name, text string) string {
	const column = 26
	var b strings.Builder
	fmt.Fprintf(&b, "  %-*s", column-2, name)
	if len(name) > column-3 {
		b.WriteString("\n" + strings.Repeat(" ", column))
	}
	width := column
	for i, word := range strings.Fields(text) {
		if i > 0 {
			if width+1+len(word) > 79 {
				b.WriteString("\n" + strings.Repeat(" ", column))
				width = column
			} else {
				b.WriteString(" ")
				width++
			}
		}
		b.WriteString(word)
		width += len(word)
	}
	b.WriteString("\n")
	return b.String()
}
