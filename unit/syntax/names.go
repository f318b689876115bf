package syntax

import (
	"slices"
	"strings"
)

// IsContextFunction reports whether a function belongs to the unit language. Its result
// depends on the place of the call.
func IsContextFunction(name string) bool {
	return slices.Contains(ContextFunctions(), name)
}

// isFolderFunction reports whether a function of the configuration language resolves paths
// from the file's directory.
func isFolderFunction(name string) bool {
	name = strings.TrimPrefix(name, "core::")
	return strings.HasPrefix(name, "file") || name == "abspath" || name == "templatefile" || name == "templatestring"
}

// ContextFunctions returns the names of the functions of the unit language, sorted.
func ContextFunctions() []string {
	return []string{
		"constraint_check",
		"deep_merge",
		"find_in_parent_folders",
		"find_in_parent_folders_from_importing_config",
		"get_aws_account_alias",
		"get_aws_account_id",
		"get_aws_caller_identity_arn",
		"get_aws_caller_identity_user_id",
		"get_default_retryable_errors",
		"get_env",
		"get_original_terragrunt_dir",
		"get_parent_terragrunt_dir",
		"get_path_from_repo_root",
		"get_path_to_repo_root",
		"get_platform",
		"get_repo_root",
		"get_terraform_cli_args",
		"get_terraform_command",
		"get_terraform_commands_that_need_input",
		"get_terraform_commands_that_need_locking",
		"get_terraform_commands_that_need_parallelism",
		"get_terraform_commands_that_need_vars",
		"get_terragrunt_dir",
		"get_terragrunt_source_cli_flag",
		"get_working_dir",
		"mark_as_read",
		"mark_glob_as_read",
		"path_relative_from_import",
		"path_relative_from_include",
		"path_relative_to_import",
		"path_relative_to_include",
		"read_terragrunt_config",
		"read_tfvars_file",
		"relpath",
		"run_cmd",
		"sops_decrypt_file",
	}
}
