package cli_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/cli"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// TestHintsNameCommands checks that every command that a message, a help text or a page of the
// documentation recommends exists, and has the given flags.
func TestHintsNameCommands(t *testing.T) {
	root := filepath.Join("..", "..")
	table := cli.Table()
	flags := flagsOf(table)
	seen := 0
	check := func(where, text string) {
		for _, h := range hintsIn(table, text) {
			seen++
			if why := wrongHint(table, h); why != "" {
				t.Errorf("%s: %q: %s", where, h, why)
			}
		}
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case d.IsDir():
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bench" || d.Name() == "backendtest") {
				return filepath.SkipDir
			}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			texts, err := textsOf(path)
			if err != nil {
				return err
			}
			for at, text := range texts {
				where := fmt.Sprintf("%s:%d", name, at/1000)
				check(where, text)
				for _, f := range wrongFlags(flags, text) {
					t.Errorf("%s: %s in %q: no command has such a flag", where, f, text)
				}
			}
		case strings.HasSuffix(name, ".md") && name != "CHANGELOG.md" && name != filepath.Join("docs", "small-differences.md"): // these contain removed or refused commands
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for i, line := range strings.Split(string(b), "\n") {
				check(fmt.Sprintf("%s:%d", name, i+1), line)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 100 {
		t.Errorf("only %d hints were found", seen)
	}
}

// TestWrongHints checks that the checks of TestHintsNameCommands find errors.
func TestWrongHints(t *testing.T) {
	table := cli.Table()
	for text, want := range map[string]string{
		`Run "terrace init" first.`:                       "",
		`Run "terrace initialize" first.`:                 "terrace initialize",
		"Try `terrace workspace select x` for it.":        "",
		"Try `terrace workspace choose x` for it.":        "terrace workspace choose x",
		`Put it there with "workspace push x".`:           "terrace workspace push x",
		`run the following command: terrace apply -froce`: "terrace apply -froce",
		`  terrace run --all apply -out x`:                "",
		`Terrace init is nothing to run.`:                 "",
	} {
		got := ""
		for _, h := range hintsIn(table, text) {
			if wrongHint(table, h) != "" {
				got = h
			}
		}
		if got != want {
			t.Errorf("%q: wrong is %q, want %q", text, got, want)
		}
	}
}

var (
	hint     = regexp.MustCompile("(?:^|[\\s\"`'(])(?:\\./)?(?:bin/)?" + view.Program + `((?: +-[-a-z]+(?:=\S+)?)*(?: +[-a-zA-Z0-9=./_']+)+)`)
	quoted   = regexp.MustCompile("[\"`]([a-z]+ -?-?[a-z][-a-z]+(?: [^\"`]*)?)[\"`]")
	quotedOf = regexp.MustCompile("[\"`]((?:force-unlock|taint|untaint|import|apply|show) [A-Z][^\"`]*)[\"`]")
	named    = regexp.MustCompile("(?:^|[\\s\"`'(])(--?[a-z][a-z0-9]*(?:-[a-z0-9]+)*)\\b")
	sentence = regexp.MustCompile(`(?s)^[A-Za-z%"].* .*(\.$|\. | option| flag)`)
	letters  = regexp.MustCompile(`^[a-z][-a-z]*$`)
	option   = regexp.MustCompile(`^--?([a-z][-a-z]*)`)
)

// hintsIn returns the command lines in a text: those that begin with the program's name, and
// quoted ones that begin with the first word of several commands.
func hintsIn(table *command.Table, text string) []string {
	var out []string
	for _, m := range hint.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(strings.TrimSpace(m[1]), "=") {
			continue // the argument terrace of compatible_with
		}
		out = append(out, view.Program+strings.TrimRight(m[1], ".,"))
	}
	for _, m := range quotedOf.FindAllStringSubmatch(text, -1) {
		out = append(out, view.Program+" "+m[1])
	}
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		words := strings.Fields(m[1])
		_, _, known := table.Find(words[:1])
		if (family(table, words[0]) || known && strings.HasPrefix(words[1], "-")) && !slices.Contains(words, "=") {
			out = append(out, view.Program+" "+m[1])
		}
	}
	return out
}

// flagsOf returns the names of all flags of all commands.
func flagsOf(table *command.Table) map[string]bool {
	out := map[string]bool{"help": true, "version": true}
	for _, f := range slices.Concat(table.Global(), table.Common(), table.Units()) {
		out[f.Name] = true
	}
	for i := range table.Commands {
		for _, f := range table.Flags(&table.Commands[i]) {
			out[f.Name] = true
		}
	}
	return out
}

// wrongFlags returns words of a sentence that look like a flag but are not a flag of any
// command.
func wrongFlags(flags map[string]bool, text string) []string {
	var out []string
	if !sentence.MatchString(text) || strings.Contains(text, "__complete") {
		return nil // arguments of a program, or a shell script
	}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		name := strings.TrimLeft(m[1], "-")
		if !flags[name] && !flags[strings.TrimPrefix(name, "no-")] && !slices.Contains(notFlags, name) {
			out = append(out, m[1])
		}
	}
	return out
}

// notFlags are flags of other programs, and those of run_cmd in unit files.
var notFlags = []string{"quota-backend-bytes", "max-request-bytes", "prefix", "name", "run", "terragrunt-boundary", "terragrunt-quiet", "terragrunt-global-cache", "terragrunt-no-cache"}

// family reports whether a word is the first word of several commands, in this program,
// OpenTofu or Terragrunt.
func family(table *command.Table, word string) bool {
	return word == "state" || word == "metadata" || len(table.Subcommands(word)) > 0
}

// wrongHint returns the error in a command line, or "".
func wrongHint(table *command.Table, line string) string {
	words := strings.Fields(line)[1:]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") { // global options
		words = words[1:]
	}
	if len(words) == 0 || slices.Contains(notCommands, words[0]) {
		return ""
	}
	cmd, rest, ok := table.Find(words)
	if !ok {
		return "there is no such command"
	}
	if len(rest) > 0 && letters.MatchString(rest[0]) && cmd.Name == words[0] && len(table.Subcommands(cmd.Name)) > 0 && len(cmd.Args) == 0 {
		return "there is no such subcommand"
	}
	known := table.Flags(cmd)
	for _, w := range rest {
		if w == "--" {
			break // the following words belong to another program
		}
		m := option.FindStringSubmatch(w)
		if m == nil || cmd.Name == "run" || slices.Contains([]string{"help", "h", "version", "all", "a"}, m[1]) {
			continue
		}
		if !slices.ContainsFunc(known, func(f flag.Flag) bool {
			return f.Name == m[1] || strings.HasPrefix(m[1], "no-") && f.Name == m[1][3:]
		}) {
			return "it has no flag " + w
		}
	}
	return ""
}

// notCommands are words that follow the program's name in a text but are not a command.
var notCommands = []string{"VALUE", "COMMAND", "./cmd/terrace", "estate", "journal", "is", "and", "or", "does", "has", "in", "as"}

// textsOf returns the texts in a source file, by 1000 times their line plus a number. The
// parts of one expression form one text, which contains the program's name where the
// expression inserts it.
func textsOf(path string) (map[int]string, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		return nil, err
	}
	out := map[int]string{}
	add := func(at token.Pos, text string) {
		line := set.Position(at).Line * 1000
		for out[line] != "" {
			line++
		}
		out[line] = text
	}
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.CallExpr:
			if text, ok := formatted(n.Args); ok {
				add(n.Pos(), text)
				for _, a := range n.Args {
					if _, ok := text1(a); !ok {
						ast.Inspect(a, visit)
					}
				}
				return false
			}
		case ast.Expr:
			if text, ok := text1(n); ok {
				add(n.Pos(), text)
				return false
			}
		}
		return true
	}
	ast.Inspect(f, visit)
	return out, nil
}

var verb = regexp.MustCompile(`%(\[\d+\])?[a-z]`)

// formatted returns the result of a call with a format and arguments, as far as it is known.
func formatted(args []ast.Expr) (string, bool) {
	for i, a := range args {
		format, ok := text1(a)
		if !ok || !verb.MatchString(format) {
			continue
		}
		before := ""
		for _, a := range args[:i] {
			if text, ok := text1(a); ok {
				before += text + "\n"
			}
		}
		next := i + 1
		return before + verb.ReplaceAllStringFunc(format, func(v string) string {
			at := next
			if n, err := strconv.Atoi(strings.Trim(v, "%[]abcdefghijklmnopqrstuvwxyz")); err == nil {
				at = i + n
			} else {
				next++
			}
			if at < len(args) {
				if text, ok := text1(args[at]); ok {
					return text
				}
			}
			return "VALUE"
		}), true
	}
	return "", false
}

// text1 returns the value of an expression of string literals.
func text1(x ast.Expr) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			s, err := strconv.Unquote(x.Value)
			return s, err == nil
		}
	case *ast.SelectorExpr:
		switch x.Sel.Name {
		case "Program":
			return view.Program, true
		case "Product":
			return view.Product, true
		}
	case *ast.CallExpr: // of the methods of diag.Names
		if len(x.Args) == 0 {
			return text1(x.Fun)
		}
	case *ast.Ident:
		switch x.Name {
		case "Program":
			return view.Program, true
		case "Product":
			return view.Product, true
		}
	case *ast.BinaryExpr:
		a, okA := text1(x.X)
		b, okB := text1(x.Y)
		if x.Op != token.ADD || !okA && !okB {
			return "", false
		}
		if !okA {
			a = "VALUE"
		}
		if !okB {
			b = "VALUE"
		}
		return a + b, true
	}
	return "", false
}
