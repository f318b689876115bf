package unitflags

import "slices"

// A StrictControl is a value of --strict-control.
type StrictControl struct {
	Name string
	Help string
	// Completed means that the control has no effect, because what it forbids is always an error.
	Completed bool
}

// StrictControls returns the strict controls of Terragrunt 1.1: first the active ones, each in
// alphabetical order.
func StrictControls() []StrictControl {
	return []StrictControl{
		{Name: "bare-include", Help: "include blocks without a label are errors."},
		{Name: "cli-redesign", Help: "Commands from before the redesign of the command line are errors."},
		{Name: "default-commands", Help: "Commands of OpenTofu without \"run\" are errors."},
		{Name: "deprecated-commands", Help: "Deprecated commands are errors."},
		{Name: "deprecated-configs", Help: "Deprecated arguments of unit files are errors."},
		{Name: "deprecated-env-vars", Help: "Deprecated environment variables are errors."},
		{Name: "deprecated-flags", Help: "Deprecated flags are errors."},
		{Name: "deprecated-hidden-flag", Help: "--hidden is an error."},
		{Name: "disable-command-validation", Help: "--disable-command-validation is an error."},
		{Name: "disable-dependent-modules", Help: "--disable-dependent-modules is an error."},
		{Name: "fast-copy", Help: "No effect. include_in_copy and exclude_from_copy use one kind of pattern."},
		{Name: "legacy-gcs-public-prefix", Help: "No effect. Addresses of www.googleapis.com are read as they are written."},
		{Name: "legacy-internal-tflint", Help: "No effect. tflint is an ordinary hook."},
		{Name: "legacy-logs", Help: "Flags of the old log are errors."},
		{Name: "no-destroy-dependencies-check", Help: "--no-destroy-dependencies-check is an error."},
		{Name: "optional-hooks", Help: "No effect. --no-hooks needs no control."},
		{Name: "queue-exclude-external", Help: "--queue-exclude-external is an error."},
		{Name: "queue-strict-include", Help: "--queue-strict-include is an error."},
		{Name: "root-terragrunt-hcl", Help: "find_in_parent_folders() that finds a terragrunt.hcl is an error."},
		{Name: "terragrunt-prefix-env-vars", Help: "Environment variables that begin with TERRAGRUNT_ are errors."},
		{Name: "terragrunt-prefix-flags", Help: "Flags with the prefix terragrunt are errors."},
		{Name: "units-that-include", Help: "--units-that-include is an error."},

		{Name: "apply-all", Help: "The command apply-all is an error.", Completed: true},
		{Name: "destroy-all", Help: "The command destroy-all is an error.", Completed: true},
		{Name: "double-star", Help: "** in a pattern matches all levels of directories.", Completed: true},
		{Name: "legacy-all", Help: "Commands that end with -all are errors.", Completed: true},
		{Name: "output-all", Help: "The command output-all is an error.", Completed: true},
		{Name: "plan-all", Help: "The command plan-all is an error.", Completed: true},
		{Name: "require-explicit-bootstrap", Help: "Buckets and tables are created only on request.", Completed: true},
		{Name: "skip-dependencies-inputs", Help: "Reading the inputs of a dependency is an error.", Completed: true},
		{Name: "spin-up", Help: "The command spin-up is an error.", Completed: true},
		{Name: "tear-down", Help: "The command tear-down is an error.", Completed: true},
		{Name: "validate-all", Help: "The command validate-all is an error.", Completed: true},
	}
}

// isControl reports whether a strict control has that name.
func isControl(name string) bool {
	return slices.ContainsFunc(StrictControls(), func(s StrictControl) bool { return s.Name == name })
}
