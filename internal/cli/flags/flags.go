// Package flags declares the flags that several commands of the command line share, with their
// help. Package flag declares those that unit files and the environment add to commands, too.
//
// Main types: JSON, Request, Over. The one rule: a flag with the same meaning in two commands is
// declared in one of the two packages.
package flags

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/markdown"
	"github.com/terrace-iac/terrace/internal/cli/report"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/source"
)

// JSON contains the values of -json and -json-into.
type JSON struct {
	On   bool
	Into string
}

// Flags returns the flags of commands that write events.
func (j *JSON) Flags() flag.Flags {
	return flag.Flags{
		flag.Bool(&j.On, "json", "Produce output in a machine-readable JSON format."),
		flag.Text(&j.Into, "json-into", "path", "Write the machine-readable output to a file, besides the output for people.").Completes(flag.Files),
	}
}

// Use turns on the stream that the flags request. If that fails, it reports an error and
// returns false. The caller must call the reporter's Finish at the end.
func (j *JSON) Use(r *report.Reporter) (ok bool) { return r.UseJSON(j.On, j.Into) }

// Markdown returns -markdown and -markdown-limit.
func Markdown(into *request.Markdown) flag.Flags {
	into.Limit = markdown.DefaultLimit
	return flag.Flags{
		flag.Text(&into.File, "markdown", "FILE", "Write the result as Markdown to a file, for a comment on a pull request. Sensitive values are hidden in it.").Completes(flag.Files),
		flag.Int(&into.Limit, "markdown-limit", "N", fmt.Sprintf("The largest size of the Markdown in bytes, %d by default; 0 means no limit. Parts that do not fit are left out, with a note.", markdown.DefaultLimit)).Checked(func(s flag.Setting) error {
			if n, err := strconv.Atoi(s.Value); err == nil && n != 0 && n < markdown.MinLimit {
				return fmt.Errorf("the limit must be 0 or at least %d", markdown.MinLimit)
			}
			return nil
		}),
	}
}

// WriteMarkdown writes a document to the file of -markdown, and reports that.
func WriteMarkdown(c *command.Call, to request.Markdown, d *markdown.Document) diag.List {
	if err := atomicfile.WriteFrom(c.ReportPath(to.File), 0o600, func(w io.Writer) error { return markdown.Write(w, d, to.Limit) }); err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write the Markdown", "The file of -markdown could not be written: %s.", err)
	}
	return nil
}

// MarkdownMessages returns messages for a document, errors first.
func MarkdownMessages(c *command.Call, set *source.Set, ds diag.List) []markdown.Message {
	var out, warnings []markdown.Message
	p := c.Report.Plain(set)
	for _, m := range ds {
		var b strings.Builder
		_ = p.Print(&b, diag.List{m}) // a write to a Builder cannot fail
		first, rest, _ := strings.Cut(strings.TrimSpace(b.String()), "\n")
		if x := (markdown.Message{Error: m.Severity == diag.Error, Title: first, Text: rest}); x.Error {
			out = append(out, x)
		} else {
			warnings = append(warnings, x)
		}
	}
	return append(out, warnings...)
}

// TestDirectory returns -test-directory.
func TestDirectory(into *string) flag.Flag {
	*into = "tests"
	return flag.Text(into, "test-directory", "path", "The directory of test files, \"tests\" by default.").Completes(flag.Folders)
}

// View returns the flags that every command accepts, before and after arguments.
func View(o *report.Options) flag.Flags {
	return flag.Flags{
		flag.Bool(&o.NoColor, "no-color", "No color in the output.").InAnyPlace(),
		flag.Bool(&o.CompactWarnings, "compact-warnings", "Show warnings that are not accompanied by errors in a compact form.").InAnyPlace(),
		flag.Bool(&o.ConsolidateWarnings, "consolidate-warnings", "Show every warning, also where several are alike.").InAnyPlace(),
		flag.Bool(&o.ConsolidateErrors, "consolidate-errors", "Show of several errors that are alike only the first.").InAnyPlace(),
		flag.Bool(&o.Concise, "concise", "Leave out the lines about progress.").InAnyPlace(),
		flag.Text(&o.Deprecation, "deprecation", "module:all", "Which warnings there are about what the authors of modules call deprecated: module:all, module:local or module:none.").
			InAnyPlace().Among("module:all", "module:local", "module:none"),
	}
}

// NoExec returns --no-exec, which every command accepts.
func NoExec(into *bool) flag.Flag {
	return flag.Bool(into, "no-exec", "Run no program and no provider: what needs one fails, and the place that asks for it is named. For configuration that nobody trusts.").
		Variables("TG_NO_EXEC").InAnyPlace()
}

// Warnings returns the flags of View that concern warnings, for the help of a command.
func Warnings() flag.Flags {
	all := View(&report.Options{ConsolidateWarnings: true})
	for i := range all {
		all[i].Anywhere = false // View has already read them when the command parses its flags
	}
	return all[1:5]
}

// Document prints a document, or writes it to the file of -json-into. write writes the
// document. Document returns the exit status.
func (j *JSON) Document(c *command.Call, write func(io.Writer) error) int {
	line := func(w io.Writer) error {
		b := bufio.NewWriter(w)
		err := write(b)
		if err == nil {
			err = errors.Join(b.WriteByte('\n'), b.Flush())
		}
		return err
	}
	if j.On {
		if err := line(c.Stdout); err != nil {
			return c.Fail(NotWritten(err))
		}
		return 0
	}
	f, err := os.OpenFile(c.Path(j.Into), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		err = errors.Join(line(f), f.Close())
	}
	if err != nil {
		return c.Fail(diag.Errorf(diag.CodeCLIFlags, nil, "Invalid argument", "The file of -json-into cannot be written: %s.", err))
	}
	return 0
}

// NotWritten returns the error for a document that could not be written. It returns nil for an
// error of standard output, which the program reports when the command ends.
func NotWritten(err error) diag.List {
	if _, ok := errors.AsType[*sys.OutputError](err); ok {
		return nil
	}
	return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write JSON", "The document cannot be written: %s.", err)
}
