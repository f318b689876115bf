package cli

import (
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/sys"
)

// oldVariables are what the variables of flags were called before the flags got the
// names that they have, each with the flag. Terragrunt 1.1.3 still reads them. A
// variable of a flag with ! says the opposite of it.
const oldVariables = `
TERRAGRUNT_EXCLUDE_DIR queue-exclude-dir
TERRAGRUNT_INCLUDE_DIR queue-include-dir
TERRAGRUNT_EXCLUDES_FILE queue-excludes-file
TERRAGRUNT_STRICT_INCLUDE queue-strict-include
TERRAGRUNT_IGNORE_DEPENDENCY_ORDER queue-ignore-dag-order
TERRAGRUNT_IGNORE_DEPENDENCY_ERRORS queue-ignore-errors
TERRAGRUNT_IGNORE_EXTERNAL_DEPENDENCIES queue-exclude-external
TERRAGRUNT_INCLUDE_EXTERNAL_DEPENDENCIES queue-include-external
TERRAGRUNT_MODULES_THAT_INCLUDE units-that-include
TERRAGRUNT_TFPATH tf-path
TERRAGRUNT_DOWNLOAD download-dir
TERRAGRUNT_DEBUG inputs-debug
TERRAGRUNT_FORWARD_TF_STDOUT tf-forward-stdout
TERRAGRUNT_IAM_ROLE iam-assume-role
TERRAGRUNT_IAM_WEB_IDENTITY_TOKEN iam-assume-role-web-identity-token
TERRAGRUNT_FAIL_ON_STATE_BUCKET_CREATION backend-require-bootstrap
TERRAGRUNT_FETCH_DEPENDENCY_OUTPUT_FROM_STATE dependency-fetch-output-from-state
TERRAGRUNT_AUTO_INIT !no-auto-init
TERRAGRUNT_AUTO_RETRY !no-auto-retry
TERRAGRUNT_AUTO_APPROVE !no-auto-approve
`

// flagVariable is the value of the variable that stands for a flag, and its name:
// TG_NAME, or TERRAGRUNT_NAME of old, or what it was called then.
func flagVariable(flag string, env sys.Env) (value, name string) {
	word := strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	for _, prefix := range [...]string{"TG_", "TERRAGRUNT_"} {
		if v := env.Get(prefix + word); v != "" {
			return v, prefix + word
		}
	}
	words := strings.Fields(oldVariables)
	for i := 0; i < len(words); i += 2 {
		of, opposite := strings.CutPrefix(words[i+1], "!")
		v := env.Get(words[i])
		if of != flag || v == "" {
			continue
		}
		if on, err := strconv.ParseBool(v); opposite && err == nil {
			v = strconv.FormatBool(!on)
		}
		return v, words[i]
	}
	return "", ""
}
