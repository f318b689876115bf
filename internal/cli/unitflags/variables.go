package unitflags

import "strings"

// oldVariables are former names of the variables of flags, which Terragrunt 1.1.3 still reads.
// "!" before a flag means that the variable has the opposite meaning.
var oldVariables = []struct{ variable, flag string }{
	{"TERRAGRUNT_EXCLUDE_DIR", "queue-exclude-dir"},
	{"TERRAGRUNT_INCLUDE_DIR", "queue-include-dir"},
	{"TERRAGRUNT_EXCLUDES_FILE", "queue-excludes-file"},
	{"TERRAGRUNT_STRICT_INCLUDE", "queue-strict-include"},
	{"TERRAGRUNT_IGNORE_DEPENDENCY_ORDER", "queue-ignore-dag-order"},
	{"TERRAGRUNT_IGNORE_DEPENDENCY_ERRORS", "queue-ignore-errors"},
	{"TERRAGRUNT_IGNORE_EXTERNAL_DEPENDENCIES", "queue-exclude-external"},
	{"TERRAGRUNT_INCLUDE_EXTERNAL_DEPENDENCIES", "queue-include-external"},
	{"TERRAGRUNT_MODULES_THAT_INCLUDE", "units-that-include"},
	{"TERRAGRUNT_TFPATH", "tf-path"},
	{"TERRAGRUNT_DOWNLOAD", "download-dir"},
	{"TERRAGRUNT_DEBUG", "inputs-debug"},
	{"TERRAGRUNT_FORWARD_TF_STDOUT", "tf-forward-stdout"},
	{"TERRAGRUNT_IAM_ROLE", "iam-assume-role"},
	{"TERRAGRUNT_IAM_WEB_IDENTITY_TOKEN", "iam-assume-role-web-identity-token"},
	{"TERRAGRUNT_FAIL_ON_STATE_BUCKET_CREATION", "backend-require-bootstrap"},
	{"TERRAGRUNT_FETCH_DEPENDENCY_OUTPUT_FROM_STATE", "dependency-fetch-output-from-state"},
	{"TERRAGRUNT_AUTO_INIT", "!no-auto-init"},
	{"TERRAGRUNT_AUTO_RETRY", "!no-auto-retry"},
	{"TERRAGRUNT_AUTO_APPROVE", "!no-auto-approve"},
}

// VariablesOf returns the environment variables of a flag: TG_NAME, TERRAGRUNT_NAME and former
// names. "!" before a name marks the opposite meaning.
func VariablesOf(flag string) []string {
	word := strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	out := []string{"TG_" + word, "TERRAGRUNT_" + word}
	for _, old := range oldVariables {
		if of, opposite := strings.CutPrefix(old.flag, "!"); of != flag {
			continue
		} else if opposite {
			out = append(out, "!"+old.variable)
		} else {
			out = append(out, old.variable)
		}
	}
	return out
}

// OldTelemetry is the former prefix of the telemetry variables.
const OldTelemetry = "TERRAGRUNT_TELEMETRY_"
