package unit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	version "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/hclnative"
	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

type runResult struct {
	out   string
	err   error
	short error // err without what the program wrote
}

// environ is the environment of programs that are run for an evaluation.
func (k *call) environ() (sys.Env, error) {
	l := k.c.l
	if l.env.UnitEnviron == nil {
		return l.env.Machine.Environ, nil
	}
	if k.leafOnly() {
		return nil, nil
	}
	env, ds := l.env.UnitEnviron(k.c.t, k.c.leaf.dir)
	return env, ds.Err()
}

// program runs a program and gives what it printed.
func (l *Loader) program(ctx context.Context, dir string, env sys.Env, words ...string) runResult {
	if l.env.Machine.Run == nil {
		return runResult{err: errNoProcess, short: errNoProcess}
	}
	var out, errs bytes.Buffer
	err := l.env.Machine.Run(ctx, sys.Command{Path: words[0], Args: words[1:], Dir: dir, Env: env, Stdout: &out, Stderr: &errs})
	if err != nil {
		short := fmt.Errorf("%s: %w", words[0], err)
		if text := strings.TrimSpace(errs.String()); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		return runResult{out.String(), fmt.Errorf("%s: %w", words[0], err), short}
	}
	return runResult{out: out.String()}
}

// runCmd is run_cmd: leading flags say whether to echo and how to keep the answer.
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
	if err != nil || k.c.needsLeaf {
		return cty.NilVal, err
	}
	l := k.c.l
	run := func() runResult {
		r := l.program(k.c.t.Context(), k.e.dir, env, args...)
		if r.err != nil && quiet {
			r.err = r.short
		}
		if r.err == nil && !quiet && l.env.Echo != nil {
			l.env.Echo(r.out)
		}
		return r
	}
	key := strings.Join(args, "\x00")
	if !global {
		key = k.e.dir + "\x00\x00" + key
	}
	if noCache { // each call runs once, though its expression is computed again when outputs are there
		k.runs++
		key = fmt.Sprintf("%s\x00%d\x00\x00%s", k.at, k.runs, key)
	}
	if l.env.UnitEnviron != nil {
		key = k.c.leaf.dir + "\x00\x00\x00" + key
	}
	r := l.answers.kept.Do(key, run)
	return cty.StringVal(strings.TrimSuffix(r.out, "\n")), r.err
}

// readTfvars is read_tfvars_file: the variables of a file as JSON text.
func (k *call) readTfvars(args []string) (cty.Value, error) {
	path := absPath(k.e.dir, args[0])
	text, err := k.c.l.env.readFile(path)
	if err != nil {
		return cty.NilVal, fmt.Errorf("cannot read %s: %s", path, plainError(err))
	}
	k.c.readFile(path)
	if ds := diag.TooDeep(path, text); ds != nil {
		return cty.NilVal, ds.Err()
	}
	var f *hcl.File
	var diags hcl.Diagnostics
	if strings.HasSuffix(path, ".json") {
		f, diags = hcljson.Parse(text, path)
	} else {
		f, diags = hclnative.ParseConfig(text, path)
	}
	if diags.HasErrors() {
		return cty.NilVal, diag.FromValues(text, diags).Err()
	}
	attrs, diags := f.Body.JustAttributes()
	if diags.HasErrors() {
		return cty.NilVal, diag.FromValues(text, diags).Err()
	}
	vals := make(map[string]cty.Value, len(attrs))
	for name, a := range attrs {
		v, diags := a.Expr.Value(nil)
		if diags.HasErrors() {
			return cty.NilVal, diag.FromValues(text, diags).Err()
		}
		vals[name] = v
	}
	v := cty.ObjectVal(vals)
	out, err := ctyjson.Marshal(v, v.Type())
	return cty.StringVal(string(out)), err
}

// sops is sops_decrypt_file, by the user's own sops program.
func (k *call) sops(args []string) (cty.Value, error) {
	path := absPath(k.e.dir, args[0])
	if !k.c.l.exists(path) {
		return cty.NilVal, fmt.Errorf("there is no file %s", path)
	}
	k.c.readFile(path)
	env, err := k.environ()
	if err != nil || k.c.needsLeaf {
		return cty.NilVal, err
	}
	key := "sops\x00" + path
	if k.c.l.env.UnitEnviron != nil {
		key += "\x00" + k.c.leaf.dir
	}
	r := k.c.l.answers.kept.Do(key, func() runResult {
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
		return k.c.l.program(k.c.t.Context(), filepath.Dir(path), env, "sops", "--decrypt", "--input-type", format, "--output-type", format, path)
	})
	if r.err != nil {
		return cty.NilVal, &noCredentials{"cannot decrypt " + path + " with the sops program", r.err}
	}
	return cty.StringVal(r.out), nil
}

func (k *call) markRead(args []string) (cty.Value, error) {
	path := absPath(k.e.dir, args[0])
	k.c.readFile(path)
	return cty.StringVal(args[0]), nil
}

// markGlob is mark_glob_as_read: the files that match, all noted as read.
func (k *call) markGlob(args []string) (cty.Value, error) {
	if args[0] == "--terragrunt-boundary" {
		if len(args) != 3 {
			return cty.NilVal, errors.New("--terragrunt-boundary needs a folder, and the pattern after it")
		}
		args = args[2:]
	}
	if len(args) != 1 {
		return cty.NilVal, fmt.Errorf("1 pattern expected, not %d", len(args))
	}
	found, err := doublestar.FilepathGlob(absPath(k.e.dir, args[0]), doublestar.WithFilesOnly())
	if err != nil {
		return cty.NilVal, err
	}
	slices.Sort(found)
	for _, p := range found {
		k.c.readFile(p)
	}
	return stringList(found), nil
}

func constraintCheck(_ *call, args []string) (cty.Value, error) {
	v, err := version.NewVersion(args[0])
	if err != nil {
		return cty.NilVal, fmt.Errorf("%q is not a version", args[0])
	}
	want, err := version.NewConstraint(args[1])
	if err != nil {
		return cty.NilVal, fmt.Errorf("%q is not a version constraint", args[1])
	}
	return cty.BoolVal(want.Check(v)), nil
}

// workingDir is the folder that the module of the leaf unit will run in. Where that
// is found out by asking for it again, it is empty.
func (k *call) workingDir() (string, error) {
	if k.c.leaf.placing {
		return "", nil
	}
	c := k.c.sub(k.c.leaf.beforePlaced(), k.c.full)
	fields := c.leafFields()
	src := c.textOf(fields, "terraform", "source")
	download := k.c.l.env.Request.DownloadDir
	if download == "" {
		download = c.textOf(fields, "download_dir")
	}
	k.c.facts = k.c.facts.with(c.facts)
	if c.failed {
		return "", c.ds.Err()
	}
	return k.c.leaf.runsIn(src, download), nil
}

func jsonField(text, name string) (string, error) {
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return "", errors.New("the answer is not a JSON object")
	}
	s, ok := m[name].(string)
	if !ok {
		return "", fmt.Errorf("the answer has no %s", name)
	}
	return s, nil
}
