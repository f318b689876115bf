package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestUnits runs testdata/units, in directories with a copy of examples/imports: the examples
// of the imports design, and rules for environment files that only the whole program can show.
func TestUnits(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/units",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		WorkdirRoot:         scriptRoot(t),
		Setup: func(env *testscript.Env) error {
			if err := setup(env); err != nil {
				return err
			}
			return os.CopyFS(filepath.Join(env.WorkDir, "imports"), os.DirFS("../../examples/imports"))
		},
	})
}
