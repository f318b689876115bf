package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDifferencesHaveTests checks that every row of docs/differences.md has a test, which
// testdata/differences.txt names.
func TestDifferencesHaveTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("testdata/differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for line := range strings.Lines(string(list)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndex(line, " | ")
		if i < 0 {
			t.Fatalf("no test in %q", line)
		}
		shown[line[:i]] = line[i+3:]
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		row, ok := strings.CutPrefix(cells[0], "| ")
		if !ok || len(cells) < 2 || strings.TrimSpace(strings.Trim(row, "|")) == "" {
			continue
		}
		rows++
		by, ok := shown[row]
		if !ok {
			t.Errorf("nothing in testdata/differences.txt shows the row %q", row)
			continue
		}
		delete(shown, row)
		file, test, _ := strings.Cut(by, ":")
		path := filepath.Join("../..", file)
		if !strings.Contains(file, "/") {
			path = filepath.Join("testdata/script", file)
		}
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), test) {
			t.Errorf("the row %q is shown by %s, which does not exist", row, by)
		}
	}
	for row := range shown {
		t.Errorf("docs/differences.md has no row %q", row)
	}
	if rows < 80 {
		t.Errorf("%d rows found", rows)
	}
}
