package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

// TestFrameworkScripts runs testdata/providers/framework_*.txtar with our provider on HashiCorp's
// plugin framework, over both protocols.
func TestFrameworkScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: builds a provider with its own dependencies; run without -short")
	}
	t.Parallel()
	for name, protocol := range map[string]int{"protocol5": 5, "protocol6": 6} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providerScripts(t, "framework_*.txtar", "terrace/fw", testkit.FrameworkProvider(t, protocol))
		})
	}
}

// TestCornerScripts runs testdata/providers/corner_*.txtar with HashiCorp's own test provider.
func TestCornerScripts(t *testing.T) {
	t.Parallel()
	providerScripts(t, "corner_*.txtar", "hashicorp/corner", testkit.CornerProvider(t))
}

// providerScripts runs scripts in which WITH_PROVIDER is a CLI configuration with the provider of a
// source address.
func providerScripts(t *testing.T, pattern, address, program string) {
	files, err := filepath.Glob(filepath.Join("testdata/providers", pattern))
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	dir := t.TempDir()
	if err := os.Symlink(program, filepath.Join(dir, "terraform-provider-"+filepath.Base(address))); err != nil {
		t.Fatal(err)
	}
	rc := filepath.Join(dir, "provider.tfrc")
	text := "provider_installation {\n  dev_overrides {\n    \"" + address + "\" = \"" + filepath.ToSlash(dir) + "\"\n  }\n}\n"
	if err := os.WriteFile(rc, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		WorkdirRoot:         scriptRoot(t),
		Cmds:                scriptCommands(t),
		Condition:           scriptCondition,
		Setup: func(env *testscript.Env) error {
			env.Setenv("WITH_PROVIDER", rc)
			return setup(env)
		},
	})
}
