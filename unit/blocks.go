package unit

import (
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// Terraform is the terraform block: the source of the module, and the hooks and arguments
// of its commands.
type Terraform struct {
	Source                *Setting // nil if the module is in the unit's own directory
	Version               string
	IncludeInCopy         []string
	ExcludeFromCopy       []string
	CopyLockFile          bool // the default is true
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
	Late             bool // some argument depends on outputs that are not known yet
	At               *source.Range
}

// A Hook is a before_hook, after_hook or error_hook block.
type Hook struct {
	Name           string
	Commands       []string
	Execute        []string
	WorkingDir     string // "" is the directory that the module runs in
	OnErrors       []string
	RunOnError     bool
	SuppressStdout bool
	If             bool // whether the hook is run
	Late           bool // some argument depends on outputs that are not known yet
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
	Settings                      map[string]*Setting      // each argument of the block
	Places                        map[string]*source.Range // ranges of the arguments in Config, by name, if they have one
}

// GenerateFile is the file into which the remote_state block writes its backend block.
type GenerateFile struct {
	Path, IfExists string
	Late           bool // an argument depends on outputs that are not known yet
	HandedIn       bool // the type of the backend is a value that messages do not show
}

// Generate is a generate block.
type Generate struct {
	Name             string
	Path             string // relative to the directory that the module runs in
	IfExists         string // overwrite, overwrite_terragrunt, skip, error
	IfDisabled       string // skip, remove, remove_terragrunt
	Contents         cty.Value
	HandedIn         bool // Contents includes a value that messages do not show, such as an environment variable
	CommentPrefix    string
	DisableSignature bool
	Disable          bool
	Format           *bool // nil: by the extension of the file
	At               *source.Range
}

// Exclude is the exclude block.
type Exclude struct {
	If                  bool
	Actions             []string
	ExcludeDependencies bool
	NoRun               bool
	// Set lists which of exclude_dependencies and no_run are set in the file, to any value.
	Set  []string
	Late bool // depends on outputs. ExcludeNow computes it with them. If Late is still set then, they are not known.
	At   *source.Range
}

// Errors is the errors block. Both lists have the order of the configuration.
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

// Scalars are the arguments at the top of a unit. nil means that an argument is not set.
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
	c    *evaluator
	n    node
	spec *syntax.BlockSpec
	name string // the name of the block in errors
	late bool   // some argument that was read has an unknown value
}

// Arg returns an argument, converted and without marks. It returns NilVal if the argument
// is not set.
func (d *decoder) Arg(name string) cty.Value {
	in := d.n.child(d.c, name)
	a := d.spec.Arg(name)
	if in == nil {
		if a.Required && !d.c.needsLeaf {
			d.c.incomplete(d.n, d.spec, name, d.name)
		}
		return a.Def
	}
	c := d.c.sub(d.c.leaf, d.c.full)
	v := typed(in, a).value(c)
	d.c.merge(c)
	if c.stuck() {
		return cty.NilVal
	}
	d.c.redact(in, v, c.facts)
	bare, _ := v.Unmark()
	if bare.IsNull() {
		if a.Required {
			d.c.incomplete(d.n, d.spec, name, d.name)
		}
		return a.Def
	}
	d.late = d.late || !bare.IsWhollyKnown()
	return bare
}

// incomplete reports a required argument that is missing after merging, with the merged
// files (rule 12).
func (c *evaluator) incomplete(n node, spec *syntax.BlockSpec, arg, name string) {
	_, at := n.where()
	what := spec.Name
	if name != "" {
		what += " " + syntax.Quote(name)
	}
	m := codeErr(at, diag.CodeUnitMissingArgument, "Missing required argument", "The argument %q of %s is required, but no definition was found.", arg, what)
	for low := below(c, n); low != nil; low = below(c, low) {
		if _, where := low.where(); where != nil {
			m.Note(where, "merged with this, which does not set it either")
		}
	}
	c.add(m)
}

func (d *decoder) text(name string) string {
	if v := d.Arg(name); syntax.IsString(v) {
		return v.AsString()
	}
	return ""
}

func (d *decoder) flag(name string, unset bool) bool {
	if v := d.Arg(name); v != cty.NilVal && syntax.Known(v) {
		return v.True()
	}
	return unset
}

func (d *decoder) number(name string) int {
	if v := d.Arg(name); v != cty.NilVal && syntax.Known(v) {
		n, _ := v.AsBigFloat().Int64()
		return int(n)
	}
	return 0
}

func (d *decoder) words(name string) []string {
	v := d.Arg(name)
	if v == cty.NilVal || !v.IsWhollyKnown() {
		return nil
	}
	out := make([]string, 0, v.LengthInt())
	for _, w := range v.AsValueSlice() {
		w, _ = w.Unmark()
		if syntax.IsString(w) {
			out = append(out, w.AsString())
		}
	}
	return out
}

func (d *decoder) At() *source.Range {
	_, at := d.n.where()
	return at
}

// each calls f for every labeled block of a type.
func (c *evaluator) each(n node, spec *syntax.BlockSpec, f func(label string, d *decoder)) {
	if n == nil {
		return
	}
	o := n.open(c)
	labels, ok := o.keys(c)
	if !ok && !c.stuck() && !isNull(c, o) {
		c.notAMap(spec.Name, o)
		return
	}
	for _, l := range labels {
		if in := o.child(c, l); in != nil {
			c.checkArgs(in, spec)
			f(l, &decoder{c: c, n: in, spec: spec, name: l})
		}
	}
}

// one opens the block of a type that may occur once. It returns nil if there is none.
func (c *evaluator) one(n node, spec *syntax.BlockSpec) *decoder {
	if n == nil {
		return nil
	}
	o := n.open(c)
	if _, ok := o.keys(c); !ok {
		if !c.stuck() && !isNull(c, o) && !unknownNode(c, o) {
			c.notAMap(spec.Name, o)
		}
		return nil
	}
	c.checkArgs(n, spec)
	return &decoder{c: c, n: n, spec: spec}
}

// checkArgs reports unsupported members of a block that is written as an attribute.
func (c *evaluator) checkArgs(n node, spec *syntax.BlockSpec) {
	names, _ := n.keys(c)
	for _, k := range names {
		if spec.Arg(k) != nil || spec.Block(k) != nil || ignoredMember(spec, k) {
			continue
		}
		_, at := n.where()
		hint := ""
		if near := syntax.Nearest(k, spec.Names()); near != "" {
			hint = " Did you mean " + syntax.Quote(near) + "?"
		}
		c.errorf(at, diag.CodeUnitUnsupportedArgument, "Unsupported argument", "%s has no argument named %q.%s", spec.Name, k, hint)
	}
}

// ignoredMember reports whether an object that was read from another file may have this
// member besides the arguments.
func ignoredMember(spec *syntax.BlockSpec, name string) bool {
	return name == "name" && spec.Label == syntax.OneLabel || spec.Member(name) != nil || spec.ShownArg(name) != nil
}

func (d *decoder) textMap(name string) map[string]string {
	v := d.Arg(name)
	if v == cty.NilVal || !v.IsWhollyKnown() {
		return nil
	}
	out := map[string]string{}
	for k, w := range v.AsValueMap() {
		w, _ = w.Unmark()
		if syntax.IsString(w) {
			out[k] = w.AsString()
		}
	}
	return out
}
