package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The guide for units is a tree: its snippets are files, named in their first lines, and
// its commands work on what stands above them.
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
