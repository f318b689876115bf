package origin

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// FuzzExplain explains random addresses in a directory with all kinds of objects. Each address results in
// an explanation or an error, and no explanation contains a secret.
func FuzzExplain(f *testing.F) {
	files := map[string]string{}
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(archive.Comment)) {
			if address, ok := strings.CutPrefix(strings.TrimSpace(line), "explain "); ok {
				f.Add(address)
			}
		}
		if base := filepath.Base(name); base == "blocks.txtar" || base == "sensitive.txtar" {
			for _, file := range archive.Files {
				if file.Name == "main_override.tf" || file.Name == "output" {
					continue
				}
				name := strings.Replace(file.Name, "main", strings.TrimSuffix(base, ".txtar"), 1)
				files[name] = string(file.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, address string) {
		h := open(t, files, nil, nil, nil)
		x, ds := h.ask(t, address)
		if ds.HasErrors() {
			return
		}
		var text strings.Builder
		if err := x.Print(&text); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(raw)
		shown := strings.ReplaceAll(text.String(), address, "") // the address itself may contain any text
		if !strings.HasPrefix(address, "output.shown") && strings.Contains(shown, "hunter") {
			t.Errorf("a secret is shown:\n%s", text.String())
		}
	})
}
