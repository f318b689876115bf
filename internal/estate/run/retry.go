package run

import (
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/retry"
	"github.com/terrace-iac/terrace/source"
)

// decide evaluates the unit's errors block for a failure and returns the decision. For an ignore
// block it also writes the signals file.
func (t *Turn) decide(failed diag.List, try int) (retry.Decision, diag.List) {
	block, ds := t.Unit.Errors(t.task)
	if ds.HasErrors() {
		return retry.Decision{}, nil // reported already
	}
	d, ds := retry.Decide(block, t.at.failureText(failed), try, t.NoRetries)
	if d.Ignore != nil {
		ds = append(ds, retry.WriteSignals(t.Unit.Dir, d.Ignore)...)
	}
	return d, ds
}

// failureText returns the text that the patterns of errors blocks and error hooks are matched
// against.
func (s *Site) failureText(ds diag.List) string {
	var own *source.Set
	if s.dir != nil && s.dir.Parsed != nil {
		own = s.dir.Parsed.Set
	}
	return failureText(ds, s.r.Loader.Sources(), own)
}

// failureText renders each error twice: on one line, and as it is printed with its source text.
// The source text comes from moduleFiles if they contain the file, otherwise from unitFiles. The
// text ends with an exit status, as that of a failed program.
func failureText(ds diag.List, unitFiles, moduleFiles *source.Set) string {
	var b strings.Builder
	for _, m := range ds.Errors() {
		fmt.Fprintf(&b, "%s: %s\n", m.Summary, m.Detail)
		p := diag.Printer{Set: unitFiles}
		if moduleFiles != nil && m.At != nil && moduleFiles.File(m.At.Filename) != nil {
			p.Set = moduleFiles
		}
		_ = p.Print(&b, diag.List{m}) // a strings.Builder never returns an error
	}
	if text := b.String(); strings.Contains(text, "exit status") {
		return text
	}
	return b.String() + "exit status 1\n"
}
