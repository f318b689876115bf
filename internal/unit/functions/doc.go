// Package functions has the functions of the unit language: those that ask where
// they are called (get_terragrunt_dir, find_in_parent_folders), what the user asked
// for (get_terraform_command), or something outside of the files (get_env, run_cmd,
// read_tfvars_file, sops_decrypt_file, get_aws_account_id). The functions of the
// configuration language, which know nothing of that, are those of internal/lang/funcs.
//
// A Library is what calls have in common in one estate; a Place is one expression
// that calls, of which the evaluation of unit files tells what depends on imports,
// includes and the unit that is evaluated. The one rule to obey: an answer that
// depends on the unit asks Place.Leaf first, and is nothing while Place.Waiting says
// that there is none; so files that many units share are evaluated once wherever that
// makes no difference.
//
// Sources of the rules: section 3 of the reference of Terragrunt's unit language,
// version 1.1.3, and rules 17 and 18 of the import specification.
package functions
