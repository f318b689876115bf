package unit

import (
	"errors"
	"fmt"
	"maps"

	"github.com/terrace-iac/terrace/internal/funcs"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// # Functions of the unit language
//
// They need to know where they are called, so they are made anew for each
// expression that calls them; the functions of the configuration language come
// from one table. Source: section 3 of the unit language's reference, and rules
// 17 and 18 of the import specification.

// contextFunction is one function: its result and what makes it.
type contextFunction struct {
	min, max int // arguments; max below 0: any number
	ret      cty.Type
	leaf     bool // depends on the leaf unit
	do       func(k *call, args []string) (cty.Value, error)
	dynamic  func(k *call) function.Function // for those that take other things than text
}

// call is where a function is called.
type call struct {
	c    *evaluator
	e    *evaluation
	name string
	at   source.Range // of the expression that the call stands in
	runs int          // how often run_cmd was called in it without being kept
}

// leafOnly makes the answer wait for the leaf.
func (k *call) leafOnly() bool {
	if k.c.leaf == nil {
		k.c.needsLeaf = true
		return true
	}
	return false
}

// contextFunctions makes the functions that an expression calls.
func (c *evaluator) contextFunctions(e *evaluation, x *syntax.Expr) map[string]function.Function {
	out := make(map[string]function.Function, len(x.Calls))
	for _, name := range x.Calls {
		def := lookupFunction(name)
		k := &call{c: c, e: e, name: name, at: x.At()}
		if def.dynamic != nil {
			out[name] = def.dynamic(k)
			continue
		}
		out[name] = function.New(&function.Spec{
			VarParam: &function.Parameter{Name: "args", Type: cty.String, AllowMarked: true, AllowUnknown: true},
			Type:     function.StaticReturnType(def.ret),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				v, marks, err := def.answer(k, args)
				return v.WithMarks(marks), funcs.Guard(err, args)
			},
		})
	}
	return out
}

// answer is what a call gives, and the marks of its arguments.
func (f *contextFunction) answer(k *call, args []cty.Value) (cty.Value, cty.ValueMarks, error) {
	unknown := cty.UnknownVal(f.ret)
	marks := cty.ValueMarks{}
	if err := f.count(len(args)); err != nil {
		return unknown, marks, err
	}
	known := true
	words := make([]string, len(args))
	for i, a := range args {
		bare, more := a.Unmark()
		maps.Copy(marks, more)
		if known = known && bare.IsKnown(); known {
			words[i] = bare.AsString()
		}
	}
	if !known || f.leaf && k.leafOnly() {
		return unknown, marks, nil
	}
	v, err := f.do(k, words)
	if refused := (*noCredentials)(nil); k.c.l.env.Checking && errors.As(err, &refused) {
		err, v = nil, unknown
	}
	if err != nil || k.c.needsLeaf {
		return unknown, marks, err
	}
	return v, marks, nil
}

func (f *contextFunction) count(n int) error {
	switch {
	case n < f.min:
		return fmt.Errorf("%s", tooFew(f.min, n))
	case f.max >= 0 && n > f.max:
		return fmt.Errorf("at most %d argument(s) expected, not %d", f.max, n)
	}
	return nil
}

func tooFew(want, n int) string {
	if want == 1 {
		return "an argument is missing"
	}
	return fmt.Sprintf("%d arguments expected, not %d", want, n)
}

func text(f func(k *call) (string, error)) func(*call, []string) (cty.Value, error) {
	return func(k *call, _ []string) (cty.Value, error) {
		s, err := f(k)
		return cty.StringVal(s), err
	}
}

func wordList(words ...string) func(*call, []string) (cty.Value, error) {
	return func(*call, []string) (cty.Value, error) { return stringList(words), nil }
}

func stringList(words []string) cty.Value {
	if len(words) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	vals := make([]cty.Value, len(words))
	for i, w := range words {
		vals[i] = cty.StringVal(w)
	}
	return cty.ListVal(vals)
}

// lookupFunction finds a function of the unit language, or nil.
func lookupFunction(name string) *contextFunction {
	s := cty.String
	switch name {
	case "find_in_parent_folders":
		return &contextFunction{max: 2, ret: s, do: func(k *call, args []string) (cty.Value, error) { return k.find(k.e.dir, args) }}
	case "find_in_parent_folders_from_importing_config":
		return &contextFunction{min: 1, max: 2, ret: s, leaf: true, do: func(k *call, args []string) (cty.Value, error) {
			return k.find(k.c.leaf.dir, args)
		}}
	case "path_relative_to_include":
		return &contextFunction{max: 1, ret: s, do: func(k *call, args []string) (cty.Value, error) { return k.includePath(args, false) }}
	case "path_relative_from_include":
		return &contextFunction{max: 1, ret: s, do: func(k *call, args []string) (cty.Value, error) { return k.includePath(args, true) }}
	case "path_relative_to_import":
		return &contextFunction{max: 1, ret: s, do: func(k *call, args []string) (cty.Value, error) { return k.importPath(args, false) }}
	case "path_relative_from_import":
		return &contextFunction{max: 1, ret: s, do: func(k *call, args []string) (cty.Value, error) { return k.importPath(args, true) }}
	case "get_parent_terragrunt_dir":
		return &contextFunction{max: 1, ret: s, do: func(k *call, args []string) (cty.Value, error) {
			in, err := k.include(args)
			if err != nil || in == "" {
				return cty.StringVal(k.e.dir), err
			}
			return cty.StringVal(in), nil
		}}
	case "get_terragrunt_dir":
		return &contextFunction{ret: s, do: text(func(k *call) (string, error) { return k.e.dir, nil })}
	case "get_original_terragrunt_dir":
		return &contextFunction{ret: s, leaf: true, do: text(func(k *call) (string, error) { return k.c.leaf.dir, nil })}
	case "get_working_dir":
		return &contextFunction{ret: s, leaf: true, do: text((*call).workingDir)}
	case "get_repo_root":
		return &contextFunction{ret: s, do: text(func(k *call) (string, error) {
			root, err := k.c.l.repo(k.e.dir)
			return k.c.l.identity(root), err
		})}
	case "get_path_from_repo_root":
		return &contextFunction{ret: s, do: text(func(k *call) (string, error) {
			root, err := k.c.l.repo(k.e.dir)
			return pathBetween(root, k.e.dir, err)
		})}
	case "get_path_to_repo_root":
		return &contextFunction{ret: s, do: text(func(k *call) (string, error) {
			root, err := k.c.l.repo(k.e.dir)
			return pathBetween(k.e.dir, root, err)
		})}
	case "relpath":
		return &contextFunction{min: 2, max: 2, ret: s, do: func(k *call, args []string) (cty.Value, error) {
			p, err := pathBetween(absPath(k.e.dir, args[0]), absPath(k.e.dir, args[1]), nil)
			return cty.StringVal(p), err
		}}
	case "get_env":
		return &contextFunction{min: 1, max: 2, ret: s, do: (*call).env}
	case "get_platform":
		return &contextFunction{ret: s, do: text(func(*call) (string, error) { return goos, nil })}
	case "get_terraform_command":
		return &contextFunction{ret: s, leaf: true, do: text(func(k *call) (string, error) { return k.c.l.env.Request.Command, nil })}
	case "get_terraform_cli_args":
		return &contextFunction{ret: cty.List(s), leaf: true, do: (*call).cliArgs}
	case "get_terragrunt_source_cli_flag":
		return &contextFunction{ret: s, do: text(func(k *call) (string, error) { return k.c.l.env.Request.Source, nil })}
	case "get_terraform_commands_that_need_vars":
		return &contextFunction{ret: cty.List(s), do: wordList("apply", "console", "destroy", "import", "plan", "push", "refresh")}
	case "get_terraform_commands_that_need_input":
		return &contextFunction{ret: cty.List(s), do: wordList("apply", "import", "init", "plan", "refresh")}
	case "get_terraform_commands_that_need_locking":
		return &contextFunction{ret: cty.List(s), do: wordList("apply", "destroy", "import", "plan", "refresh", "taint", "untaint")}
	case "get_terraform_commands_that_need_parallelism":
		return &contextFunction{ret: cty.List(s), do: wordList("apply", "plan", "destroy")}
	case "get_default_retryable_errors":
		return &contextFunction{ret: cty.List(s), do: wordList(DefaultRetryableErrors()...)}
	}
	return lookupEffect(name)
}

// lookupEffect finds the functions that read files or run programs.
func lookupEffect(name string) *contextFunction {
	s := cty.String
	switch name {
	case "run_cmd":
		return &contextFunction{max: -1, ret: s, do: (*call).runCmd}
	case "read_tfvars_file":
		return &contextFunction{min: 1, max: 1, ret: s, do: (*call).readTfvars}
	case "sops_decrypt_file":
		return &contextFunction{min: 1, max: 1, ret: s, do: (*call).sops}
	case "mark_as_read":
		return &contextFunction{min: 1, max: 1, ret: s, do: (*call).markRead}
	case "mark_glob_as_read":
		return &contextFunction{min: 1, max: 3, ret: cty.List(s), do: (*call).markGlob}
	case "constraint_check":
		return &contextFunction{min: 2, max: 2, ret: cty.Bool, do: constraintCheck}
	case "get_aws_account_id":
		return &contextFunction{ret: s, leaf: true, do: text(func(k *call) (string, error) { return k.identity("Account") })}
	case "get_aws_caller_identity_arn":
		return &contextFunction{ret: s, leaf: true, do: text(func(k *call) (string, error) { return k.identity("Arn") })}
	case "get_aws_caller_identity_user_id":
		return &contextFunction{ret: s, leaf: true, do: text(func(k *call) (string, error) { return k.identity("UserId") })}
	case "get_aws_account_alias":
		return &contextFunction{ret: s, leaf: true, do: text((*call).accountAlias)}
	case "read_terragrunt_config":
		return &contextFunction{dynamic: (*call).readConfigFunc}
	case "deep_merge":
		return &contextFunction{dynamic: func(*call) function.Function { return deepMergeFunc() }}
	}
	return nil
}

// cliArgs is get_terraform_cli_args.
func (k *call) cliArgs([]string) (cty.Value, error) {
	if k.c.l.env.Checking {
		return cty.UnknownVal(cty.List(cty.String)), nil
	}
	return stringList(k.c.l.env.Request.Args), nil
}

func (k *call) env(args []string) (cty.Value, error) {
	if args[0] == "" {
		return cty.NilVal, errors.New("the name of the environment variable is empty")
	}
	if v, ok := k.c.l.env.Machine.Environ.Lookup(args[0]); ok {
		return cty.StringVal(v), nil
	}
	if len(args) > 1 {
		return cty.StringVal(args[1]), nil
	}
	return cty.NilVal, fmt.Errorf("the environment variable %s is not set and the call gives no default", args[0])
}

// deepMergeFunc is deep_merge for calls whose parts cannot be distinguished.
func deepMergeFunc() function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "maps", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true, AllowUnknown: true, AllowMarked: true},
		Type: func(args []cty.Value) (cty.Type, error) {
			v, err := deepMergeAll(args)
			return v.Type(), err
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return deepMergeAll(args) },
	})
}

// deepMergeAll merges values from left to right; null ones do not count.
func deepMergeAll(args []cty.Value) (cty.Value, error) {
	out := cty.NilVal
	for i, a := range args {
		bare, _ := a.Unmark()
		if bare.IsNull() {
			continue
		}
		if ty := bare.Type(); ty != cty.DynamicPseudoType && !ty.IsObjectType() && !ty.IsMapType() {
			return cty.DynamicVal, function.NewArgErrorf(i, "maps or objects expected, not %s", ty.FriendlyName())
		}
		if out == cty.NilVal {
			out = a
			continue
		}
		v, err := value.DeepMerge(out, a)
		if err != nil {
			return cty.DynamicVal, function.NewArgError(i, err)
		}
		out = v
	}
	if out == cty.NilVal {
		return cty.EmptyObjectVal, nil
	}
	return out, nil
}

// rawMerge is the whole value of a call of merge or deep_merge.
func (c *evaluator) rawMerge(e *evaluation, x *syntax.Expr) cty.Value {
	args := make([]cty.Value, len(x.Args))
	for i, a := range x.Args {
		args[i] = c.eval(e, a)
		if c.needsLeaf {
			return cty.DynamicVal
		}
	}
	if c.failed {
		return cty.DynamicVal
	}
	name := "merge"
	f := c.l.pure().Functions["merge"]
	if x.Kind == syntax.DeepCall {
		name, f = "deep_merge", deepMergeFunc()
	}
	v, err := f.Call(args)
	if err != nil {
		at := x.At()
		var bad function.ArgError
		if errors.As(err, &bad) && bad.Index < len(x.Args) {
			at = x.Args[bad.Index].At()
		}
		return c.errorf(&at, "unit/function-error", "Error in function call", "Call to function %q failed: %s.", name, err)
	}
	return v
}
