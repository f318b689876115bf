package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestUnits runs testdata/units, in folders that hold a copy of examples/imports:
// the worked examples of the imports design, and what only a whole program can show
// of the rules for environment files.
func TestUnits(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/units",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			if err := setup(env); err != nil {
				return err
			}
			return os.CopyFS(filepath.Join(env.WorkDir, "imports"), os.DirFS("../../examples/imports"))
		},
	})
}
