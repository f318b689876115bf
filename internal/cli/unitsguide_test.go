package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// TestUnitsGuide runs the guide for units. Its snippets are files, named in their first lines.
// Its commands run on the snippets above them.
func TestUnitsGuide(t *testing.T) {
	bin, err := exec.LookPath("terrace")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/units.md")
	if err != nil {
		t.Fatal(err)
	}
	root, home, ran := t.TempDir(), t.TempDir(), 0
	for _, m := range regexp.MustCompile("(?s)```(\\w+)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if m[1] == "hcl" {
			first, rest, _ := strings.Cut(m[2], "\n")
			path := filepath.Join(root, strings.TrimPrefix(first, "# "))
			if !strings.HasPrefix(first, "# ") {
				t.Fatalf("a snippet names no file: %s", first)
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(rest), 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for line := range strings.Lines(m[2]) {
			words := strings.Fields(line)
			cmd := exec.Command(bin, words[1:]...)
			cmd.Dir = root
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.TempDir()}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v\n%s", strings.TrimSpace(line), err, out)
			}
			if strings.Contains(line, "render --json") && !strings.Contains(string(out), `"tags":{"name":"vpc-eu-central-1","region":"eu-central-1","team":"platform"}`) {
				t.Errorf("the tags are not merged:\n%s", out)
			}
			ran++
		}
	}
	if ran < 10 {
		t.Errorf("the guide has %d commands", ran)
	}
}

// TestUnitsReference runs each example of the reference in a directory. The output of a
// command must contain the text printed below it.
func TestUnitsReference(t *testing.T) {
	bin, err := exec.LookPath("terrace")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/units-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	type snippet struct{ path, text string }
	var shared []snippet // files that precede the examples of a chapter
	home, ran := t.TempDir(), 0
	for _, section := range regexp.MustCompile(`(?m)^#{2,3} `).Split(string(text), -1) {
		title, _, _ := strings.Cut(section, "\n")
		var files []snippet
		for _, m := range regexp.MustCompile("(?s)```hcl\n# (\\S+)\n(.*?)```").FindAllStringSubmatch(section, -1) {
			files = append(files, snippet{m[1], m[2]})
		}
		if title == "Environment files" {
			shared = files
			continue
		}
		root := t.TempDir()
		for _, f := range append(shared[:len(shared):len(shared)], files...) {
			path := filepath.Join(root, f.path)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(f.text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range regexp.MustCompile("(?s)```text\n(.*?)```").FindAllStringSubmatch(section, -1) {
			for _, run := range strings.Split(m[1], "$ ")[1:] {
				lines := strings.Split(strings.TrimSpace(run), "\n")
				cmd := exec.Command(bin, strings.Fields(lines[0])[1:]...)
				cmd.Dir = root
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.TempDir()}
				out, _ := cmd.CombinedOutput() // some examples show an error
				rest, ok := words(string(out)), false
				for _, want := range lines[1:] {
					if _, rest, ok = strings.Cut(rest, words(want)); !ok {
						t.Errorf("%s: %s does not print %s, but\n%s", title, lines[0], want, out)
						break
					}
				}
				ran++
			}
		}
	}
	if ran < 30 {
		t.Errorf("the reference has %d commands", ran)
	}
}

// words returns a text with its lines joined, without frames and line widths.
func words(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("│╷╵", r) }), " ")
}
