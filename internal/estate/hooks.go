package estate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/terrace-iac/terrace/internal/telemetry"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

type providerAddr = addr.Provider

// hasHooks reports whether programs run around the command.
func (w *work) hasHooks() bool {
	tf := w.u.place.terraform
	return tf != nil && !w.r.e.o.Without.Hooks && len(tf.Before)+len(tf.After)+len(tf.Errors) > 0
}

// hooks runs what the unit wants run before or after its command. failed are the
// messages of the command.
func (w *work) hooks(ctx context.Context, after bool, failed diag.List) diag.List {
	if !w.hasHooks() {
		return nil
	}
	tf := w.u.place.terraform
	list := tf.Before
	if after {
		list = tf.After
	}
	ds := w.hooksOf(ctx, list, w.r.e.o.Request.Command, failed)
	if after && failed.HasErrors() {
		text := w.r.e.failureText(w.u, failed)
		for i := range tf.Errors {
			h := &tf.Errors[i]
			hit, more := matchesAny(h.OnErrors, text, h)
			if ds = append(ds, more...); hit && slices.Contains(h.Commands, w.r.e.o.Request.Command) {
				ds = append(ds, w.hook(ctx, h, w.r.e.o.Request.Command)...)
			}
		}
	}
	if after && w.r.e.o.Request.Command == hookInit && !ds.HasErrors() && !failed.HasErrors() {
		ds = append(ds, w.u.place.remember()...)
	}
	return ds
}

// hooksOf runs those hooks of a list that are about a command.
func (w *work) hooksOf(ctx context.Context, list []unit.Hook, command string, failed diag.List) diag.List {
	var ds diag.List
	for i := range list {
		h := &list[i]
		if h.If && slices.Contains(h.Commands, command) && (h.RunOnError || !failed.HasErrors() && !ds.HasErrors()) {
			ds = append(ds, w.hook(ctx, h, command)...)
		}
	}
	return ds
}

func matchesAny(patterns []string, text string, h *unit.Hook) (bool, diag.List) {
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return false, diag.Errorf(h.At, "Invalid pattern", "The pattern %q of the hook %q is no regular expression: %s.", p, h.Name, err)
		}
		if re.MatchString(text) {
			return true, nil
		}
	}
	return false, nil
}

// hook runs one program, and tells how long it took.
func (w *work) hook(ctx context.Context, h *unit.Hook, command string) diag.List {
	if !telemetry.On(ctx) {
		return w.program(ctx, h, command)
	}
	ctx, s := telemetry.Start(ctx, "hook_"+h.Name)
	defer s.End()
	w.u.about(s).Text("hook", h.Name).Text("dir", h.WorkingDir).Text("terraform_command", command)
	ds := w.program(ctx, h, command)
	s.Messages(ds)
	return ds
}

// program runs the program of a hook.
func (w *work) program(ctx context.Context, h *unit.Hook, command string) diag.List {
	w.ran = true
	if ds := w.u.place.onDisk(); ds.HasErrors() {
		return ds
	}
	w.u.place.beforeHook()
	if w.r.e.o.Machine.Run == nil {
		return diag.Errorf(h.At, "Programs cannot be run", "The hook %q cannot run here.", h.Name)
	}
	dir := w.u.place.dir
	if h.WorkingDir != "" {
		if dir = h.WorkingDir; !filepath.IsAbs(dir) {
			dir = filepath.Join(w.u.place.dir, dir)
		}
	}
	if tell := w.r.o.Observe.Hook; tell != nil {
		tell(w.u, h.Name)
		defer tell(w.u, "")
	}
	env := w.r.e.Programs(ctx, w.u).With(w.about(h, command)...)
	var out hookOutput
	stdout, stderr := w.streams(&out, h)
	err := w.r.e.o.Machine.Run(ctx, sys.Command{Path: h.Execute[0], Args: h.Execute[1:], Dir: dir, Env: env, Stdout: stdout, Stderr: stderr})
	stdout.flush()
	stderr.flush()
	if err == nil {
		return nil
	}
	if code, ok := sys.ExitCode(err); ok && code > 0 {
		w.res.Code = code
	}
	ds := diag.Errorf(h.At, "Hook failed", "The hook %q of the unit %s ended with an error: %s.", h.Name, w.u.Name, err)
	if text := out.tail(); text != "" {
		ds[0].Detail += "\n\nIts last lines were:\n  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	ds[0].Code = "estate/hook"
	return ds
}

// about are the variables that tell a hook where it runs; the last three are an
// experiment in Terragrunt (hook-context-env).
func (w *work) about(h *unit.Hook, command string) []string {
	tf, kind := w.u.place.terraform, "before_hook"
	among := func(list []unit.Hook) bool {
		for i := range list {
			if &list[i] == h {
				return true
			}
		}
		return false
	}
	switch {
	case among(tf.After):
		kind = "after_hook"
	case among(tf.Errors):
		kind = "error_hook"
	}
	src, _ := w.r.e.sourceOf(w.u, tf)
	return []string{
		"TG_CTX_COMMAND=" + command, "TG_CTX_HOOK_NAME=" + h.Name, "TG_CTX_TF_PATH=" + cmp.Or(w.r.e.o.Host.Program, "terrace"),
		"TG_CTX_HOOK_TYPE=" + kind, "TG_CTX_SOURCE=" + cmp.Or(src.text, "."), "TG_CTX_TERRAGRUNT_DIR=" + w.u.Dir,
	}
}

// streams are those of a hook: one where both are told alike.
func (w *work) streams(out *hookOutput, h *unit.Hook) (stdout, stderr *hookStream) {
	about := func(log func(*Unit, string)) func(string) {
		if log == nil {
			return nil
		}
		return func(line string) { log(w.u, line) }
	}
	log, errs := w.r.o.Observe.Log, w.r.o.Observe.LogErr
	if errs == nil {
		errs = log
	}
	stderr = out.stream(about(errs))
	switch {
	case h.SuppressStdout:
		return out.stream(nil), stderr
	case w.r.o.Observe.LogErr == nil:
		return stderr, stderr
	}
	return out.stream(about(log)), stderr
}

// A Verdict is what the errors block of a unit says to a failure.
type Verdict struct {
	Again   bool
	Sleep   time.Duration
	Retry   string // the label of the retry block that matched
	Ignored string // the label of the ignore block
	Message string // what that block says
}

// Judge asks the unit's errors block about a failure: whether it is ignored, which
// comes first, or tried again.
func (e *Estate) Judge(ctx context.Context, u *Unit, failed diag.List, try int) (Verdict, diag.List) {
	t := e.task(ctx)
	block, ds := u.Errors(t)
	if ds.HasErrors() {
		return Verdict{}, nil // told already
	}
	text := e.failureText(u, failed)
	if block == nil {
		block = &unit.Errors{Retry: []unit.Retry{{Name: "default", RetryableErrors: unit.DefaultRetryableErrors(), MaxAttempts: unit.DefaultMaxAttempts, SleepSeconds: unit.DefaultSleepSeconds}}}
	}
	for _, ig := range block.Ignore {
		hit, err := ignores(ig.IgnorableErrors, text)
		if err != nil {
			return Verdict{}, diag.Errorf(block.At, "Invalid pattern", "A pattern of the ignore block %q is no regular expression: %s.", ig.Name, err)
		}
		if hit {
			return Verdict{Ignored: ig.Name, Message: ig.Message}, e.signals(u, &ig)
		}
	}
	if e.o.Without.Retries {
		return Verdict{}, nil
	}
	for _, rt := range block.Retry {
		for _, p := range rt.RetryableErrors {
			re, err := regexp.Compile(p)
			if err != nil {
				return Verdict{}, diag.Errorf(block.At, "Invalid pattern", "The pattern %q of the retry block %q is no regular expression: %s.", p, rt.Name, err)
			}
			if re.MatchString(text) {
				return Verdict{Again: try < rt.MaxAttempts, Retry: rt.Name, Sleep: time.Duration(rt.SleepSeconds) * time.Second}, nil
			}
		}
	}
	return Verdict{}, nil
}

// ignores: the first pattern that matches decides; one that begins with ! says no.
func ignores(patterns []string, text string) (bool, error) {
	for _, p := range patterns {
		bare, no := strings.CutPrefix(p, "!")
		re, err := regexp.Compile(bare)
		if err != nil {
			return false, err
		}
		if re.MatchString(text) {
			return !no, nil
		}
	}
	return false, nil
}

// signals writes what an ignore block wants others to know.
func (e *Estate) signals(u *Unit, ig *unit.Ignore) diag.List {
	m := map[string]json.RawMessage{}
	if ig.Signals != cty.NilVal && !ig.Signals.IsNull() {
		for k, v := range ig.Signals.AsValueMap() {
			v, _ = v.UnmarkDeep()
			if b, err := ctyjson.Marshal(v, v.Type()); err == nil {
				m[k] = b
			}
		}
	}
	if len(m) == 0 {
		return nil
	}
	if ig.Message != "" {
		b, err := json.Marshal(ig.Message)
		if err == nil {
			m["message"] = b
		}
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(u.Dir, "error-signals.json"), b, 0o644)
	}
	if err != nil {
		return diag.Errorf(nil, "Failed to write signals", "The file error-signals.json of the unit %s cannot be written: %s.", u.Name, err)
	}
	return nil
}

// Pause waits before a unit is tried again; false if the run ends meanwhile.
func (e *Estate) Pause(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	case <-ctx.Done():
		return false
	}
}

// failureText is what patterns of errors are held against: each message in one
// line, and as it is printed, with the text that it is about, and how a program that
// fails with them ends.
func (e *Estate) failureText(u *Unit, ds diag.List) string {
	var b strings.Builder
	for _, m := range ds.Errors() {
		fmt.Fprintf(&b, "%s: %s\n", m.Summary, m.Detail)
		p := diag.Printer{Set: e.Sources()}
		if pl := u.place; pl != nil && pl.shared != nil && m.At != nil && pl.shared.set.File(m.At.Filename) != nil {
			p.Set = &pl.shared.set
		}
		_ = p.Print(&b, diag.List{m}) // a builder takes everything
	}
	if text := b.String(); strings.Contains(text, "exit status") {
		return text
	}
	return b.String() + "exit status 1\n"
}
