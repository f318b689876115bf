package lsp

import (
	"os"
	"path/filepath"
	"testing"
)

// copyTree copies what a comparison needs, with the texts of buffers, and nothing outside.
func TestCopyTree(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for _, name := range []string{"main.tf", "m/main.tf", ".git/HEAD", ".terraform/modules/modules.json", ".terraform/providers/x/y"} {
		path := filepath.Join(from, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("disk"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(t.TempDir(), "other.tf")
	texts := map[string][]byte{filepath.Join(from, "m", "main.tf"): []byte("buffer"), filepath.Join(from, "new", "main.tf"): []byte("unsaved"), other: []byte("other")}
	if err := copyTree(t.Context(), from, to, texts); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"main.tf": "disk", "m/main.tf": "buffer", "new/main.tf": "unsaved", ".terraform/modules/modules.json": "disk", ".git/HEAD": "", ".terraform/providers/x/y": ""} {
		got, err := os.ReadFile(filepath.Join(to, filepath.FromSlash(name)))
		if string(got) != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
