package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestPolicies runs the commands of docs/policies.md with the policies in examples/policies, on a copy
// of examples/estate. It needs Conftest, whose build takes several minutes.
func TestPolicies(t *testing.T) {
	if _, err := exec.LookPath("conftest"); err != nil {
		t.Skip("conftest is not installed: go install github.com/open-policy-agent/conftest@v0.71.1")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/policies",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			if err := setup(env); err != nil {
				return err
			}
			if err := os.CopyFS(filepath.Join(env.WorkDir, "policies"), os.DirFS("../../examples/policies")); err != nil {
				return err
			}
			return os.CopyFS(env.WorkDir, os.DirFS("../../examples/estate"))
		},
	})
}
