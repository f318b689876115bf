package unit

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

// An argSpec is one argument of a block.
type argSpec struct {
	name     string
	ty       cty.Type // cty.DynamicPseudoType for anything
	required bool
	def      cty.Value // what the argument is when nothing gives it, in rendered objects; NilVal: null
	path     bool      // relative to the file's folder, and so rebased by imports
	hidden   bool      // not part of rendered objects
}

// A blockSpec is one kind of block: the schema that files are read with, and
// what the merge rules need to know. Source: the unit language's reference.
type blockSpec struct {
	name    string
	label   labelling
	many    bool // several blocks of one label or without label may stand in a file
	asAttr  bool // may be written as an attribute with an object
	open    bool // any argument
	raw     bool // the body is kept unread
	ordered bool // rendered as a list of objects that carry their labels
	args    []argSpec
	blocks  []*blockSpec
}

type labelling uint8

const (
	noLabel labelling = iota
	oneLabel
	maybeLabel
)

func (s *blockSpec) arg(name string) *argSpec {
	for i := range s.args {
		if s.args[i].name == name {
			return &s.args[i]
		}
	}
	return nil
}

func (s *blockSpec) block(name string) *blockSpec {
	for _, b := range s.blocks {
		if b.name == name {
			return b
		}
	}
	return nil
}

var (
	tStrings   = cty.List(cty.String)
	tStringMap = cty.Map(cty.String)
)

func str(name string) argSpec      { return argSpec{name: name, ty: cty.String} }
func boolean(name string) argSpec  { return argSpec{name: name, ty: cty.Bool} }
func number(name string) argSpec   { return argSpec{name: name, ty: cty.Number} }
func words(name string) argSpec    { return argSpec{name: name, ty: tStrings} }
func anything(name string) argSpec { return argSpec{name: name, ty: cty.DynamicPseudoType} }

func (a argSpec) need() argSpec          { a.required = true; return a }
func (a argSpec) or(v cty.Value) argSpec { a.def = v; return a }
func (a argSpec) rebased() argSpec       { a.path = true; return a }
func (a argSpec) unseen() argSpec        { a.hidden = true; return a }
func plainBlock(name string, args ...argSpec) *blockSpec {
	return &blockSpec{name: name, args: args}
}
func labelled(name string, args ...argSpec) *blockSpec {
	return &blockSpec{name: name, label: oneLabel, args: args}
}

// languages holds the schema of each kind of file.
type languages struct {
	unit, stack, auto, stackPart *blockSpec
}

var languageTable = sync.OnceValue(func() *languages {
	no := cty.False
	hook := func(name string, rest ...argSpec) *blockSpec {
		b := labelled(name, append([]argSpec{words("commands").need(), words("execute").need(), str("working_dir"), boolean("suppress_stdout")}, rest...)...)
		b.many = true
		return b
	}
	terraform := plainBlock("terraform", str("source").rebased(), str("version").unseen(), words("include_in_copy"), words("exclude_from_copy"),
		boolean("copy_terraform_lock_file"), boolean("mutable").unseen(), boolean("update_source_with_cas").unseen())
	extra := labelled("extra_arguments", words("commands").need(), words("arguments"), argSpec{name: "env_vars", ty: tStringMap},
		words("required_var_files"), words("optional_var_files"))
	extra.many = true
	terraform.blocks = []*blockSpec{
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
	ignore := labelled("ignore", words("ignorable_errors").need(), str("message").or(cty.StringVal("")), argSpec{name: "signals", ty: cty.Map(cty.DynamicPseudoType), def: cty.EmptyObjectVal})
	retry.ordered, ignore.ordered, retry.many, ignore.many = true, true, true, true
	errors := plainBlock("errors")
	errors.blocks = []*blockSpec{retry, ignore}
	errors.asAttr = true
	engine := plainBlock("engine", str("source").need(), str("version"), str("type"), anything("meta"))
	include := &blockSpec{name: "include", label: maybeLabel, many: true, args: []argSpec{str("path").need(), boolean("expose"), str("merge_strategy")}}
	imports := labelled("import", str("config_path").need(), boolean("merge"), boolean("deep_merge"))
	locals := plainBlock("locals")
	locals.open = true
	catalog := plainBlock("catalog", words("urls").need(), str("default_template"), boolean("no_shell"), boolean("no_hooks"))
	module := labelled("module")
	module.open = true

	scalars := []argSpec{
		anything("inputs"), str("download_dir"), boolean("prevent_destroy"), str("iam_role"), str("iam_assume_role_session_name"),
		str("iam_web_identity_token"), number("iam_assume_role_duration"), str("terraform_binary"),
		str("terraform_version_constraint"), str("terragrunt_version_constraint"),
	}
	unit := &blockSpec{name: "unit file", args: scalars, blocks: []*blockSpec{
		terraform, remote, dependency, dependencies, generate, feature, exclude, errors, engine, include, imports, locals, catalog, module,
	}}
	auto := &blockSpec{name: "autoinclude file", args: scalars, blocks: []*blockSpec{
		terraform, remote, dependency, dependencies, generate, feature, exclude, errors, engine, include, locals,
	}}
	l := &languages{unit: unit, auto: auto}
	l.stack, l.stackPart = stackLanguages(include, locals)
	return l
})

// stackLanguages is the schema of stack files.
func stackLanguages(include, locals *blockSpec) (stack, part *blockSpec) {
	args := []argSpec{
		str("source").need(), str("path").need(), anything("values"), boolean("no_dot_terragrunt_stack"),
		boolean("no_validation"), boolean("mutable"), boolean("update_source_with_cas"),
	}
	item := func(name string) *blockSpec {
		b := labelled(name, args...)
		b.blocks = []*blockSpec{{name: "autoinclude", raw: true}}
		return b
	}
	items := []*blockSpec{item("unit"), item("stack")}
	stack = &blockSpec{name: "stack file", blocks: append(items, include, locals)}
	part = &blockSpec{name: "included stack file", blocks: items}
	return stack, part
}
