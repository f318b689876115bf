package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// testTable is a table with commands that take arguments of several kinds.
func testTable() *Table {
	var text, dir string
	var on bool
	prepare := func() (flag.Flags, Run) {
		return flag.Flags{
			flag.Text(&text, "target", "ADDR", "").Completes(flag.Instances),
			flag.Text(&text, "out", "FILE", "").Completes(flag.Files),
			flag.Bool(&on, "refresh", ""),
			flag.Text(&dir, "work", "DIR", "").WithTwoDashes().IsWorkingDir(),
		}, nil
	}
	return &Table{
		Program: "terrace",
		Global:  func() flag.Flags { return flag.Flags{flag.Text(&dir, "chdir", "DIR", "").WithEquals().IsWorkingDir()} },
		Commands: []Command{
			{Name: "plan", Prepare: prepare},
			{Name: "show", Prepare: prepare, Args: []Arg{{Name: "ADDR", Complete: flag.Instances}}},
			{Name: "rm", Prepare: prepare, Args: []Arg{{Name: "ADDR", Complete: flag.Instances, Repeated: true}}},
			{Name: "read", Prepare: prepare, Args: []Arg{{Name: "FILE", Complete: flag.Files}}},
			{Name: "run", Prepare: prepare, Args: []Arg{{Name: "COMMAND", Complete: flag.CommandLine, Repeated: true}}},
			{Name: "shell", Prepare: prepare, Args: []Arg{{Name: "shell", Choices: Shells()}}},
		},
	}
}

// testSource contains instances and paths. The names of those in another directory begin with
// the directory.
type testSource struct{ dir string }

func (s testSource) In(dir string) Source { return testSource{s.dir + dir + "!"} }

func (s testSource) Candidates(what flag.Completion, text string) []string {
	switch what {
	case flag.Instances:
		return []string{s.dir + `a.b`, s.dir + `a.c["x y"]`, s.dir + `a.c["$1'"]`}
	case flag.Files:
		return []string{s.dir + "my file", s.dir + "mine:1", s.dir + "dir/"}
	case flag.Folders:
		return []string{s.dir + "dir/", "~/home dir/"}
	}
	return nil
}

func TestCompleteLine(t *testing.T) {
	for _, x := range []struct {
		line string
		want []string
	}{
		{"terrace pl", []string{"plan"}},
		{"  terrace  pl", []string{"plan"}},
		{"terrace plan -tar", []string{"-target="}},
		{"terrace plan --ref", []string{"--refresh"}},
		{"terrace plan -refresh=", []string{"false", "true"}},
		{"terrace plan -nosuch=", nil},
		{"terrace plan x", nil},
		// The part of the word that readline keeps is not repeated.
		{"terrace plan -target=", []string{"a.b", `a.c\[\"\$1\'\"\]`, `a.c\[\"x\ y\"\]`}},
		{"terrace plan -target a.b", []string{"a.b"}},
		{`terrace plan -target='a.c["`, []string{`a.c["$1'\''"]`, `a.c["x y"]`}},
		{`terrace plan '-target=a.c["`, []string{`-target=a.c["$1'\''"]`, `-target=a.c["x y"]`}},
		{`terrace plan -target="a.c[`, []string{`a.c[\"\$1'\"]`, `a.c[\"x y\"]`}},
		{`terrace show a.c["`, []string{`\"\$1'\"]`, `\"x y\"]`}},
		{`terrace show a.c\[\"x`, []string{`a.c\[\"x\ y\"\]`}},
		{`terrace show 'a.c'[\"x`, []string{`a.c\[\"x\ y\"\]`}},
		{`terrace show a.c\`, []string{`a.c\[\"\$1\'\"\]`, `a.c\[\"x\ y\"\]`}},
		// An argument after the last one, and arguments that repeat.
		{"terrace show a.b a", nil},
		{"terrace show -target a.b a.b", []string{"a.b"}},
		{"terrace rm a.b a.b", []string{"a.b"}},
		{"terrace shell b", []string{"bash"}},
		{"terrace shell bash ", nil},
		{"terrace show a.b -t", nil}, // flags go before the argument
		{"terrace show a.b --w", []string{"--work="}},
		{"terrace show -- -t", nil},
		// Paths.
		{"terrace read m", []string{"mine:1", `my\ file`}},
		{"terrace read mine:", []string{"1"}},
		{`terrace read mine\:`, []string{"mine:1"}},
		{"terrace read 'my f", []string{"my file"}},
		{"terrace plan -out=m", []string{"mine:1", `my\ file`}},
		{"terrace -chdir=", []string{"dir/", `~/home\ dir/`}},
		{"terrace plan --work ~/h", []string{`~/home\ dir/`}},
		{"terrace plan --work dir", []string{"dir/"}},
		// Flags before the command, and flags that change the directory.
		{"terrace -c", []string{"-chdir="}},
		{"terrace -chdir=d pl", []string{"plan"}},
		{"terrace -chdir=d plan -target=", []string{`d\!a.b`, `d\!a.c\[\"\$1\'\"\]`, `d\!a.c\[\"x\ y\"\]`}},
		{"terrace -chdir=d run --work=e read ", []string{`d\!e\!dir/`, `d\!e\!mine:1`, `d\!e\!my\ file`}},
		// A command that runs a command.
		{"terrace run re", []string{"read"}},
		{"terrace run --work x re", []string{"read"}},
		{"terrace run --work x plan -tar", []string{"-target="}},
		{"terrace run -- plan -refresh=t", []string{"true"}},
		{"terrace run nosuch ", nil},
		// Text before and after a command.
		{"cat x | X=1 terrace pl", []string{"plan"}},
		{"terrace plan > x -tar", []string{"-target="}},
		{"terrace plan >", nil},
		{"terr", nil},
		{"", nil},
	} {
		got := testTable().CompleteLine(x.line, Breaks, testSource{})
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", x.line, got, x.want)
		}
	}
	// A user may remove characters from COMP_WORDBREAKS.
	got := testTable().CompleteLine("terrace read mine:", " ", testSource{})
	if want := []string{"mine:1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = testTable().CompleteWhole(`terrace plan '-target=a.c["x`, testSource{})
	if want := []string{`-target=a.c["x y"]`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestScriptNames(t *testing.T) {
	for _, shell := range Shells() {
		text := Script(shell, []string{"terrace", "tofu"})
		if !strings.Contains(text, "tofu") || strings.Contains(text, "NAMES") || strings.Contains(text, "PROGRAM") {
			t.Errorf("%s:\n%s", shell, text)
		}
	}
	if Script("tcsh", []string{"terrace"}) != "" {
		t.Error("a script for another shell")
	}
}
