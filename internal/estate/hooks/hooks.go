// Package hooks runs the programs of a unit's hooks before and after commands.
//
// Main type: Runner. The one rule: a hook receives the environment of its unit and the variables
// of Context, and no other data of this program.
package hooks

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"github.com/terrace-iac/terrace/unit"
)

// Names in the commands of hooks that are no commands of the user: the automatic init, the copy
// of the module, and the reading of the unit's file.
const (
	Init   = "init"
	Module = "init-from-module"
	Config = "terragrunt-read-config"
)

// A Runner runs the hooks of one unit.
type Runner struct {
	Unit    string // name of the unit in messages
	Blocks  *unit.Terraform
	Dir     string                                   // the working directory
	Exec    func(context.Context, sys.Command) error // nil means that programs cannot be run
	Site    Site
	Context Context
	Output  Output
}

// A Site is the unit whose hooks run.
type Site interface {
	// Environ returns the environment of hooks.
	Environ(ctx context.Context) sys.Env
	// Prepare is called before each hook.
	Prepare() diag.List
	// Describe adds the attributes of the unit to the span of a hook.
	Describe(s *telemetry.Span)
}

// Context contains the values of the variables that a hook receives in addition to its own name
// and kind.
type Context struct {
	Program string // path of this program, which the hook may call
	Source  string // source of the module
	UnitDir string
}

// Output receives the output of hooks.
type Output interface {
	// Hook is called with the name of a hook when it begins, and with "" when it ends.
	Hook(name string)
	// Log receives the output, line by line while the hook runs. Standard output and standard
	// error are in the order in which they were written.
	Log(line string)
}

// SplitOutput receives standard error apart. Log then receives only the standard output.
type SplitOutput interface {
	Output
	LogErr(line string)
}

// A Result is the result of running hooks.
type Result struct {
	Ran   bool // at least one hook was started
	Code  int  // exit status of the last hook that failed; 0 if none failed
	Diags diag.List
}

// And combines the results of hooks that ran one after the other.
func (r Result) And(next Result) Result {
	out := Result{Ran: r.Ran || next.Ran, Code: r.Code, Diags: slices.Concat(r.Diags, next.Diags)}
	if next.Code > 0 {
		out.Code = next.Code
	}
	return out
}

// Wanted reports whether one of the hooks applies to a command.
func Wanted(list []unit.Hook, command string) bool {
	return slices.ContainsFunc(list, func(h unit.Hook) bool { return h.If && slices.Contains(h.Commands, command) })
}

// Before runs the before_hook blocks of a command.
func (r *Runner) Before(ctx context.Context, command string) Result {
	return r.run(ctx, r.Blocks.Before, "before_hook", command, nil)
}

// After runs the after_hook blocks of a command. failed contains the messages of the command and
// of the hooks before it.
func (r *Runner) After(ctx context.Context, command string, failed diag.List) Result {
	return r.run(ctx, r.Blocks.After, "after_hook", command, failed)
}

// run runs the hooks of a list that apply to a command.
func (r *Runner) run(ctx context.Context, list []unit.Hook, kind, command string, failed diag.List) Result {
	var out Result
	for i := range list {
		h := &list[i]
		if h.If && slices.Contains(h.Commands, command) && (h.RunOnError || !failed.HasErrors() && !out.Diags.HasErrors()) {
			out = out.And(r.hook(ctx, h, kind, command))
		}
	}
	return out
}

// Failed runs the error_hook blocks of a command whose patterns match the text of its errors.
func (r *Runner) Failed(ctx context.Context, command, text string) Result {
	var out Result
	for i := range r.Blocks.Errors {
		h := &r.Blocks.Errors[i]
		hit, ds := matchesAny(h.OnErrors, text, h)
		if out.Diags = append(out.Diags, ds...); hit && slices.Contains(h.Commands, command) {
			out = out.And(r.hook(ctx, h, "error_hook", command))
		}
	}
	return out
}

func matchesAny(patterns []string, text string, h *unit.Hook) (bool, diag.List) {
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return false, diag.Errorf(diag.CodeEstatePattern, h.At, "Invalid pattern", "The pattern %q of the hook %q is not a regular expression: %s.", p, h.Name, err)
		}
		if re.MatchString(text) {
			return true, nil
		}
	}
	return false, nil
}

// hook runs one hook in its own span.
func (r *Runner) hook(ctx context.Context, h *unit.Hook, kind, command string) Result {
	if !telemetry.On(ctx) {
		return r.program(ctx, h, kind, command)
	}
	ctx, s := telemetry.Start(ctx, "hook_"+h.Name)
	defer s.End()
	r.Site.Describe(s)
	s.Text("hook", h.Name).Text("dir", h.WorkingDir).Text("terraform_command", command)
	out := r.program(ctx, h, kind, command)
	s.Messages(out.Diags)
	return out
}

// program runs the program of a hook.
func (r *Runner) program(ctx context.Context, h *unit.Hook, kind, command string) Result {
	out := Result{Ran: true}
	if r.Exec == nil {
		out.Diags = diag.Errorf(diag.CodeEstateNoExec, h.At, "Programs cannot be run", "The hook %q cannot run here.", h.Name)
		return out
	}
	if out.Diags = r.Site.Prepare(); out.Diags.HasErrors() {
		return out
	}
	dir := r.Dir
	if h.WorkingDir != "" {
		if dir = h.WorkingDir; !filepath.IsAbs(dir) {
			dir = filepath.Join(r.Dir, dir)
		}
	}
	r.Output.Hook(h.Name)
	defer r.Output.Hook("")
	env := r.Site.Environ(ctx).With(r.variables(h, kind, command)...)
	var written output
	stdout, stderr := r.streams(&written, h)
	err := r.Exec(ctx, sys.Command{Path: h.Execute[0], Args: h.Execute[1:], Dir: dir, Env: env, Stdout: stdout, Stderr: stderr})
	stdout.flush()
	stderr.flush()
	if err == nil {
		return out
	}
	if code, ok := sys.ExitCode(err); ok && code > 0 {
		out.Code = code
	}
	why := reason(err)
	if _, missing := os.Stat(dir); missing != nil {
		why = "the directory that its \"working_dir\" names, seen from the directory that the unit works in, cannot be entered: " + diag.Reason(missing)
	}
	out.Diags = diag.Errorf(diag.CodeEstateHook, h.At, "Hook failed", "The hook %q of the unit %s ended with an error: %s.", h.Name, r.Unit, why)
	if text := written.tail(); text != "" {
		out.Diags[0].Detail += "\n\nIts last lines were:\n  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	out.Diags[0].Code = diag.CodeEstateHook
	return out
}

// reason returns the reason why a program did not run or failed, without the program's name,
// which may be secret.
func reason(err error) string {
	var at *fs.PathError
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "the program that its \"execute\" begins with was not found"
	case errors.As(err, &at):
		return "the program that its \"execute\" begins with cannot be run: " + diag.Reason(at.Err)
	}
	return diag.Reason(err)
}

// variables returns the variables that describe the hook and its unit. The last three belong to
// an experiment of Terragrunt (hook-context-env).
func (r *Runner) variables(h *unit.Hook, kind, command string) []string {
	return []string{
		"TG_CTX_COMMAND=" + command, "TG_CTX_HOOK_NAME=" + h.Name, "TG_CTX_TF_PATH=" + r.Context.Program,
		"TG_CTX_HOOK_TYPE=" + kind, "TG_CTX_SOURCE=" + r.Context.Source, "TG_CTX_TERRAGRUNT_DIR=" + r.Context.UnitDir,
	}
}

// streams returns the output streams of a hook. Both are the same stream if they are logged the
// same way.
func (r *Runner) streams(out *output, h *unit.Hook) (stdout, stderr *stream) {
	split, apart := r.Output.(SplitOutput)
	if apart {
		stderr = out.open(split.LogErr)
	} else {
		stderr = out.open(r.Output.Log)
	}
	switch {
	case h.SuppressStdout:
		return out.open(nil), stderr
	case !apart:
		return stderr, stderr
	}
	return out.open(r.Output.Log), stderr
}
