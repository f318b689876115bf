package syntax

import (
	"sync"

	"github.com/zclconf/go-cty/cty"
)

// Names of files with a meaning.
const (
	DefaultName          = "terragrunt.hcl"
	DefaultJSONName      = "terragrunt.hcl.json"
	StackName            = "terragrunt.stack.hcl"
	ValuesName           = "terragrunt.values.hcl"
	AutoIncludeName      = "terragrunt.autoinclude.hcl"
	StackAutoIncludeName = "terragrunt.autoinclude.stack.hcl"
)

// An ArgSpec is one argument of a block.
type ArgSpec struct {
	Name     string
	Ty       cty.Type // cty.DynamicPseudoType for anything
	Required bool
	Def      cty.Value // what the argument is when nothing gives it, in rendered objects; NilVal: null
	Path     bool      // relative to the file's folder, and so rebased by imports
	Hidden   bool      // not part of rendered objects
}

// A BlockSpec is one kind of block: the schema that files are read with, and
// what the merge rules need to know. Source: the unit language's reference.
type BlockSpec struct {
	Name    string
	Label   labelling
	many    bool // several blocks of one label or without label may stand in a file
	asAttr  bool // may be written as an attribute with an object
	Open    bool // any argument
	raw     bool // the body is kept unread
	Ordered bool // rendered as a list of objects that carry their labels
	Args    []ArgSpec
	Blocks  []*BlockSpec
}

type labelling uint8

const (
	NoLabel labelling = iota
	OneLabel
	maybeLabel
)

func (s *BlockSpec) Arg(name string) *ArgSpec {
	for i := range s.Args {
		if s.Args[i].Name == name {
			return &s.Args[i]
		}
	}
	return nil
}

func (s *BlockSpec) Block(name string) *BlockSpec {
	for _, b := range s.Blocks {
		if b.Name == name {
			return b
		}
	}
	return nil
}

var (
	TStrings   = cty.List(cty.String)
	tStringMap = cty.Map(cty.String)
)

func str(name string) ArgSpec      { return ArgSpec{Name: name, Ty: cty.String} }
func boolean(name string) ArgSpec  { return ArgSpec{Name: name, Ty: cty.Bool} }
func number(name string) ArgSpec   { return ArgSpec{Name: name, Ty: cty.Number} }
func words(name string) ArgSpec    { return ArgSpec{Name: name, Ty: TStrings} }
func anything(name string) ArgSpec { return ArgSpec{Name: name, Ty: cty.DynamicPseudoType} }

func (a ArgSpec) need() ArgSpec          { a.Required = true; return a }
func (a ArgSpec) or(v cty.Value) ArgSpec { a.Def = v; return a }
func (a ArgSpec) rebased() ArgSpec       { a.Path = true; return a }
func (a ArgSpec) unseen() ArgSpec        { a.Hidden = true; return a }
func plainBlock(name string, args ...ArgSpec) *BlockSpec {
	return &BlockSpec{Name: name, Args: args}
}
func labelled(name string, args ...ArgSpec) *BlockSpec {
	return &BlockSpec{Name: name, Label: OneLabel, Args: args}
}

// languages holds the schema of each kind of file.
type languages struct {
	Unit, Stack, Auto, StackPart *BlockSpec
}

var Language = sync.OnceValue(func() *languages {
	no := cty.False
	hook := func(name string, rest ...ArgSpec) *BlockSpec {
		b := labelled(name, append([]ArgSpec{words("commands").need(), words("execute").need(), str("working_dir"), boolean("suppress_stdout")}, rest...)...)
		b.many = true
		return b
	}
	terraform := plainBlock("terraform", str("source").rebased(), str("version").unseen(), words("include_in_copy"), words("exclude_from_copy"),
		boolean("copy_terraform_lock_file"), boolean("mutable").unseen(), boolean("update_source_with_cas").unseen())
	extra := labelled("extra_arguments", words("commands").need(), words("arguments"), ArgSpec{Name: "env_vars", Ty: tStringMap},
		words("required_var_files"), words("optional_var_files"))
	extra.many = true
	terraform.Blocks = []*BlockSpec{
		extra,
		hook("before_hook", boolean("run_on_error"), boolean("if")),
		hook("after_hook", boolean("run_on_error"), boolean("if")),
		hook("error_hook", words("on_errors").need()),
	}
	terraform.asAttr = true
	remote := plainBlock("remote_state", str("backend").need(), anything("config").need(), anything("generate"),
		boolean("disable_init").or(no), boolean("disable_dependency_optimization").or(no), anything("encryption"))
	remote.asAttr = true
	dependency := labelled("dependency", str("config_path").need().rebased(), boolean("enabled"), boolean("skip_outputs"),
		anything("mock_outputs"), words("mock_outputs_allowed_terraform_commands"), str("mock_outputs_merge_strategy_with_state"),
		boolean("mock_outputs_merge_with_state"))
	dependency.asAttr, dependency.many = true, true
	dependencies := plainBlock("dependencies", words("paths").need().rebased())
	generate := labelled("generate", str("path").need(), str("if_exists").need(), str("contents").need(), str("comment_prefix").or(cty.StringVal("# ")),
		boolean("disable_signature").or(no), boolean("disable").or(no), str("if_disabled").or(cty.StringVal("skip")), boolean("hcl_fmt"), boolean("mutable"))
	generate.asAttr = true
	feature := labelled("feature", anything("default").need())
	feature.asAttr = true
	exclude := plainBlock("exclude", boolean("if").need(), words("actions").need(), boolean("exclude_dependencies").or(no), boolean("no_run").or(no))
	exclude.asAttr = true
	retry := labelled("retry", words("retryable_errors").need(), number("max_attempts").need(), number("sleep_interval_sec").need())
	ignore := labelled("ignore", words("ignorable_errors").need(), str("message").or(cty.StringVal("")), ArgSpec{Name: "signals", Ty: cty.Map(cty.DynamicPseudoType), Def: cty.EmptyObjectVal})
	retry.Ordered, ignore.Ordered, retry.many, ignore.many = true, true, true, true
	errors := plainBlock("errors")
	errors.Blocks = []*BlockSpec{retry, ignore}
	errors.asAttr = true
	engine := plainBlock("engine", str("source").need(), str("version"), str("type"), anything("meta"))
	include := &BlockSpec{Name: "include", Label: maybeLabel, many: true, Args: []ArgSpec{str("path").need(), boolean("expose"), str("merge_strategy")}}
	imports := labelled("import", str("config_path").need(), boolean("merge"), boolean("deep_merge"))
	locals := plainBlock("locals")
	locals.Open = true
	catalog := plainBlock("catalog", words("urls").need(), str("default_template"), boolean("no_shell"), boolean("no_hooks"))
	module := labelled("module")
	module.Open = true

	scalars := []ArgSpec{
		anything("inputs"), str("download_dir"), boolean("prevent_destroy"), str("iam_role"), str("iam_assume_role_session_name"),
		str("iam_web_identity_token"), number("iam_assume_role_duration"), str("terraform_binary"),
		str("terraform_version_constraint"), str("terragrunt_version_constraint"),
	}
	unit := &BlockSpec{Name: "unit file", Args: scalars, Blocks: []*BlockSpec{
		terraform, remote, dependency, dependencies, generate, feature, exclude, errors, engine, include, imports, locals, catalog, module,
	}}
	auto := &BlockSpec{Name: "autoinclude file", Args: scalars, Blocks: []*BlockSpec{
		terraform, remote, dependency, dependencies, generate, feature, exclude, errors, engine, include, locals,
	}}
	l := &languages{Unit: unit, Auto: auto}
	l.Stack, l.StackPart = stackLanguages(include, locals)
	return l
})

// stackLanguages is the schema of stack files.
func stackLanguages(include, locals *BlockSpec) (stack, part *BlockSpec) {
	args := []ArgSpec{
		str("source").need(), str("path").need(), anything("values"), boolean("no_dot_terragrunt_stack"),
		boolean("no_validation"), boolean("mutable"), boolean("update_source_with_cas"),
	}
	item := func(name string) *BlockSpec {
		b := labelled(name, args...)
		b.Blocks = []*BlockSpec{{Name: "autoinclude", raw: true}}
		return b
	}
	items := []*BlockSpec{item("unit"), item("stack")}
	stack = &BlockSpec{Name: "stack file", Blocks: append(items, include, locals)}
	part = &BlockSpec{Name: "included stack file", Blocks: items}
	return stack, part
}
