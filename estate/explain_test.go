package estate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/estate"
)

// The module of a unit decides which of its inputs are secret: their values, and the local values that
// set them, are not shown.
func TestExplainSecretInput(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"m/main.tf":        "variable \"greeting\" {\n  type      = string\n  sensitive = true\n}\nvariable \"size\" {\n  type = string\n}\n",
		"u/terragrunt.hcl": "terraform {\n  source = \"../m\"\n}\nlocals {\n  word = \"hunter2\"\n}\ninputs = {\n  greeting = local.word\n  size     = \"small\"\n}\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e, ds := estate.Open(t.Context(), estate.Options{Dir: dir})
	defer e.Close(t.Context())
	if ds.HasErrors() {
		t.Fatal(e.Text(ds, nil))
	}
	for address, shown := range map[string]string{"inputs.greeting": "", "var.greeting": "", "inputs.size": "small"} {
		x, ds := e.Explain(t.Context(), "u", address)
		if ds.HasErrors() {
			t.Fatal(e.Text(ds, nil))
		}
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "hunter2") {
			t.Errorf("%s is shown: %s", address, text)
		}
		if !strings.Contains(string(text), shown) {
			t.Errorf("%s is not shown: %s", address, text)
		}
	}
}
