// Package functions implements the functions of the unit language. Some depend on the place
// of the call (get_terragrunt_dir, find_in_parent_folders), some on the user's command
// (get_terraform_command), and some on something outside of the files (get_env, run_cmd,
// read_tfvars_file, sops_decrypt_file, get_aws_account_id). Package internal/lang/funcs
// contains the functions of the configuration language, which depend on none of these.
//
// The main types are Library and Place. A Library is shared by all calls in an estate. A
// Place is one calling expression, and returns what depends on imports, includes and the
// evaluated unit. The one rule to obey: a function whose result depends on the unit calls
// Place.Leaf first, and its result is ignored while Place.Waiting is true. So a file that
// many units share is evaluated once if it does not depend on the unit.
//
// Sources of the rules: section 3 of the reference of Terragrunt's unit language, version
// 1.1.3, and rules 17 and 18 of the import specification.
package functions
