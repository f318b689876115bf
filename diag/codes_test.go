package diag_test

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/diag"
)

// TestCodesCoverTheSource holds the table against the source: whatever makes a message
// gives it a code of the table, by name or by its summary, and each code is used.
func TestCodesCoverTheSource(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	sites := read(t)
	if len(sites) < 1000 {
		t.Fatalf("only %d places that make messages were found", len(sites))
	}
	for _, s := range sites {
		code := s.code
		switch {
		case code == "" && strings.Trim(s.summary, "*") == "":
			if !passedOn[file(s.at)] {
				t.Errorf("%s makes a message whose summary cannot be told from the source and that has no code", s.at)
			}
			continue
		case code == "":
			code = (&diag.Message{Summary: strings.ReplaceAll(s.summary, "*", "x")}).CodeName()
			if code == "" {
				t.Errorf("%s: %q has no code: add it to codes.txt", s.at, s.summary)
				continue
			}
		}
		found := false
		for _, c := range diag.Codes() {
			if ok, _ := path.Match(code, c.Name); ok {
				used[c.Name], found = true, true
			}
		}
		if !found {
			t.Errorf("%s: the code %q is not in codes.txt", s.at, code)
		}
	}
	for _, c := range diag.Codes() {
		if !used[c.Name] && !ofLibraries(c.Name) && !byConstant[c.Name] {
			t.Errorf("nothing makes messages with the code %q", c.Name)
		}
	}
}

// passedOn are files that pass on messages which others made.
var passedOn = map[string]bool{
	"config/merged.go": true, "diag/diag.go": true, "diag/json.go": true, "internal/state/backend/local/local.go": true, "internal/cli/explain/code.go": true, "internal/cli/remoterun/remoterun.go": true,
	"internal/lang/module/installer/call.go": true, "internal/temporal/worker/lease.go": true, "internal/testrun/bound.go": true,
}

// byConstant are codes that are given to messages by another way than the test follows.
var byConstant = map[string]bool{
	"module/unreadable": true, "unit/empty-path": true,
	"backend/changed": true, "backend/lock-lost": true, // chosen by what the store answered
	"provider/crash": true, "provider/closed": true, // chosen by what became of the connection
}

// ofLibraries says of a code whether it is of messages that the HCL library makes.
func ofLibraries(code string) bool {
	return strings.HasPrefix(code, "syntax/") || slices.Contains([]string{
		"lang/type", "lang/function", "lang/operator", "lang/index", "lang/for", "lang/condition", "lang/template-value", "lang/optional-default",
	}, code)
}

func file(at string) string { return at[:strings.LastIndexByte(at, ':')] }

func TestCodes(t *testing.T) {
	t.Parallel()
	all := diag.Codes()
	if !slices.IsSortedFunc(all, func(a, b diag.Code) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("codes.txt is not sorted")
	}
	for i, c := range all {
		if !codeShape.MatchString(c.Name) || i > 0 && c.Name == all[i-1].Name {
			t.Errorf("%q is no code, or is there twice", c.Name)
		}
		if len(c.Text) < 20 || !strings.HasSuffix(c.Text, ".") {
			t.Errorf("%s needs an explanation in sentences, not %q", c.Name, c.Text)
		}
		if got, ok := diag.FindCode(c.Name); !ok || got.Text != c.Text {
			t.Errorf("FindCode does not find %s", c.Name)
		}
	}
	for summary, want := range map[string]string{
		"Cycle":                               "eval/cycle",
		"Invalid local path":                  "backend/local-path",
		`Output "x" not found`:                "cli/output",
		"file provisioner error":              "provisioner/failed",
		"Something that nobody has ever said": "",
	} {
		if got := (&diag.Message{Summary: summary}).CodeName(); got != want {
			t.Errorf("%q has the code %q, not %q", summary, got, want)
		}
	}
	if _, ok := diag.FindCode("config/no-such-code"); ok {
		t.Error("a code is found that does not exist")
	}
}

// TestBranchesOnCodes: what goes by the code of a message compares the one that it was made
// with. CodeName looks a summary up, which is for those who show messages.
func TestBranchesOnCodes(t *testing.T) {
	t.Parallel()
	shows := []string{"diag/codes.go", "diag/json.go", "diag/text.go", "internal/cli/report/report.go"}
	seen := 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		if bytes.Contains(text, []byte("CodeName()")) {
			seen++
			if rel, _ := filepath.Rel("..", name); !slices.Contains(shows, filepath.ToSlash(rel)) {
				t.Errorf("%s asks for the code by way of the summary", rel)
			}
		}
		return err
	})
	if err != nil || seen != len(shows) {
		t.Errorf("%d files ask for it, not those of %q: %v", seen, shows, err)
	}
}
