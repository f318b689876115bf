package functions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/process"
	"github.com/zclconf/go-cty/cty"
)

// lookupRun returns the functions that run programs or send requests, or nil.
func lookupRun(name string) *definition {
	s := cty.String
	switch name {
	case "run_cmd":
		return &definition{max: -1, ret: s, do: (*call).runCmd}
	case "sops_decrypt_file":
		return &definition{min: 1, max: 1, ret: s, do: (*call).sops}
	case "get_aws_account_id":
		return &definition{ret: s, leaf: true, do: text(func(k *call) (string, error) { return k.identity("Account") })}
	case "get_aws_caller_identity_arn":
		return &definition{ret: s, leaf: true, do: text(func(k *call) (string, error) { return k.identity("Arn") })}
	case "get_aws_caller_identity_user_id":
		return &definition{ret: s, leaf: true, do: text(func(k *call) (string, error) { return k.identity("UserId") })}
	case "get_aws_account_alias":
		return &definition{ret: s, leaf: true, do: text((*call).accountAlias)}
	}
	return nil
}

// Answers caches the output of the programs that functions of unit files run, so that each
// runs once. A program that failed runs again at the next attempt. The zero value is empty.
type Answers struct {
	kept parallel.Cache[string, runResult]
}

// answer returns the result of a program or request, cached by its key.
func (k *call) answer(key string, run func() runResult) runResult {
	r, err := k.Answers.kept.Do(k.Task().Context(), key, func() (runResult, bool) {
		r := run()
		return r, r.err == nil
	})
	if err != nil {
		r = runResult{err: err, short: err}
	}
	if r.err != nil {
		demand.Passing(k.Task())
	}
	return r
}

// noCredentials is the error of a function that failed for lack of credentials.
type noCredentials struct {
	what string
	err  error
}

func (e *noCredentials) Error() string { return e.what + ": " + e.err.Error() }

func (e *noCredentials) Unwrap() error { return e.err }

var errNoProcess = errors.New("programs cannot be run here")

type runResult struct {
	out   string
	err   error
	short error // err without the output of the program
}

// environ returns the environment of programs that functions run.
func (k *call) environ() (process.Env, error) {
	if k.UnitEnviron == nil {
		return k.Machine.Environ, nil
	}
	unit, ok := k.Leaf()
	if !ok {
		return nil, nil
	}
	env, ds := k.UnitEnviron(k.Task(), unit)
	if ds.HasErrors() {
		demand.Passing(k.Task()) // a service may return credentials at the next attempt
	}
	return env, ds.Err()
}

// program runs a program and returns its standard output.
func (l *Library) program(ctx context.Context, dir string, env process.Env, words ...string) runResult {
	if l.Machine.Run == nil {
		return runResult{err: errNoProcess, short: errNoProcess}
	}
	var out, errs bytes.Buffer
	err := l.Machine.Run(ctx, process.Command{Path: words[0], Args: words[1:], Dir: dir, Env: env, Stdout: &out, Stderr: &errs})
	if err != nil {
		short := fmt.Errorf("%s: %w", words[0], err)
		if text := strings.TrimSpace(errs.String()); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		return runResult{out.String(), fmt.Errorf("%s: %w", words[0], err), short}
	}
	return runResult{out: out.String()}
}

// unitKey returns the part of a cache key that separates the results of units, or "" if
// they share the environment.
func (k *call) unitKey() string {
	if k.UnitEnviron == nil {
		return ""
	}
	unit, _ := k.Leaf()
	return unit + "\x00\x00\x00"
}

// runCmd implements run_cmd. Leading flags control echo and caching.
func (k *call) runCmd(args []string) (cty.Value, error) {
	var quiet, global, noCache bool
	for len(args) > 0 {
		switch args[0] {
		case "--terragrunt-quiet":
			quiet = true
		case "--terragrunt-global-cache":
			global = true
		case "--terragrunt-no-cache":
			noCache = true
		default:
			goto words
		}
		args = args[1:]
	}
words:
	switch {
	case len(args) == 0:
		return cty.NilVal, errors.New("no command was given")
	case global && noCache:
		return cty.NilVal, errors.New("--terragrunt-global-cache and --terragrunt-no-cache exclude each other")
	}
	env, err := k.environ()
	if err != nil || k.Waiting() {
		return cty.NilVal, err
	}
	run := func() runResult {
		r := k.program(k.Task().Context(), k.Dir(), env, args...)
		if r.err != nil && quiet {
			r.err = r.short
		}
		if r.err == nil && !quiet && k.Echo != nil {
			k.Echo(r.out)
		}
		return r
	}
	key := strings.Join(args, "\x00")
	if !global {
		key = k.Dir() + "\x00\x00" + key
	}
	if noCache { // each call runs once, though the expression is computed again with outputs
		k.runs++
		key = fmt.Sprintf("%s\x00%d\x00\x00%s", k.At(), k.runs, key)
	}
	key = k.unitKey() + key
	r := k.answer(key, run)
	out := strings.TrimSuffix(r.out, "\n")
	k.HandsIn(out, "run_cmd(…)")
	return cty.StringVal(out), r.err
}

// sops implements sops_decrypt_file, with the user's sops program.
func (k *call) sops(args []string) (cty.Value, error) {
	path := k.Files.Near(k.FileDir(), k.Dir(), args[0])
	if !k.Files.Exists(path) {
		return cty.NilVal, fmt.Errorf("there is no file %s", path)
	}
	k.Reads(path)
	env, err := k.environ()
	if err != nil || k.Waiting() {
		return cty.NilVal, err
	}
	key := k.unitKey() + "sops\x00" + path
	r := k.answer(key, func() runResult {
		format := strings.TrimPrefix(filepath.Ext(path), ".")
		switch format {
		case "yml":
			format = "yaml"
		case "yaml", "json", "dotenv", "ini":
		case "env":
			format = "dotenv"
		default:
			format = "binary"
		}
		return k.program(k.Task().Context(), filepath.Dir(path), env, "sops", "--decrypt", "--input-type", format, "--output-type", format, path)
	})
	if r.err != nil {
		return cty.NilVal, &noCredentials{"cannot decrypt " + path + " with the sops program", r.err}
	}
	k.HandsIn(r.out, "sops_decrypt_file(…)")
	return cty.StringVal(r.out), nil
}
