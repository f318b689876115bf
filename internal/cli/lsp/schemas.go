package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
)

// lockName is the name of the dependency lock file.
const lockName = ".terraform.lock.hcl"

// fetchSchemas runs the commands init and providers schema in a temporary directory that requires the same
// providers as dir, so that their schemas are kept. dir is not changed.
func fetchSchemas(ctx context.Context, c *command.Call, run func(context.Context, sys.Command) error, dir string, required []workspace.Requirement) error {
	temp, err := os.MkdirTemp("", "terrace-lsp")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	text, err := requirements(required)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(temp, "main.tf.json"), text, 0o600); err != nil {
		return err
	}
	if locked, err := readfile.Whole(filepath.Join(dir, lockName)); err == nil {
		if err := os.WriteFile(filepath.Join(temp, lockName), locked, 0o600); err != nil {
			return err
		}
	}
	program, err := c.System.Executable()
	if err != nil {
		return err
	}
	env := c.Env.With("TF_DATA_DIR=", "TF_WORKSPACE=", "TERRACE_READ_SCHEMAS=")
	for _, args := range [][]string{{"init", "-backend=false", "-input=false", "-no-color"}, {"providers", "schema", "-json"}} {
		var errs bytes.Buffer
		if err := run(ctx, sys.Command{Path: program, Args: args, Dir: temp, Env: env, Stdout: io.Discard, Stderr: &errs}); err != nil {
			return fmt.Errorf("%w\n%s", err, errs.String())
		}
	}
	return nil
}

// requirements returns a configuration that requires providers.
func requirements(required []workspace.Requirement) ([]byte, error) {
	all := map[string]any{}
	for i, r := range required {
		one := map[string]string{"source": r.Provider.String()}
		if r.Constraints != "" {
			one["version"] = strings.NewReplacer("${", "$${", "%{", "%%{").Replace(r.Constraints)
		}
		all[fmt.Sprintf("p%d", i)] = one
	}
	return json.Marshal(map[string]any{"terraform": map[string]any{"required_providers": all}})
}
