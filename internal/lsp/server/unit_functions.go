package server

import "strings"

// A unitFunction describes a function of unit files.
type unitFunction struct {
	required, optional []string // parameters with types
	repeated           string   // the last parameter, which can be given any number of times; "" means none
	result             string
	doc                string
}

// unitFunctionOf returns the description of a function of unit files, or nil.
func unitFunctionOf(name string) *unitFunction {
	const words = "list(string)"
	of := func(result, doc string, required ...string) *unitFunction {
		return &unitFunction{result: result, doc: doc, required: required}
	}
	maybe := func(f *unitFunction, optional ...string) *unitFunction {
		f.optional = optional
		return f
	}
	repeated := func(f *unitFunction, of string) *unitFunction {
		f.repeated = of
		return f
	}
	switch name {
	case "constraint_check":
		return of("bool", "Reports whether a version satisfies a constraint, such as `\">= 1.2\"`.", "version string", "constraint string")
	case "deep_merge":
		return repeated(of("any", "Merges maps or objects, also those inside them. A later value replaces an earlier one, and null values are ignored."), "maps any")
	case "find_in_parent_folders":
		return maybe(of("string", "Returns the path of the nearest file or directory with a name in the directories above the unit. Without it, the default is returned; without a default, the call fails."), "name string", "default string")
	case "find_in_parent_folders_from_importing_config":
		return maybe(of("string", "Returns the path of the nearest file or directory with a name in the directories above the unit that imports the file. Without it, the default is returned; without a default, the call fails.", "name string"), "default string")
	case "get_aws_account_alias":
		return of("string", "Returns the first alias of the AWS account, or \"\".")
	case "get_aws_account_id":
		return of("string", "Returns the ID of the AWS account.")
	case "get_aws_caller_identity_arn":
		return of("string", "Returns the ARN of the AWS identity.")
	case "get_aws_caller_identity_user_id":
		return of("string", "Returns the user ID of the AWS identity.")
	case "get_default_retryable_errors":
		return of(words, "Returns the patterns of the errors after which a unit without an errors block is tried again.")
	case "get_env":
		return maybe(of("string", "Returns the value of an environment variable. If it is not set, the default is returned; without a default, the call fails.", "name string"), "default string")
	case "get_original_terragrunt_dir":
		return of("string", "Returns the directory of the unit, also in a file that the unit reads.")
	case "get_parent_terragrunt_dir":
		return maybe(of("string", "Returns the directory of the included file. With several include blocks, the label selects one."), "label string")
	case "get_path_from_repo_root":
		return of("string", "Returns the relative path from the root of the repository to the directory of the unit file.")
	case "get_path_to_repo_root":
		return of("string", "Returns the relative path from the directory of the unit file to the root of the repository.")
	case "get_platform":
		return of("string", "Returns the name of the operating system, such as `linux`.")
	case "get_repo_root":
		return of("string", "Returns the root directory of the repository.")
	case "get_terraform_cli_args":
		return of(words, "Returns the arguments of the command, beginning with the command.")
	case "get_terraform_command":
		return of("string", "Returns the command that runs, such as `plan`.")
	case "get_terraform_commands_that_need_input":
		return of(words, "Returns the commands that accept the flag `-input`.")
	case "get_terraform_commands_that_need_locking":
		return of(words, "Returns the commands that accept the flag `-lock-timeout`.")
	case "get_terraform_commands_that_need_parallelism":
		return of(words, "Returns the commands that accept the flag `-parallelism`.")
	case "get_terraform_commands_that_need_vars":
		return of(words, "Returns the commands that accept the flags `-var` and `-var-file`.")
	case "get_terragrunt_dir":
		return of("string", "Returns the directory of the unit file.")
	case "get_terragrunt_source_cli_flag":
		return of("string", "Returns the value of the flag `--source`, or \"\".")
	case "get_working_dir":
		return of("string", "Returns the directory in which the module of the unit runs.")
	case "mark_as_read":
		return of("string", "Records that the unit depends on a file, and returns the path.", "path string")
	case "mark_glob_as_read":
		return of(words, "Records that the unit depends on all files whose paths match a pattern, and returns their paths. With `--terragrunt-boundary`, a directory and the pattern are the next arguments.", "pattern string")
	case "path_relative_from_import":
		return maybe(of("string", "Returns the relative path from the directory of the unit to that of the imported file. With several imports, the name selects one."), "name string")
	case "path_relative_from_include":
		return maybe(of("string", "Returns the relative path from the directory of the unit to that of the included file. With several include blocks, the label selects one."), "label string")
	case "path_relative_to_import":
		return maybe(of("string", "Returns the relative path from the directory of the imported file to that of the unit. With several imports, the name selects one."), "name string")
	case "path_relative_to_include":
		return maybe(of("string", "Returns the relative path from the directory of the included file to that of the unit. With several include blocks, the label selects one."), "label string")
	case "read_terragrunt_config":
		return maybe(of("object", "Returns the contents of another unit file, such as `.locals` and `.inputs`. If there is no such file, the default is returned; without a default, the call fails.", "path string"), "default any")
	case "read_tfvars_file":
		return of("string", "Returns the variables of a file as a text in JSON, for `jsondecode`.", "path string")
	case "relpath":
		return of("string", "Returns the relative path from one path to another.", "from string", "to string")
	case "run_cmd":
		return repeated(of("string", "Runs a program and returns its output. The flags `--terragrunt-quiet`, `--terragrunt-global-cache` and `--terragrunt-no-cache` may be before the program.", "program string"), "arguments string")
	case "sops_decrypt_file":
		return of("string", "Returns the contents of a file that sops has encrypted.", "path string")
	}
	return nil
}

// signature returns the signature, and the text of each parameter in it.
func (f *unitFunction) signature(name string) (label string, params []string) {
	params = append(params, f.required...)
	for _, p := range f.optional {
		params = append(params, "["+p+"]")
	}
	if f.repeated != "" {
		params = append(params, "..."+f.repeated)
	}
	return name + "(" + strings.Join(params, ", ") + ") " + f.result, params
}
