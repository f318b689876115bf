package unit

import (
	"slices"
	"strconv"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// Terraform returns the unit's terraform block, or nil if it has none.
func (u *Unit) Terraform(t *demand.Task) (*Terraform, diag.List) {
	c := u.on(t, true)
	spec := syntax.Language().Unit.Block("terraform")
	d := c.one(u.field(c, "terraform"), spec)
	if d == nil {
		return nil, c.ds
	}
	tf := &Terraform{
		Version: d.text("version"), IncludeInCopy: d.words("include_in_copy"), ExcludeFromCopy: d.words("exclude_from_copy"),
		CopyLockFile: d.flag("copy_terraform_lock_file", true), Mutable: d.flag("mutable", false),
		UpdateSourceWithCAS: d.flag("update_source_with_cas", false), At: d.At(),
	}
	tf.Source = u.argSetting(d, "source")
	c.each(d.n.child(c, "extra_arguments"), spec.Block("extra_arguments"), func(label string, d *decoder) {
		tf.ExtraArguments = append(tf.ExtraArguments, ExtraArguments{
			Name: label, Commands: d.words("commands"), Arguments: d.words("arguments"), EnvVars: d.textMap("env_vars"),
			RequiredVarFiles: d.words("required_var_files"), OptionalVarFiles: d.words("optional_var_files"), At: d.At(),
		})
		tf.ExtraArguments[len(tf.ExtraArguments)-1].Late = d.late
	})
	hooks := func(name string) (out []Hook) {
		sub := spec.Block(name)
		c.each(d.n.child(c, name), sub, func(label string, d *decoder) {
			h := Hook{Name: label, Commands: d.words("commands"), Execute: d.words("execute"), WorkingDir: d.text("working_dir"),
				SuppressStdout: d.flag("suppress_stdout", false), If: true, At: d.At()}
			if sub.Arg("if") != nil {
				h.If, h.RunOnError = d.flag("if", true), d.flag("run_on_error", false)
			} else {
				h.OnErrors = d.words("on_errors")
			}
			h.Late = d.late
			c.checkHook(h)
			out = append(out, h)
		})
		return out
	}
	tf.Before, tf.After, tf.Errors = hooks("before_hook"), hooks("after_hook"), hooks("error_hook")
	return tf, c.ds
}

func (c *evaluator) checkHook(h Hook) {
	if !c.failed && !c.needsOut && !h.Late && (len(h.Execute) == 0 || h.Execute[0] == "") {
		c.errorf(h.At, diag.CodeUnitHookExecute, "Hook without program", "The \"execute\" of the hook %q must begin with the name of a program.", h.Name)
	}
}

// argSetting returns an argument with its origin, or nil if it is not set.
func (u *Unit) argSetting(d *decoder, name string) *Setting {
	in := d.n.child(d.c, name)
	if in == nil {
		return nil
	}
	v := d.Arg(name)
	if v == cty.NilVal {
		return nil
	}
	s := u.setting(d.c, name, in, v)
	if text := s.Text(); text != "" {
		if q := d.c.quoted(in, text); q != strconv.Quote(text) {
			s.shown = q
		}
	}
	return s
}

// RemoteState returns the unit's remote_state block, or nil if it has none.
func (u *Unit) RemoteState(t *demand.Task) (*RemoteState, diag.List) {
	c := u.on(t, true)
	d := c.one(u.field(c, "remote_state"), syntax.Language().Unit.Block("remote_state"))
	if d == nil {
		return nil, c.ds
	}
	rs := &RemoteState{Backend: d.text("backend"), Config: d.Arg("config"), DisableInit: d.flag("disable_init", false),
		DisableDependencyOptimization: d.flag("disable_dependency_optimization", false), Encryption: d.Arg("encryption"),
		At: d.At(), Settings: map[string]*Setting{}}
	for i := range d.spec.Args {
		if s := u.argSetting(d, d.spec.Args[i].Name); s != nil {
			rs.Settings[s.Name] = s
		}
	}
	if g := d.Arg("generate"); g != cty.NilVal && syntax.Known(g) {
		rs.Generate = c.generateFile(g, d.n.child(c, "generate"))
		if in := d.n.child(c, "backend"); in != nil {
			rs.Generate.HandedIn = c.handover(true).Of(in)
		}
	}
	rs.Places = c.places(rs.Config, d.n.child(c, "config"))
	if v := rs.Config; v != cty.NilVal && v.IsKnown() && !v.Type().IsObjectType() && !v.Type().IsMapType() {
		c.notAMap("config", d.n.child(c, "config"))
	}
	return rs, c.ds
}

// places returns the ranges of the attributes of an object.
func (c *evaluator) places(v cty.Value, n node) map[string]*source.Range {
	out := map[string]*source.Range{}
	if v == cty.NilVal || n == nil || !v.Type().IsObjectType() {
		return out
	}
	for name := range v.Type().AttributeTypes() {
		if child := n.child(c, name); child != nil {
			if _, at := child.where(); at != nil {
				out[name] = at
			}
		}
	}
	return out
}

func (c *evaluator) generateFile(v cty.Value, n node) *GenerateFile {
	g := &GenerateFile{}
	get := func(name string) string {
		if in, ok := (valueNode{v: v}).child(c, name).(valueNode); ok && syntax.IsString(in.v) {
			return in.v.AsString()
		} else if ok && !in.v.IsKnown() {
			g.Late = true
			return ""
		}
		_, at := n.where()
		c.errorf(at, diag.CodeUnitMissingArgument, "Missing required argument", "The \"generate\" of remote_state must be an object with \"path\" and \"if_exists\"; %q is missing.", name)
		return ""
	}
	g.Path, g.IfExists = get("path"), get("if_exists")
	if g.IfExists != "" {
		_, at := n.where()
		c.oneOf(at, "if_exists", n, g.IfExists, "overwrite", "overwrite_terragrunt", "skip", "error")
	}
	return g
}

// oneOf reports an argument whose value is not allowed. n is the node of the argument, or
// of the object that contains it.
func (c *evaluator) oneOf(at *source.Range, name string, n node, given string, allowed ...string) {
	if !slices.Contains(allowed, given) {
		c.errorf(at, diag.CodeUnitUnknownChoice, "Invalid value", "%q cannot be %s. It must be one of %v.", name, c.quoted(n, given), allowed)
	}
}

// Generate returns the generate blocks in the order of the configuration.
func (u *Unit) Generate(t *demand.Task) ([]Generate, diag.List) {
	c := u.on(t, true)
	var out []Generate
	c.each(u.field(c, "generate"), syntax.Language().Unit.Block("generate"), func(label string, d *decoder) {
		g := Generate{Name: label, Path: d.text("path"), IfExists: d.text("if_exists"), IfDisabled: d.text("if_disabled"),
			CommentPrefix: d.text("comment_prefix"), DisableSignature: d.flag("disable_signature", false),
			Disable: d.flag("disable", false), At: d.At()}
		if in := d.n.child(c, "contents"); in != nil {
			g.Contents = typed(in, d.spec.Arg("contents")).value(c)
			g.HandedIn = c.handover(true).Of(in)
			if in := d.n.child(c, "comment_prefix"); in != nil {
				g.HandedIn = g.HandedIn || c.handover(true).Of(in)
			}
		} else {
			d.Arg("contents")
		}
		if v := d.Arg("hcl_fmt"); v != cty.NilVal && syntax.Known(v) {
			b := v.True()
			g.Format = &b
		}
		if !c.stuck() {
			if g.IfExists != "" {
				c.oneOf(g.At, "if_exists", d.n.child(c, "if_exists"), g.IfExists, "overwrite", "overwrite_terragrunt", "skip", "error")
			}
			c.oneOf(g.At, "if_disabled", d.n.child(c, "if_disabled"), g.IfDisabled, "skip", "remove", "remove_terragrunt")
		}
		out = append(out, g)
	})
	return out, c.ds
}

// Exclude returns the exclude block, computed without outputs, or nil if there is none.
func (u *Unit) Exclude(t *demand.Task) (*Exclude, diag.List) { return u.exclude(u.on(t, false)) }

// ExcludeNow returns the exclude block, computed with the outputs of dependencies.
func (u *Unit) ExcludeNow(t *demand.Task) (*Exclude, diag.List) { return u.exclude(u.on(t, true)) }

func (u *Unit) exclude(c *evaluator) (*Exclude, diag.List) {
	d := c.one(u.field(c, "exclude"), syntax.Language().Unit.Block("exclude"))
	if d == nil {
		return nil, c.ds
	}
	e := &Exclude{If: d.flag("if", false), Actions: d.words("actions"), ExcludeDependencies: d.flag("exclude_dependencies", false),
		NoRun: d.flag("no_run", false), At: d.At()}
	e.Late = d.late || c.needsOut
	for _, name := range [...]string{"exclude_dependencies", "no_run"} {
		if d.n.child(c, name) != nil {
			e.Set = append(e.Set, name)
		}
	}
	if !c.stuck() && !e.Late && len(e.Actions) == 0 {
		c.errorf(e.At, diag.CodeUnitExcludeActions, "Exclude without actions", "The \"actions\" of the exclude block are empty. Name the commands that the unit is excluded from, or \"all\".")
	}
	return e, c.ds
}

// Errors returns the errors block, or nil if there is none. In that case the defaults apply
// (functions.DefaultRetryableErrors).
func (u *Unit) Errors(t *demand.Task) (*Errors, diag.List) {
	c := u.on(t, true)
	spec := syntax.Language().Unit.Block("errors")
	d := c.one(u.field(c, "errors"), spec)
	if d == nil {
		return nil, c.ds
	}
	e := &Errors{At: d.At()}
	c.each(d.n.child(c, "retry"), spec.Block("retry"), func(label string, d *decoder) {
		r := Retry{Name: label, RetryableErrors: d.words("retryable_errors"), MaxAttempts: d.number("max_attempts"), SleepSeconds: d.number("sleep_interval_sec")}
		if !c.stuck() && r.MaxAttempts < 1 && syntax.Known(d.Arg("max_attempts")) {
			c.errorf(d.At(), diag.CodeUnitRetry, "Invalid retry block", "\"max_attempts\" must be at least 1.")
		}
		if !c.stuck() && r.SleepSeconds < 0 {
			c.errorf(d.At(), diag.CodeUnitRetry, "Invalid retry block", "\"sleep_interval_sec\" cannot be negative.")
		}
		e.Retry = append(e.Retry, r)
	})
	c.each(d.n.child(c, "ignore"), spec.Block("ignore"), func(label string, d *decoder) {
		e.Ignore = append(e.Ignore, Ignore{Name: label, IgnorableErrors: d.words("ignorable_errors"), Message: d.text("message"), Signals: d.Arg("signals")})
	})
	return e, c.ds
}

// Engine returns the engine block, with a warning that it has no effect, or nil if there is
// none.
func (u *Unit) Engine(t *demand.Task) (*Engine, diag.List) {
	c := u.on(t, true)
	d := c.one(u.field(c, "engine"), syntax.Language().Unit.Block("engine"))
	if d == nil {
		return nil, c.ds
	}
	e := &Engine{Source: d.text("source"), Version: d.text("version"), Type: d.text("type"), At: d.At()}
	w := diag.Warnf(diag.CodeUnitEngine, e.At, "Engine has no effect", "Terrace runs units in its own process, so the engine %q is not used.", e.Source)
	c.add(w)
	return e, c.ds
}

// Features returns the feature flags in alphabetical order.
func (u *Unit) Features(t *demand.Task) ([]Feature, diag.List) {
	c := u.on(t, false)
	var out []Feature
	n := u.field(c, "feature")
	c.each(n, syntax.Language().Unit.Block("feature"), func(label string, d *decoder) {
		def := d.Arg("default")
		out = append(out, Feature{Name: label, Value: c.feature(label, d.n).value(c), Default: def, At: d.At()})
	})
	return out, c.ds
}

// Catalog returns the catalog block of the unit's own file, or nil if there is none.
func (u *Unit) Catalog(t *demand.Task) (*Catalog, diag.List) {
	c := u.on(t, false)
	d := c.one(ownFields(u.e.env()).member("catalog"), syntax.Language().Unit.Block("catalog"))
	if d == nil {
		return nil, c.ds
	}
	return &Catalog{URLs: d.words("urls"), DefaultTemplate: d.text("default_template"), NoShell: d.flag("no_shell", false),
		NoHooks: d.flag("no_hooks", false), At: d.At()}, c.ds
}

// Scalars computes the arguments at the top of the unit, except inputs.
func (u *Unit) Scalars(t *demand.Task) (*Scalars, diag.List) {
	c := u.on(t, true)
	spec := syntax.Language().Unit
	d := &decoder{c: c, n: u.fields(c), spec: spec}
	get := func(name string) *Setting { return u.argSetting(d, name) }
	return &Scalars{
		DownloadDir: get("download_dir"), PreventDestroy: get("prevent_destroy"), IAMRole: get("iam_role"),
		IAMAssumeRoleSessionName: get("iam_assume_role_session_name"), IAMAssumeRoleDuration: get("iam_assume_role_duration"),
		IAMWebIdentityToken: get("iam_web_identity_token"), TerraformBinary: get("terraform_binary"),
		TerraformVersionConstraint: get("terraform_version_constraint"), TerragruntVersionConstraint: get("terragrunt_version_constraint"),
	}, c.ds
}

// leafFields returns the effective configuration of the computation's leaf.
func (c *evaluator) leafFields() *group {
	if c.leaf.of.mod != nil {
		return (&Unit{l: c.l, e: c.leaf, Module: *c.leaf.of.mod}).moduleFields(c)
	}
	return c.merged(c.leaf)
}

// textOf returns the string at a path of a configuration, or "".
func (c *evaluator) textOf(n node, steps ...string) string {
	for _, s := range steps {
		if n = n.open(c).child(c, s); n == nil || c.stuck() {
			return ""
		}
	}
	v, _ := n.value(c).Unmark()
	if syntax.IsString(v) {
		return v.AsString()
	}
	return ""
}

// Defaults for units without an errors block: the number of attempts, and the pause between
// them. See functions.DefaultRetryableErrors for the errors.
const (
	DefaultMaxAttempts  = 3
	DefaultSleepSeconds = 5
)
