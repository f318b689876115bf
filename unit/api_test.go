package unit_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

func load(t *testing.T, l *unit.Loader, path, module string) (*demand.Task, *unit.Unit) {
	t.Helper()
	task := l.Task(context.Background())
	u, ds := l.Unit(task, path, module)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	return task, u
}

// The expected directories are those that Terragrunt 1.1.3 returns from get_working_dir().
func TestWorkingDir(t *testing.T) {
	const base = "/tmp/tg3/.terragrunt-cache/ZaSP3tDKJP31BrqldPodgcivK-w/"
	for src, want := range map[string]string{
		"":                                     "AeSuHNYCSINJXhrm3M-Lad-1MAM",
		"../tg2/m":                             "RxLVqXdPQeV3fo3168xhVy0ElJI",
		"../tg2//m":                            "UPy-MevodC9IAPcBtEk3V0eHrZI/m",
		"/tmp/tg2/m":                           "RxLVqXdPQeV3fo3168xhVy0ElJI",
		"../tg2/m//":                           "RxLVqXdPQeV3fo3168xhVy0ElJI",
		"./m//a/b":                             "hwPbqy20-nAccMrlhj4nGswJEFM/a/b",
		"modules/x":                            "gXtS2SMriVRNLTtVAVSve37qHy4",
		"github.com/x/y//sub?ref=v1":           "ssxVQ-hw7vWJZkFnwHu0BoZYsHQ/sub",
		"github.com/x/y/sub":                   "ssxVQ-hw7vWJZkFnwHu0BoZYsHQ/sub",
		"gitlab.com/x/y":                       "ci060IWURbl9Rz9_pS0S9H5QESo",
		"git@github.com:x/y.git//sub":          "s_tYoVzxBynJD-a0GsrvC2KfaUA/sub",
		"git::git@github.com:x/y.git":          "s_tYoVzxBynJD-a0GsrvC2KfaUA",
		"git::https://u:p@h/x//s":              "Zm2Er05wJSaojOIjFY_n34WChSc/s",
		"https://example.com/x.zip?a=1":        "5LXp2cj0CbBaUgXMrHXQbDRBb1g",
		"s3::https://s3.amazonaws.com/b/k.zip": "mQG6BSWlDUFoRv4soKJ1Oh2g3lA",
		"tfr:///terraform-aws-modules/vpc/aws?version=3.5.0":            "ThyYwttwki6d6AS3aD5OwoyqIWA",
		"tfr:///terraform-aws-modules/vpc/aws//modules/a?version=3.5.0": "ThyYwttwki6d6AS3aD5OwoyqIWA/modules/a",
		"git::https://github.com/x/y.git//sub?ref=v1":                   "ssxVQ-hw7vWJZkFnwHu0BoZYsHQ/sub",
	} {
		if got := unit.WorkingDir("/tmp/tg3", src, ""); got != base+want {
			t.Errorf("%q: %s, want %s", src, got, base+want)
		}
	}
	for dir, want := range map[string]string{
		"/srv/e2x/a b/ü unit":      "HMfIZ9cL5VXZ-ferT9r4Ha0ynfg",
		"/srv/e2x/a b/\"quote\"$x": "CHixUCUZu35FygPnT6TgY534xNU",
		"/srv/e2x/emoji-🚀/[x]":     "zJWaWdeTXGOZcsSB_s-EyXTwi1U",
		"/srv/e2x/a;b{c}|d":        "FES17kmnbMatYEx-OKPo8RipVaY",
	} {
		if got := unit.WorkingDir(dir, "", ""); filepath.Base(got) != want {
			t.Errorf("%q: %s, want %s", dir, got, want)
		}
	}
	if got := filepath.Base(unit.WorkingDir("/srv", "git::file:///srv/my repo.git", "")); got != "Mk5x8BJGKGklTJTNcSYwfBT9TTI" {
		t.Errorf("a blank in a source: %s", got)
	}
	if got := unit.WorkingDir("/tmp/tg3", "", "/dl"); got != "/dl/ZaSP3tDKJP31BrqldPodgcivK-w/AeSuHNYCSINJXhrm3M-Lad-1MAM" {
		t.Errorf("with a download directory: %s", got)
	}
}

func TestGetWorkingDir(t *testing.T) {
	l := unit.NewLoader(memory(map[string]string{"u/terragrunt.hcl": "terraform {\n source = \"../m\"\n}\ninputs = { w = get_working_dir() }"}))
	task, u := load(t, l, "u", "")
	in, ds := u.Inputs(task, nil)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if got, want := in[0].Value.AsString(), unit.WorkingDir("/w/u", "../m", ""); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestLocalSource(t *testing.T) {
	for src, want := range map[string]bool{
		"": false, "../m": true, "./m": true, "/m": true, "modules/m": true, "m//x": true,
		"git::https://h/x": false, "https://h/x": false, "github.com/x/y": false, "git@h:x": false, "tfr:///a/b/c": false,
		"bucket.s3.amazonaws.com/x": false,
	} {
		if got := unit.LocalSource(src); got != want {
			t.Errorf("%q: %v, want %v", src, got, want)
		}
	}
}

func TestIsUnitFile(t *testing.T) {
	l := unit.NewLoader(memory(map[string]string{
		"a/terragrunt.hcl": "", "a/env.hcl": "module \"x\" {\n source = \"./m\"\n}", "a/plain.hcl": "# module\ninputs = {}",
		"a/.terraform.lock.hcl": "module \"x\" {}", "a/x.tftest.hcl": "module \"x\" {}", "a/terragrunt.stack.hcl": "module \"x\" {}", "a/main.tf": "module \"x\" {}",
		"a/broken.hcl": "module \"x\" {",
	}))
	for name, want := range map[string]bool{
		"terragrunt.hcl": true, "env.hcl": true, "plain.hcl": false, ".terraform.lock.hcl": false,
		"x.tftest.hcl": false, "terragrunt.stack.hcl": false, "main.tf": false, "broken.hcl": false, "none.hcl": false,
	} {
		if got := l.IsUnitFile("/w/a/" + name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestHasModules(t *testing.T) {
	const sentinel = "module \"f\" {\n  source = \"./functions/f.sentinel\"\n}\n"
	const pinned = "module \"f\" {\n  source = \"git::https://example.com/p.git//f.sentinel?ref=v1\"\n}\n"
	const own = "module \"vpc\" {\n  source = \"../m\"\n}\n"
	for text, want := range map[string]bool{
		"":                           false,
		own:                          true,
		"  " + own:                   true,
		"locals {}\nmodule\t\"x\"{}": true,
		"module \"x\" {":             true, // the caller reports the syntax error
		"/**/ \nmodule \"x\" {\n a = " + strings.Repeat("[", 4_000_000): true, // parsing it would overflow the stack
		"# " + own:                false,
		"module = 1":              false,
		"modules \"x\" {}":        false,
		"/*\n" + own + "*/":       false,
		"/* x */\n" + own:         true,
		"x = <<E\n" + own + "E\n": false,
		"x = <<E\nt\nE\n" + own:   true,
		sentinel:                  false,
		pinned:                    false,
		sentinel + "policy \"p\" {\n  source = \"./p.sentinel\"\n}":                                     false,
		"mock \"tfplan/v2\" {\n  module {\n    source = \"mock.sentinel\"\n  }\n}\n":                    false,
		"generate_hcl \"x.tf\" {\n  content {\n    module \"x\" {\n      source = \"m\"\n    }\n  }\n}": false,
		own + "# replaces policy.sentinel":                                                              true,
		sentinel + own:                                                                                  true,
		"module \"x\" {\n  source = local.m\n  p = \"p.sentinel\"\n}":                                   true,
		"module \"x\" {\n  p = \"p.sentinel\"\n}":                                                       true, // the caller reports that source is missing
	} {
		if got := unit.HasModules([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// A loader fetches the outputs of a target once. Unknown outputs stay unknown, and marks
// are kept.
func TestOutputs(t *testing.T) {
	files := map[string]string{
		"env.hcl":          "dependency \"d\" {\n config_path = \"d\"\n}\ninputs = { id = dependency.d.outputs.id, secret = dependency.d.outputs.secret, later = \"x-${dependency.d.outputs.later}\" }",
		"d/terragrunt.hcl": "",
		"a/terragrunt.hcl": "import \"env\" {\n config_path = \"../env.hcl\"\n merge = true\n}",
		"b/terragrunt.hcl": "import \"env\" {\n config_path = \"../env.hcl\"\n}\ninputs = { id = import.env.inputs.id }",
	}
	calls := 0
	round := func(id string) unit.OutputsFunc {
		return func(_ *demand.Task, target string, _ source.Range) (cty.Value, bool, diag.List) {
			calls++
			if target != "/w/d" {
				t.Errorf("asked for %s", target)
			}
			return cty.ObjectVal(map[string]cty.Value{
				"id": cty.StringVal(id), "secret": cty.StringVal("s").Mark(value.Hidden), "later": cty.UnknownVal(cty.String),
			}), true, nil
		}
	}
	env := memory(files)
	env.Outputs = round("one")
	l := unit.NewLoader(env)
	task, a := load(t, l, "a", "")
	_, b := load(t, l, "b", "")
	ids := func(u *unit.Unit) string {
		in, ds := u.Inputs(task, nil)
		if ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		var out []string
		for _, s := range in {
			switch {
			case !s.Value.IsKnown():
				out = append(out, s.Name+" unknown")
			case s.Value.IsMarked():
				out = append(out, s.Name+" hidden")
			default:
				out = append(out, s.Name+" "+s.Value.AsString())
			}
		}
		return strings.Join(out, ", ")
	}
	if got, want := ids(a), "id one, later unknown, secret hidden"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := ids(b); got != "id one" || calls != 1 {
		t.Errorf("%s after %d calls", got, calls)
	}
	in, _ := a.Inputs(task, nil)
	for _, s := range in {
		if want := s.Name == "later"; want != (len(s.Waits) == 1 && s.Waits[0].ID == "/w/d" && s.Waits[0].Ref == "dependency.d.outputs.later" && s.Waits[0].At.Start.Line == 4) {
			t.Errorf("%s waits for %v", s.Name, s.Waits)
		}
	}
	n := l.WithOutputs(round("two"))
	if got := ids(b.In(n)); got != "id two" || calls != 2 {
		t.Errorf("anew: %s after %d calls", got, calls)
	}
	if got := ids(b); got != "id one" || calls != 2 {
		t.Errorf("the first loader's: %s after %d calls", got, calls)
	}
	text, _ := a.RenderJSON(task)
	if strings.Contains(string(text), `"secret":"s"`) || !strings.Contains(string(text), `"secret":"(sensitive value)"`) {
		t.Errorf("a hidden value is shown: %s", text)
	}
}

func TestTypedParts(t *testing.T) {
	l := unit.NewLoader(memory(map[string]string{
		"u/terragrunt.hcl": `
terraform {
  source = "../m"
  copy_terraform_lock_file = false
  extra_arguments "e" {
    commands  = ["plan"]
    arguments = ["-x"]
    env_vars  = { A = 1 }
  }
  before_hook "b" {
    commands = ["plan"]
    execute  = ["echo"]
    if       = "false"
  }
  error_hook "e" {
    commands  = ["plan"]
    execute   = ["echo"]
    on_errors = ["x"]
  }
}
remote_state {
  backend  = "s3"
  config   = { bucket = "b" }
  generate = { path = "b.tf", if_exists = "skip" }
}
generate "g" {
  path      = "g.tf"
  if_exists = "error"
  contents  = "x"
  hcl_fmt   = false
}
errors {
  ignore "i" {
    ignorable_errors = ["!a", "b"]
    message          = "m"
  }
}
feature "f" {
  default = true
}
catalog {
  urls = ["x"]
}
exclude {
  if      = feature.f.value
  actions = ["all"]
  no_run  = true
}
prevent_destroy          = true
iam_assume_role_duration = 30
`,
	}))
	task, u := load(t, l, "u", "")
	tf, ds := u.Terraform(task)
	rs, more := u.RemoteState(task)
	gen, more2 := u.Generate(task)
	ex, more3 := u.Exclude(task)
	errs, more4 := u.Errors(task)
	sc, more5 := u.Scalars(task)
	cat, more6 := u.Catalog(task)
	fs, more7 := u.Features(task)
	if all := slices.Concat(ds, more, more2, more3, more4, more5, more6, more7); all.HasErrors() {
		t.Fatal(all.Err())
	}
	if tf.Source.Value.AsString() != "../m" || tf.CopyLockFile || tf.ExtraArguments[0].EnvVars["A"] != "1" || tf.Before[0].If || !slices.Equal(tf.Errors[0].OnErrors, []string{"x"}) {
		t.Errorf("terraform: %+v", tf)
	}
	if rs.Backend != "s3" || rs.Generate == nil || rs.Generate.Path != "b.tf" || rs.Settings["config"].At.Start.Line != 23 {
		t.Errorf("remote_state: %+v", rs)
	}
	if len(gen) != 1 || gen[0].Contents.AsString() != "x" || gen[0].CommentPrefix != "# " || gen[0].IfDisabled != "skip" || *gen[0].Format {
		t.Errorf("generate: %+v", gen)
	}
	if !ex.If || !ex.NoRun || !slices.Equal(ex.Actions, []string{"all"}) {
		t.Errorf("exclude: %+v", ex)
	}
	if len(errs.Retry) != 0 || errs.Ignore[0].Message != "m" || !slices.Equal(errs.Ignore[0].IgnorableErrors, []string{"!a", "b"}) {
		t.Errorf("errors: %+v", errs)
	}
	if !sc.PreventDestroy.Value.True() || sc.IAMRole != nil || sc.IAMAssumeRoleDuration.Value.AsBigFloat().Cmp(cty.NumberIntVal(30).AsBigFloat()) != 0 {
		t.Errorf("scalars: %+v", sc)
	}
	if !slices.Equal(cat.URLs, []string{"x"}) || len(fs) != 1 || !fs[0].Value.True() {
		t.Errorf("catalog %+v, features %+v", cat, fs)
	}
}

func TestCheckInputs(t *testing.T) {
	l := unit.NewLoader(memory(map[string]string{
		"root.hcl":         "inputs = { inherited = 1 }",
		"u/terragrunt.hcl": "import \"r\" {\n config_path = \"../root.hcl\"\n merge = true\n}\ninputs = { name = 1, nam = 2 }",
	}))
	task, u := load(t, l, "u", "")
	say := func(strict bool) (out []string) {
		for _, m := range u.CheckInputs(task, map[string]bool{"name": true, "size": true, "opt": false}, strict) {
			out = append(out, m.Severity.String()+": "+m.Summary+": "+m.Detail)
		}
		return out
	}
	loose := []string{
		`error: Missing input: The module needs a value for the variable "size", and the inputs give none. Add it to the inputs, or give the variable a default.`,
		`warning: Undeclared input: The module declares no variable "nam", so this input has no effect. Did you mean "name"?`,
	}
	if d := cmp.Diff(loose, say(false)); d != "" {
		t.Error(d)
	}
	if got := say(true); len(got) != 3 || !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, `"inherited"`) }) {
		t.Errorf("strict: %v", got)
	}
}

// A setting refers to the setting that it replaced, and to the block that imported its
// file.
func TestSettings(t *testing.T) {
	l := unit.NewLoader(memory(map[string]string{
		"a.hcl":            "inputs = { x = 1 }",
		"b.hcl":            "inputs = { x = 2 }",
		"u/terragrunt.hcl": "import \"a\" {\n config_path = \"../a.hcl\"\n merge = true\n}\nimport \"b\" {\n config_path = \"../b.hcl\"\n merge = true\n}\ninputs = { x = 3 }",
	}))
	task, u := load(t, l, "u", "")
	in, ds := u.Inputs(task, nil)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	var got []string
	for s := in[0]; s != nil; s = s.Replaced {
		via := ""
		if s.Layer.Via != nil {
			via = " via line " + string(rune('0'+s.Layer.Via.Start.Line))
		}
		got = append(got, s.At.Filename+" "+s.Layer.String()+via)
	}
	want := []string{"/w/u/terragrunt.hcl base", "/w/b.hcl import via line 5", "/w/a.hcl import via line 1"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if !u.Own(in[0]) || u.Own(in[0].Replaced) {
		t.Error("which settings are the unit's own is wrong")
	}
}

// The identity at AWS comes from one signed request.
func TestIdentityRequest(t *testing.T) {
	env := memory(map[string]string{
		"u/terragrunt.hcl": "inputs = { a = get_aws_account_id(), b = get_aws_caller_identity_arn(), c = get_aws_caller_identity_user_id() }",
	})
	env.Machine.Environ = sys.Env{"AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=secret", "AWS_SESSION_TOKEN=token", "AWS_REGION=eu-west-1"}
	env.Machine.Now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	var asked []*http.Request
	env.Do = func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r)
		body := `<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:x</Arn><UserId>uid</UserId><Account>123</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`
		return &http.Response{StatusCode: 200, Status: "200 OK", Body: io.NopCloser(strings.NewReader(body))}, nil
	}
	task, u := load(t, unit.NewLoader(env), "u", "")
	in, ds := u.Inputs(task, nil)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	got := map[string]string{}
	for _, s := range in {
		got[s.Name] = s.Value.AsString()
	}
	if !maps.Equal(got, map[string]string{"a": "123", "b": "arn:x", "c": "uid"}) || len(asked) != 1 {
		t.Fatalf("%v after %d requests", got, len(asked))
	}
	r := asked[0]
	auth := r.Header.Get("Authorization")
	if r.URL.Host != "sts.eu-west-1.amazonaws.com" || r.Header.Get("X-Amz-Security-Token") != "token" ||
		!strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102/eu-west-1/sts/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=") {
		t.Errorf("%s %s %s", r.URL, auth, r.Header)
	}
}

// With credentials per unit, values that use them are computed separately for each unit.
func TestUnitEnviron(t *testing.T) {
	files := map[string]string{"lib.hcl": "inputs = { who = run_cmd(\"who\"), same = 1 }"}
	for _, n := range []string{"a", "b"} {
		files[n+"/terragrunt.hcl"] = "import \"lib\" {\n config_path = \"../lib.hcl\"\n merge = true\n}"
	}
	env := memory(files)
	env.UnitEnviron = func(_ *demand.Task, dir string) (sys.Env, diag.List) { return sys.Env{"WHO=" + dir}, nil }
	env.Machine.Run = func(_ context.Context, c sys.Command) error {
		_, err := io.WriteString(c.Stdout, c.Env.Get("WHO")+"\n")
		return err
	}
	l := unit.NewLoader(env)
	for _, n := range []string{"a", "b"} {
		task, u := load(t, l, n, "")
		in, ds := u.Inputs(task, nil)
		if ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		if got := in[1].Value.AsString(); got != "/w/"+n {
			t.Errorf("%s runs as %s", n, got)
		}
	}
}
