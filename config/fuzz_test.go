package config

import (
	"os"
	"strings"
	"testing"
)

// FuzzLoad loads random text: nothing panics, every message has a position, and what loads
// without errors can be printed and loaded again.
func FuzzLoad(f *testing.F) {
	add := func(text string) { f.Add(text, "", "") }
	add(everyBlock)
	for _, name := range ruleFiles(f) {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		var native, js, over string
		for _, part := range strings.Split(string(text), "\n-- ")[1:] {
			head, body, _ := strings.Cut(part, " --\n")
			switch {
			case strings.HasSuffix(head, ".json"):
				js = body
			case strings.Contains(head, "override"):
				over = body
			case strings.HasSuffix(head, ".tf"):
				native = body
			default:
				continue
			}
			f.Add(native, js, over)
		}
	}
	f.Fuzz(func(t *testing.T, native, js, over string) {
		files := map[string][]byte{"a.tf": []byte(native), "b_override.tofu": []byte(over)}
		if js != "" {
			files["c.tf.json"] = []byte(js)
			files["d_override.tf.json"] = []byte(js)
		}
		m, ds := LoadFiles("dir", files, Options{})
		for _, d := range ds {
			if d.At == nil || !strings.HasPrefix(d.At.Filename, "dir/") || d.At.Start.Line < 1 || d.Summary == "" {
				t.Errorf("a message without a place: %s", report(d))
			}
		}
		printed(t, m, PrintOptions{Origins: true})
		printed(t, m, PrintOptions{Origins: true, JSON: true})
		for _, r := range m.Resources {
			References(r.Body)
			m.Setting(r.Body, "a")
		}
		if !ds.HasErrors() {
			roundTrip(t, m)
		}
	})
}
