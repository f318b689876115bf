package syntax

import (
	"slices"
	"sync"

	"github.com/zclconf/go-cty/cty"
)

// # The table of blocks
//
// Each row has all that is known about one type of block. A new block is a row here and a
// file in package unit with the function that decodes it. The order of the rows, and of the
// arguments in a row, is their order in rendered HCL. Sources of the rules: rules 9 and 10
// of the import specification, and section 2.3 of the unit language's reference.

var (
	TStrings   = cty.List(cty.String)
	tStringMap = cty.Map(cty.String)
)

func arg(name string, ty cty.Type) ArgSpec { return ArgSpec{Name: name, Ty: ty, Merge: scalar} }
func str(name string) ArgSpec              { return arg(name, cty.String) }
func boolean(name string) ArgSpec          { return arg(name, cty.Bool) }
func number(name string) ArgSpec           { return arg(name, cty.Number) }
func words(name string) ArgSpec            { return arg(name, TStrings) }
func anything(name string) ArgSpec         { return arg(name, cty.DynamicPseudoType) }

func (a ArgSpec) need() ArgSpec              { a.Required = true; return a }
func (a ArgSpec) or(v cty.Value) ArgSpec     { a.Def = v; return a }
func (a ArgSpec) path(k PathKind) ArgSpec    { a.Path = k; return a }
func (a ArgSpec) hidden() ArgSpec            { a.Hidden = true; return a }
func (a ArgSpec) private() ArgSpec           { a.Private = true; return a }
func (a ArgSpec) as(name string) ArgSpec     { a.Shown = name; return a }
func (a ArgSpec) written(w Writing) ArgSpec  { a.HCL = w; return a }
func (a ArgSpec) shown(s Showing) ArgSpec    { a.IfSet = s; return a }
func (a ArgSpec) deepImport(r Rule) ArgSpec  { a.Merge.DeepImport = r; return a }
func (a ArgSpec) deepInclude(r Rule) ArgSpec { a.Merge.DeepInclude = r; return a }
func (a ArgSpec) merge(m Merging) ArgSpec    { a.Merge = m; return a }

// languages contains the schema of each kind of file.
type languages struct {
	Unit, Stack, Auto, StackPart *BlockSpec
	// private and autoPrivate are the names of arguments and blocks whose text messages do
	// not show, because they pass values on. A stack file generates autoinclude files, so
	// all their arguments may contain such a value.
	private, autoPrivate []string
}

// Language returns the schemas of unit and stack files.
var Language = sync.OnceValue(func() *languages {
	unit := &BlockSpec{Name: "unit file", Args: topArgs(), Blocks: unitBlocks()}
	auto := &BlockSpec{Name: "autoinclude file", Args: unit.Args}
	for _, b := range unit.Blocks {
		if b.Name != "import" && b.Name != "catalog" && b.Name != "module" {
			auto.Blocks = append(auto.Blocks, b)
		}
	}
	l := &languages{Unit: unit, Auto: auto, autoPrivate: auto.Names()}
	l.Stack, l.StackPart = stackLanguages(unit.Block("include"), unit.Block("locals"))
	for _, s := range []*BlockSpec{l.Unit, l.Stack} {
		l.private = s.privateNames(l.private)
	}
	return l
})

// privateNames appends the private names in a block and in its nested blocks.
func (s *BlockSpec) privateNames(names []string) []string {
	for i := range s.Args {
		if a := &s.Args[i]; a.Private && !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	for _, b := range s.Blocks {
		if b.Private {
			names = append(names, b.Name)
		}
		names = b.privateNames(names)
	}
	return names
}

// topArgs returns the arguments at the top of a unit file.
func topArgs() []ArgSpec {
	inputs := anything("inputs").private().merge(Merging{DeepImport: Deep, DeepInclude: DeepOrReplaces})
	inputs.Keyed, inputs.ByModule = true, true
	return []ArgSpec{
		str("terraform_binary"),
		str("terraform_version_constraint"),
		str("terragrunt_version_constraint"),
		str("download_dir"),
		boolean("prevent_destroy").shown(ShownIfSet),
		str("iam_role"),
		number("iam_assume_role_duration"),
		str("iam_assume_role_session_name"),
		str("iam_web_identity_token").shown(MetaIfSet),
		inputs,
	}
}

// unitBlocks returns the rows of unit files.
func unitBlocks() []*BlockSpec {
	no, text := cty.False, cty.StringVal
	hook := func(name string, args ...ArgSpec) *BlockSpec {
		return &BlockSpec{Name: name, Label: OneLabel, many: true,
			Merge: Merging{ByLabel, Merges, ByLabel, ByLabel}, Args: args}
	}
	return []*BlockSpec{
		{Name: "locals", Open: true, Stays: true, Apart: true},
		{Name: "import", Label: OneLabel, Stays: true, Apart: true, Showing: NeverShown, Args: []ArgSpec{
			str("config_path").need(),
			boolean("merge"),
			boolean("deep_merge"),
		}},
		{Name: "include", Label: maybeLabel, many: true, Stays: true, Apart: true, Showing: NeverShown, Args: []ArgSpec{
			str("path").need(),
			boolean("expose"),
			str("merge_strategy"),
		}},
		{Name: "catalog", Stays: true, OnDemand: true, Showing: NeverShown, Args: []ArgSpec{
			words("urls").need(),
			str("default_template"),
			boolean("no_shell"),
			boolean("no_hooks"),
		}},
		{Name: "terraform", asAttr: true, ByModule: true, Showing: ShownIfSet, Merge: always(Merges), Args: []ArgSpec{
			str("source").path(SourcePath),
			str("version").hidden(),
			words("include_in_copy").deepInclude(Prepends),
			words("exclude_from_copy").deepInclude(Prepends),
			boolean("copy_terraform_lock_file"),
			boolean("mutable").hidden(),
			boolean("update_source_with_cas").hidden(),
		}, Blocks: []*BlockSpec{
			hook("extra_arguments", words("commands").need(), words("arguments").private(), arg("env_vars", tStringMap).private().deepImport(ByKey),
				words("required_var_files"), words("optional_var_files")),
			hook("before_hook", boolean("if"), boolean("run_on_error"), boolean("suppress_stdout"), words("commands").need(), words("execute").need(), str("working_dir")),
			hook("after_hook", boolean("if"), boolean("run_on_error"), boolean("suppress_stdout"), words("commands").need(), words("execute").need(), str("working_dir")),
			hook("error_hook", words("commands").need(), words("execute").need(), words("on_errors").need(), boolean("suppress_stdout"), str("working_dir")),
		}},
		{Name: "remote_state", asAttr: true, Showing: ShownIfSet, Merge: Merging{DeepImport: Merges}, Args: []ArgSpec{
			str("backend").need(),
			boolean("disable_init").or(no),
			boolean("disable_dependency_optimization").or(no),
			anything("generate"),
			anything("config").need().private().deepImport(Deep),
			anything("encryption").private(),
		}},
		{Name: "dependencies", OnDemand: true, List: "paths", Merge: always(Merges), Args: []ArgSpec{
			words("paths").need().path(FilePath).merge(Merging{AppendsNew, AppendsNew, AppendsNew, PathsLeft}),
		}},
		{Name: "dependency", Label: OneLabel, asAttr: true, many: true, ByModule: true, OnDemand: true, Leads: true,
			Merge: Merging{ByLabel, Merges, ByLabel, Merges}, Computed: []Member{{Name: "inputs"}, {Name: "outputs"}}, Args: []ArgSpec{
				str("config_path").need().path(FilePath),
				boolean("enabled"),
				boolean("skip_outputs").as("skip"),
				anything("mock_outputs").deepImport(Deep).deepInclude(DeepOrReplaces),
				words("mock_outputs_allowed_terraform_commands").deepInclude(Appends),
				str("mock_outputs_merge_strategy_with_state"),
				boolean("mock_outputs_merge_with_state"),
			}, Blocks: []*BlockSpec{expansion()}},
		{Name: "generate", Label: OneLabel, asAttr: true, Unnamed: true, Sorted: true, Merge: Merging{ByLabel, Merges, ByLabel, ByLabel}, Args: []ArgSpec{
			str("path").need(),
			str("if_exists").need(),
			str("if_disabled").or(text("skip")).written(WriteAlways),
			str("comment_prefix").or(text("# ")),
			str("contents").need(),
			boolean("disable_signature").or(no),
			boolean("disable").or(no),
			boolean("hcl_fmt"),
			boolean("mutable"),
		}},
		{Name: "feature", Label: OneLabel, asAttr: true, Sorted: true, OnDemand: true, Merge: Merging{ByLabel, Merges, ByLabel, Merges},
			Computed: []Member{{Name: "value", ImportsOnly: true}}, Args: []ArgSpec{
				anything("default").need().deepInclude(DeepObjects).written(IfSet),
			}},
		{Name: "engine", Showing: ShownIfSet, Merge: Merging{DeepImport: Merges, DeepInclude: Merges}, Args: []ArgSpec{
			str("source").need(),
			str("version"),
			str("type"),
			anything("meta"),
		}},
		{Name: "exclude", asAttr: true, Showing: ShownIfSet, Merge: Merging{DeepImport: Merges, DeepInclude: Redefines}, Args: []ArgSpec{
			words("actions").need(),
			boolean("exclude_dependencies").or(no).deepInclude(Replaces),
			boolean("if").need().deepInclude(Replaces),
			boolean("no_run").or(no).deepInclude(Replaces),
		}},
		{Name: "errors", asAttr: true, Showing: ShownIfSet, Merge: Merging{DeepImport: Merges, DeepInclude: Merges}, Blocks: []*BlockSpec{
			{Name: "retry", Label: OneLabel, many: true, Ordered: true, Merge: Merging{DeepImport: Merges, DeepInclude: Merges}, Args: []ArgSpec{
				number("max_attempts").need().deepInclude(FillsNumber),
				number("sleep_interval_sec").need().deepInclude(FillsNumber),
				words("retryable_errors").need().deepInclude(PrependsNew),
			}},
			{Name: "ignore", Label: OneLabel, many: true, Ordered: true, Showing: ShownIfSet, Merge: Merging{DeepImport: Merges, DeepInclude: Merges}, Args: []ArgSpec{
				words("ignorable_errors").need().deepInclude(PrependsNew),
				str("message").or(text("")),
				arg("signals", cty.Map(cty.DynamicPseudoType)).or(cty.EmptyObjectVal).deepInclude(ByKey),
			}},
		}},
		{Name: "module", Label: OneLabel, Open: true, Private: true, OnDemand: true, Showing: ShownImports, Merge: Merging{ByLabel, Merges, Fills, Fills}},
	}
}

// expansion returns the row of the block that repeats another block.
func expansion() *BlockSpec {
	return &BlockSpec{Name: "expansion", asAttr: true, Showing: ShownIfSet, Args: []ArgSpec{
		anything("for_each"),
		number("count"),
	}}
}

// stackLanguages returns the schemas of stack files.
func stackLanguages(include, locals *BlockSpec) (stack, part *BlockSpec) {
	item := func(name string) *BlockSpec {
		return &BlockSpec{Name: name, Label: OneLabel, Args: []ArgSpec{
			str("source").need(),
			str("path").need(),
			boolean("enabled"),
			anything("values").private(),
			boolean("no_dot_terragrunt_stack"),
			boolean("no_validation"),
			boolean("mutable"),
			boolean("update_source_with_cas"),
		}, Blocks: []*BlockSpec{expansion(), {Name: "autoinclude", raw: true}}}
	}
	items := []*BlockSpec{item("unit"), item("stack")}
	stack = &BlockSpec{Name: "stack file", Blocks: append(slices.Clone(items), include, locals)}
	part = &BlockSpec{Name: "included stack file", Blocks: items}
	return stack, part
}
