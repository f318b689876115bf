package unit

import (
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// Terraform is the terraform block: where the module comes from and what is
// done around its commands.
type Terraform struct {
	Source                *Setting // nil if the unit's own folder holds the module
	Version               string
	IncludeInCopy         []string
	ExcludeFromCopy       []string
	CopyLockFile          bool // true unless the block says otherwise
	Mutable               bool
	UpdateSourceWithCAS   bool
	ExtraArguments        []ExtraArguments
	Before, After, Errors []Hook
	At                    *source.Range
}

// ExtraArguments is an extra_arguments block.
type ExtraArguments struct {
	Name             string
	Commands         []string
	Arguments        []string
	EnvVars          map[string]string
	RequiredVarFiles []string
	OptionalVarFiles []string
	Late             bool // something in it is made of outputs that are not known yet
	At               *source.Range
}

// A Hook is a before_hook, after_hook or error_hook block.
type Hook struct {
	Name           string
	Commands       []string
	Execute        []string
	WorkingDir     string // "" is the folder that the module runs in
	OnErrors       []string
	RunOnError     bool
	SuppressStdout bool
	If             bool // false: it is not run
	Late           bool // something in it is made of outputs that are not known yet
	At             *source.Range
}

// RemoteState is the remote_state block.
type RemoteState struct {
	Backend                       string
	Config                        cty.Value // an object
	Generate                      *GenerateFile
	DisableInit                   bool
	DisableDependencyOptimization bool
	Encryption                    cty.Value // an object; NilVal if not set
	At                            *source.Range
	Settings                      map[string]*Setting // each argument of the block
}

// GenerateFile says where the remote_state block writes its backend block.
type GenerateFile struct{ Path, IfExists string }

// Generate is a generate block.
type Generate struct {
	Name             string
	Path             string // relative to the folder that the module runs in
	IfExists         string // overwrite, overwrite_terragrunt, skip, error
	IfDisabled       string // skip, remove, remove_terragrunt
	Contents         cty.Value
	CommentPrefix    string
	DisableSignature bool
	Disable          bool
	Format           *bool // nil: by the file's ending
	At               *source.Range
}

// Exclude is the exclude block.
type Exclude struct {
	If                  bool
	Actions             []string
	ExcludeDependencies bool
	NoRun               bool
	Late                bool // it is made of outputs: ask ExcludeNow when they are there; if still set, they are not known yet
	At                  *source.Range
}

// Errors is the errors block. Both lists are in the order of the configuration.
type Errors struct {
	Retry  []Retry
	Ignore []Ignore
	At     *source.Range
}

// Retry is a retry block.
type Retry struct {
	Name            string
	RetryableErrors []string
	MaxAttempts     int
	SleepSeconds    int
}

// Ignore is an ignore block.
type Ignore struct {
	Name            string
	IgnorableErrors []string
	Message         string
	Signals         cty.Value // an object; NilVal if not set
}

// Engine is the engine block, which is accepted and has no effect.
type Engine struct {
	Source, Version, Type string
	At                    *source.Range
}

// Feature is a feature flag with its value.
type Feature struct {
	Name    string
	Value   cty.Value
	Default cty.Value
	At      *source.Range
}

// Catalog is the catalog block.
type Catalog struct {
	URLs            []string
	DefaultTemplate string
	NoShell         bool
	NoHooks         bool
	At              *source.Range
}

// Scalars are the arguments at the top of a unit that are no blocks. nil means
// not set.
type Scalars struct {
	DownloadDir                 *Setting
	PreventDestroy              *Setting
	IAMRole                     *Setting
	IAMAssumeRoleSessionName    *Setting
	IAMAssumeRoleDuration       *Setting
	IAMWebIdentityToken         *Setting
	TerraformBinary             *Setting
	TerraformVersionConstraint  *Setting
	TerragruntVersionConstraint *Setting
}

// decoder reads the arguments of one block.
type decoder struct {
	c    *calc
	n    node
	spec *blockSpec
	name string // how the block is called in errors
	late bool   // something that was read holds an unknown
}

// arg is an argument, converted; NilVal if it is not set. Marks are taken off.
func (d *decoder) arg(name string) cty.Value {
	in := d.n.child(d.c, name)
	a := d.spec.arg(name)
	if in == nil {
		if a.required && !d.c.needsLeaf {
			d.c.incomplete(d.n, d.spec, name, d.name)
		}
		return a.def
	}
	c := d.c.sub(d.c.leaf, d.c.full)
	v := typed(in, a).value(c)
	d.c.merge(c)
	if c.stuck() {
		return cty.NilVal
	}
	bare, _ := v.Unmark()
	if bare.IsNull() {
		if a.required {
			d.c.incomplete(d.n, d.spec, name, d.name)
		}
		return a.def
	}
	d.late = d.late || !bare.IsWhollyKnown()
	return bare
}

// incomplete reports a required argument that is missing after merging, with
// the files that contributed (rule 12).
func (c *calc) incomplete(n node, spec *blockSpec, arg, name string) {
	_, at := n.where()
	what := spec.name
	if name != "" {
		what += " " + quote(name)
	}
	m := codeErr(at, "unit/missing-argument", "Missing required argument", "The argument %q of %s is required, but no definition was found.", arg, what)
	for low := below(c, n); low != nil; low = below(c, low) {
		if _, where := low.where(); where != nil {
			m.Note(where, "merged with this, which does not set it either")
		}
	}
	c.add(m)
}

func (d *decoder) text(name string) string {
	if v := d.arg(name); isString(v) {
		return v.AsString()
	}
	return ""
}

func (d *decoder) flag(name string, unset bool) bool {
	if v := d.arg(name); v != cty.NilVal && known(v) {
		return v.True()
	}
	return unset
}

func (d *decoder) number(name string) int {
	if v := d.arg(name); v != cty.NilVal && known(v) {
		n, _ := v.AsBigFloat().Int64()
		return int(n)
	}
	return 0
}

func (d *decoder) words(name string) []string {
	v := d.arg(name)
	if v == cty.NilVal || !v.IsWhollyKnown() {
		return nil
	}
	out := make([]string, 0, v.LengthInt())
	for _, w := range v.AsValueSlice() {
		w, _ = w.Unmark()
		if isString(w) {
			out = append(out, w.AsString())
		}
	}
	return out
}

func (d *decoder) at() *source.Range {
	_, at := d.n.where()
	return at
}

// each calls f for every labeled block in a group.
func (c *calc) each(n node, spec *blockSpec, f func(label string, d *decoder)) {
	if n == nil {
		return
	}
	o := n.open(c)
	labels, ok := o.keys(c)
	if !ok && !c.stuck() && !isNull(c, o) {
		c.notAMap(spec.name, o)
		return
	}
	for _, l := range labels {
		if in := o.child(c, l); in != nil {
			c.checkArgs(in, spec)
			f(l, &decoder{c: c, n: in, spec: spec, name: l})
		}
	}
}

// one opens a block that stands at most once; nil if there is none.
func (c *calc) one(n node, spec *blockSpec) *decoder {
	if n == nil {
		return nil
	}
	o := n.open(c)
	if _, ok := o.keys(c); !ok {
		if !c.stuck() && !isNull(c, o) && !unknownNode(c, o) {
			c.notAMap(spec.name, o)
		}
		return nil
	}
	c.checkArgs(n, spec)
	return &decoder{c: c, n: n, spec: spec}
}

// checkArgs reports unknown members of a block that is written as an attribute.
func (c *calc) checkArgs(n node, spec *blockSpec) {
	names, _ := n.keys(c)
	for _, k := range names {
		if spec.arg(k) != nil || spec.block(k) != nil || ignoredMember(spec, k) {
			continue
		}
		_, at := n.where()
		hint := ""
		if near := nearest(k, spec.names()); near != "" {
			hint = " Did you mean " + quote(near) + "?"
		}
		c.errorf(at, "unit/unsupported-argument", "Unsupported argument", "%s has no argument named %q.%s", spec.name, k, hint)
	}
}

// ignoredMember tells what objects that were read from other files carry beside
// the arguments.
func ignoredMember(spec *blockSpec, name string) bool {
	switch name {
	case "name":
		return spec.label == oneLabel
	case "outputs", "inputs", "skip":
		return spec.name == "dependency"
	case "value":
		return spec.name == "feature"
	}
	return false
}

// Terraform is the unit's terraform block, nil if it has none.
func (u *Unit) Terraform(t *demand.Task) (*Terraform, diag.List) {
	c := u.on(t, true)
	spec := languageTable().unit.block("terraform")
	d := c.one(u.field(c, "terraform"), spec)
	if d == nil {
		return nil, c.ds
	}
	tf := &Terraform{
		Version: d.text("version"), IncludeInCopy: d.words("include_in_copy"), ExcludeFromCopy: d.words("exclude_from_copy"),
		CopyLockFile: d.flag("copy_terraform_lock_file", true), Mutable: d.flag("mutable", false),
		UpdateSourceWithCAS: d.flag("update_source_with_cas", false), At: d.at(),
	}
	tf.Source = u.argSetting(d, "source")
	c.each(d.n.child(c, "extra_arguments"), spec.block("extra_arguments"), func(label string, d *decoder) {
		tf.ExtraArguments = append(tf.ExtraArguments, ExtraArguments{
			Name: label, Commands: d.words("commands"), Arguments: d.words("arguments"), EnvVars: d.textMap("env_vars"),
			RequiredVarFiles: d.words("required_var_files"), OptionalVarFiles: d.words("optional_var_files"), At: d.at(),
		})
		tf.ExtraArguments[len(tf.ExtraArguments)-1].Late = d.late
	})
	hooks := func(name string) (out []Hook) {
		sub := spec.block(name)
		c.each(d.n.child(c, name), sub, func(label string, d *decoder) {
			h := Hook{Name: label, Commands: d.words("commands"), Execute: d.words("execute"), WorkingDir: d.text("working_dir"),
				SuppressStdout: d.flag("suppress_stdout", false), If: true, At: d.at()}
			if sub.arg("if") != nil {
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

func (c *calc) checkHook(h Hook) {
	if !c.failed && !c.needsOut && !h.Late && (len(h.Execute) == 0 || h.Execute[0] == "") {
		c.errorf(h.At, "unit/hook-execute", "Hook without program", "The \"execute\" of the hook %q must begin with the name of a program.", h.Name)
	}
}

func (d *decoder) textMap(name string) map[string]string {
	v := d.arg(name)
	if v == cty.NilVal || !v.IsWhollyKnown() {
		return nil
	}
	out := map[string]string{}
	for k, w := range v.AsValueMap() {
		w, _ = w.Unmark()
		if isString(w) {
			out[k] = w.AsString()
		}
	}
	return out
}

// argSetting is an argument with where it comes from, nil if it is not set.
func (u *Unit) argSetting(d *decoder, name string) *Setting {
	in := d.n.child(d.c, name)
	if in == nil {
		return nil
	}
	v := d.arg(name)
	if v == cty.NilVal {
		return nil
	}
	return u.setting(d.c, name, in, v)
}

// RemoteState is the unit's remote_state block, nil if it has none.
func (u *Unit) RemoteState(t *demand.Task) (*RemoteState, diag.List) {
	c := u.on(t, true)
	d := c.one(u.field(c, "remote_state"), languageTable().unit.block("remote_state"))
	if d == nil {
		return nil, c.ds
	}
	rs := &RemoteState{Backend: d.text("backend"), Config: d.arg("config"), DisableInit: d.flag("disable_init", false),
		DisableDependencyOptimization: d.flag("disable_dependency_optimization", false), Encryption: d.arg("encryption"),
		At: d.at(), Settings: map[string]*Setting{}}
	for i := range d.spec.args {
		if s := u.argSetting(d, d.spec.args[i].name); s != nil {
			rs.Settings[s.Name] = s
		}
	}
	if g := d.arg("generate"); g != cty.NilVal && known(g) {
		rs.Generate = c.generateFile(g, d.n.child(c, "generate"))
	}
	if v := rs.Config; v != cty.NilVal && v.IsKnown() && !v.Type().IsObjectType() && !v.Type().IsMapType() {
		c.notAMap("config", d.n.child(c, "config"))
	}
	return rs, c.ds
}

func (c *calc) generateFile(v cty.Value, n node) *GenerateFile {
	g := &GenerateFile{}
	get := func(name string) string {
		if in, ok := (valueNode{v: v}).child(c, name).(valueNode); ok && isString(in.v) {
			return in.v.AsString()
		}
		_, at := n.where()
		c.errorf(at, "unit/missing-argument", "Missing required argument", "The \"generate\" of remote_state must be an object with \"path\" and \"if_exists\"; %q is missing.", name)
		return ""
	}
	g.Path, g.IfExists = get("path"), get("if_exists")
	if g.IfExists != "" {
		_, at := n.where()
		c.oneOf(at, "if_exists", g.IfExists, "overwrite", "overwrite_terragrunt", "skip", "error")
	}
	return g
}

func (c *calc) oneOf(at *source.Range, name, given string, allowed ...string) {
	if !slices.Contains(allowed, given) {
		c.errorf(at, "unit/unknown-choice", "Invalid value", "%q cannot be %q. It must be one of %v.", name, given, allowed)
	}
}

// Generate lists the generate blocks in the order of the configuration.
func (u *Unit) Generate(t *demand.Task) ([]Generate, diag.List) {
	c := u.on(t, true)
	var out []Generate
	c.each(u.field(c, "generate"), languageTable().unit.block("generate"), func(label string, d *decoder) {
		g := Generate{Name: label, Path: d.text("path"), IfExists: d.text("if_exists"), IfDisabled: d.text("if_disabled"),
			CommentPrefix: d.text("comment_prefix"), DisableSignature: d.flag("disable_signature", false),
			Disable: d.flag("disable", false), At: d.at()}
		if in := d.n.child(c, "contents"); in != nil {
			g.Contents = typed(in, d.spec.arg("contents")).value(c)
		} else {
			d.arg("contents")
		}
		if v := d.arg("hcl_fmt"); v != cty.NilVal && known(v) {
			b := v.True()
			g.Format = &b
		}
		if !c.stuck() {
			if g.IfExists != "" {
				c.oneOf(g.At, "if_exists", g.IfExists, "overwrite", "overwrite_terragrunt", "skip", "error")
			}
			c.oneOf(g.At, "if_disabled", g.IfDisabled, "skip", "remove", "remove_terragrunt")
		}
		out = append(out, g)
	})
	return out, c.ds
}

// Exclude is the exclude block, nil if there is none, as it is before any unit
// runs.
func (u *Unit) Exclude(t *demand.Task) (*Exclude, diag.List) { return u.exclude(u.on(t, false)) }

// ExcludeNow is the exclude block with the outputs of dependencies.
func (u *Unit) ExcludeNow(t *demand.Task) (*Exclude, diag.List) { return u.exclude(u.on(t, true)) }

func (u *Unit) exclude(c *calc) (*Exclude, diag.List) {
	d := c.one(u.field(c, "exclude"), languageTable().unit.block("exclude"))
	if d == nil {
		return nil, c.ds
	}
	e := &Exclude{If: d.flag("if", false), Actions: d.words("actions"), ExcludeDependencies: d.flag("exclude_dependencies", false),
		NoRun: d.flag("no_run", false), At: d.at()}
	e.Late = d.late || c.needsOut
	if !c.stuck() && !e.Late && len(e.Actions) == 0 {
		c.errorf(e.At, "unit/exclude-actions", "Exclude without actions", "The \"actions\" of the exclude block are empty. Name the commands that the unit is excluded from, or \"all\".")
	}
	return e, c.ds
}

// Errors is the errors block, nil if there is none: then the defaults are in
// force (DefaultRetryableErrors).
func (u *Unit) Errors(t *demand.Task) (*Errors, diag.List) {
	c := u.on(t, true)
	spec := languageTable().unit.block("errors")
	d := c.one(u.field(c, "errors"), spec)
	if d == nil {
		return nil, c.ds
	}
	e := &Errors{At: d.at()}
	c.each(d.n.child(c, "retry"), spec.block("retry"), func(label string, d *decoder) {
		r := Retry{Name: label, RetryableErrors: d.words("retryable_errors"), MaxAttempts: d.number("max_attempts"), SleepSeconds: d.number("sleep_interval_sec")}
		if !c.stuck() && r.MaxAttempts < 1 {
			c.errorf(d.at(), "unit/retry", "Invalid retry block", "\"max_attempts\" must be at least 1.")
		}
		if !c.stuck() && r.SleepSeconds < 0 {
			c.errorf(d.at(), "unit/retry", "Invalid retry block", "\"sleep_interval_sec\" cannot be negative.")
		}
		e.Retry = append(e.Retry, r)
	})
	c.each(d.n.child(c, "ignore"), spec.block("ignore"), func(label string, d *decoder) {
		e.Ignore = append(e.Ignore, Ignore{Name: label, IgnorableErrors: d.words("ignorable_errors"), Message: d.text("message"), Signals: d.arg("signals")})
	})
	return e, c.ds
}

// Engine is the engine block, nil if there is none, with the warning that it
// has no effect.
func (u *Unit) Engine(t *demand.Task) (*Engine, diag.List) {
	c := u.on(t, true)
	d := c.one(u.field(c, "engine"), languageTable().unit.block("engine"))
	if d == nil {
		return nil, c.ds
	}
	e := &Engine{Source: d.text("source"), Version: d.text("version"), Type: d.text("type"), At: d.at()}
	w := diag.Warnf(e.At, "Engine has no effect", "Terrace runs units in its own process, so the engine %q is not used.", e.Source)
	w[0].Code = "unit/engine"
	c.add(w)
	return e, c.ds
}

// Features lists the feature flags by name.
func (u *Unit) Features(t *demand.Task) ([]Feature, diag.List) {
	c := u.on(t, false)
	var out []Feature
	n := u.field(c, "feature")
	c.each(n, languageTable().unit.block("feature"), func(label string, d *decoder) {
		def := d.arg("default")
		out = append(out, Feature{Name: label, Value: c.feature(label, d.n).value(c), Default: def, At: d.at()})
	})
	return out, c.ds
}

// Catalog is the catalog block of the unit's own file, nil if there is none.
func (u *Unit) Catalog(t *demand.Task) (*Catalog, diag.List) {
	c := u.on(t, false)
	d := c.one(ownFields(u.e.env()).members["catalog"], languageTable().unit.block("catalog"))
	if d == nil {
		return nil, c.ds
	}
	return &Catalog{URLs: d.words("urls"), DefaultTemplate: d.text("default_template"), NoShell: d.flag("no_shell", false),
		NoHooks: d.flag("no_hooks", false), At: d.at()}, c.ds
}

// Scalars computes the arguments at the top of the unit but its inputs.
func (u *Unit) Scalars(t *demand.Task) (*Scalars, diag.List) {
	c := u.on(t, true)
	spec := languageTable().unit
	d := &decoder{c: c, n: u.fields(c), spec: spec}
	get := func(name string) *Setting { return u.argSetting(d, name) }
	return &Scalars{
		DownloadDir: get("download_dir"), PreventDestroy: get("prevent_destroy"), IAMRole: get("iam_role"),
		IAMAssumeRoleSessionName: get("iam_assume_role_session_name"), IAMAssumeRoleDuration: get("iam_assume_role_duration"),
		IAMWebIdentityToken: get("iam_web_identity_token"), TerraformBinary: get("terraform_binary"),
		TerraformVersionConstraint: get("terraform_version_constraint"), TerragruntVersionConstraint: get("terragrunt_version_constraint"),
	}, c.ds
}

// leafFields is the effective configuration of the leaf that is computed for.
func (c *calc) leafFields() *group {
	if c.leaf.mod != nil {
		return (&Unit{l: c.l, e: c.leaf, Module: *c.leaf.mod}).moduleFields(c)
	}
	return c.conf(c.leaf)
}

// textOf is a string in a configuration, by the steps that lead to it, or "".
func (c *calc) textOf(n node, steps ...string) string {
	for _, s := range steps {
		if n = n.open(c).child(c, s); n == nil || c.stuck() {
			return ""
		}
	}
	v, _ := n.value(c).Unmark()
	if isString(v) {
		return v.AsString()
	}
	return ""
}
