package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"golang.org/x/tools/txtar"
)

// A hinted program of testdata/hints makes Terrace recommend commands, and runs them.
//
//	=== NAME         begins it
//	$ COMMAND        runs in its directory, with any exit status; NAME=VALUE before it sets an
//	                 environment variable, AWS before it sets those of a fake of AWS; cd, rm, mv, cp and mirror work too
//	!COMMAND         the output of the last "$" recommends this command; it runs and exits with 0
//	!COMMAND | WITH  the same, but WITH runs, since the message contains a placeholder
//	!N COMMAND       it exits with status N
//	> TEXT           the last command printed TEXT
//
// Files follow. The text up to the first "-- FILE --" is main.tf. The file stdin is the input of
// commands. HTTP is the address of a service for the backend http, and ROOT is the directory.
// Without a file settings.rc, programs with the source terrace/test have the test provider;
// "mirror VERSION" copies it into the directory mirror.
type hinted struct {
	name  string
	steps []string
	files []txtar.File
}

func hintedPrograms(t *testing.T) []hinted {
	names, err := filepath.Glob("testdata/hints/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []hinted
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split("\n"+string(text), "\n=== ")[1:] {
			title, rest, _ := strings.Cut(part, "\n")
			h := hinted{name: title}
			for rest != "" && strings.Contains("$!>", rest[:1]) {
				line, after, _ := strings.Cut(rest, "\n")
				h.steps, rest = append(h.steps, line), after
			}
			a := txtar.Parse([]byte(rest + "\n"))
			if len(bytes.TrimSpace(a.Comment)) > 0 {
				h.files = append(h.files, txtar.File{Name: "main.tf", Data: a.Comment})
			}
			h.files = append(h.files, a.Files...)
			out = append(out, h)
		}
	}
	return out
}

// A recommendation is a command that a message recommends, with the message.
type recommendation struct{ command, message string }

// A folderOfHints is the directory in which a program runs.
type folderOfHints struct {
	t    *testing.T
	root string
	dir  string          // current directory
	last string          // output of the last command
	aws  func() []string // environment for a fake of AWS
}

func newFolderOfHints(t *testing.T, files []txtar.File) *folderOfHints {
	root := t.TempDir()
	f := &folderOfHints{t: t, root: root, dir: root, aws: sync.OnceValue(func() []string {
		return []string{"AWS_ENDPOINT_URL=" + servers.AWS(t).URL, "AWS_ACCESS_KEY_ID=" + servers.AccessKey, "AWS_SECRET_ACCESS_KEY=" + servers.SecretKey, "AWS_EC2_METADATA_DISABLED=true"}
	})}
	service := sync.OnceValue(func() string { return strings.TrimSuffix(servers.HTTP(t).URL, "/state") })
	if i := slices.IndexFunc(files, func(f txtar.File) bool { return f.Name == "settings.rc" }); i < 0 && strings.Contains(string(txtar.Format(&txtar.Archive{Files: files})), "terrace/test") {
		files = append(files, txtar.File{Name: "settings.rc", Data: []byte(fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"terrace/test\" = %q\n  }\n}\n", filepath.Dir(f.provider())))})
	}
	for _, file := range files {
		path := filepath.Join(root, file.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		text := string(file.Data)
		if strings.Contains(text, "HTTP") {
			text = strings.ReplaceAll(text, "HTTP", service())
		}
		text = strings.ReplaceAll(text, "ROOT", filepath.ToSlash(root))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// run runs a line, and returns the exit status.
func (f *folderOfHints) run(line, input string) int {
	f.t.Helper()
	line, aws := strings.CutPrefix(line, "AWS ")
	words := strings.Fields(line)
	env := []string{"HOME=" + f.root, "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
	if _, err := os.Stat(filepath.Join(f.root, "settings.rc")); err == nil {
		env = append(env, "TF_CLI_CONFIG_FILE="+filepath.Join(f.root, "settings.rc"))
	}
	if aws {
		env = append(env, f.aws()...)
	}
	for len(words) > 0 && !strings.HasPrefix(words[0], "-") && strings.Contains(words[0], "=") {
		env, words = append(env, words[0]), words[1:]
	}
	in := func(name string) string { return filepath.Join(f.dir, name) }
	var err error
	switch words[0] {
	case "cd":
		f.dir = in(words[1])
		return 0
	case "rm":
		err = os.RemoveAll(in(words[1]))
	case "mv":
		err = os.Rename(in(words[1]), in(words[2]))
	case "mirror":
		dir := in(filepath.Join("mirror", "registry.opentofu.org", "terrace", "test", words[1], runtime.GOOS+"_"+runtime.GOARCH))
		if err = os.MkdirAll(dir, 0o755); err == nil {
			err = os.Link(f.provider(), filepath.Join(dir, "terraform-provider-test"))
		}
	case "cp":
		var text []byte
		if text, err = os.ReadFile(in(words[1])); err == nil {
			err = os.WriteFile(in(words[2]), text, 0o644)
		}
	default:
		for i := range words {
			words[i] = strings.Trim(words[i], `'"`)
		}
		var out, file sys.Buffer
		stdout := io.Writer(&out)
		if n := len(words) - 2; n > 0 && words[n] == ">" {
			defer func(name string) {
				if err := os.WriteFile(in(name), []byte(file.String()), 0o644); err != nil {
					f.t.Fatal(err)
				}
			}(words[n+1])
			words, stdout = words[:n], &file
		}
		status, err := runProgram(f.t.Context(), f.dir, env, strings.NewReader(input), stdout, &out, words...)
		if err != nil {
			f.t.Fatal(err)
		}
		f.last = strings.ReplaceAll(out.String(), `"tofu `, `"`+view.Program+" ") // by the name tofu, messages recommend that name
		return status
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return 0
}

// provider returns the path of the test provider.
func (f *folderOfHints) provider() string {
	bin, err := exec.LookPath("terraform-provider-test")
	if err != nil {
		f.t.Fatal(err)
	}
	if bin, err = filepath.EvalSymlinks(bin); err != nil {
		f.t.Fatal(err)
	}
	return bin
}

// misused matches the errors about an invalid command line.
var misused = regexp.MustCompile(`For more help on using this command|has no (command named|global option)`)

// recommends reports whether a text recommends a command: in quotes, or on a line of its own.
func recommends(text, line string) bool {
	bare := strings.TrimPrefix(line, view.Program+" ")
	lines, text := text, joined(text)
	for _, q := range []string{`"`, "`"} {
		if strings.Contains(text, q+line+q) || strings.Contains(text, q+bare+q) {
			return true
		}
	}
	for l := range strings.Lines(lines) {
		if l = strings.TrimSpace(strings.Trim(l, " │╷╵\n")); strings.HasSuffix(l, ": "+line) || l == line {
			return true
		}
	}
	return false
}

var expectedStatus = regexp.MustCompile(`^!(\d+) `)

// TestHintsRun runs the commands that messages recommend, in the same directory, and checks
// that they have the described effect. testdata/hints/unrun.list contains the messages whose
// commands are not run, with reasons.
func TestHintsRun(t *testing.T) {
	t.Parallel()
	table := cli.Table()
	var mu sync.Mutex
	var seen []recommendation
	found := func(line, message string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, recommendation{line, joined(message)})
	}
	t.Run("programs", func(t *testing.T) {
		for _, h := range hintedPrograms(t) {
			t.Run(h.name, func(t *testing.T) {
				t.Parallel()
				f := newFolderOfHints(t, h.files)
				input, _ := os.ReadFile(filepath.Join(f.root, "stdin"))
				message := ""
				for _, step := range h.steps {
					step = strings.ReplaceAll(step, "ROOT", f.root)
					switch step[0] {
					case '$':
						f.last = ""
						if f.run(step[2:], string(input)); f.last != "" {
							message = f.last
						}
					case '>':
						if !strings.Contains(joined(f.last), joined(step[2:])) {
							t.Fatalf("%q is not in what was printed:\n%s", step[2:], f.last)
						}
					case '!':
						want := "0"
						if m := expectedStatus.FindStringSubmatch(step); m != nil {
							want, step = m[1], "!"+step[len(m[0]):]
						}
						line, with, ok := strings.Cut(step[1:], " | ")
						if !recommends(message, line) {
							t.Fatalf("%q is not recommended:\n%s", line, message)
						}
						if !ok {
							with = line
						}
						status := f.run(strings.TrimPrefix(with, view.Program+" "), string(input))
						if fmt.Sprint(status) != want || want != "0" && misused.MatchString(f.last) {
							t.Fatalf("%q was recommended, and ends with status %d:\n%s\nwhere it was recommended:\n%s", with, status, f.last, message)
						}
						found(line, message)
					}
				}
			})
		}
	})
	t.Run("codes", func(t *testing.T) {
		for _, p := range provocations(t) {
			t.Run(p.code, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				out := p.runIn(t, dir)
				_, out, _ = cutLast(out, "\n$ ") // of the last command
				f := &folderOfHints{t: t, dir: dir, root: dir}
				for i, line := range hintsIn(table, out) {
					if !recommends(out, line) || i > 0 && line == hintsIn(table, out)[i-1] || strings.Contains(line, "login") {
						continue
					}
					copied := filepath.Join(t.TempDir(), "copy")
					if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
						t.Fatal(err)
					}
					f.dir, f.root = copied, copied
					f.run(strings.TrimPrefix(line, view.Program+" "), "yes\n")
					if misused.MatchString(f.last) && !strings.Contains(line, "-help") {
						t.Errorf("%q was recommended, and is none that there is:\n%s\nwhere it was recommended:\n%s", line, f.last, out)
					}
					found(line, out)
				}
			})
		}
	})
	list, err := os.ReadFile("testdata/hints/unrun.list")
	if err != nil {
		t.Fatal(err)
	}
	unrun := map[string]bool{} // by file and command: whether a command is not run
	for line := range strings.Lines(string(list)) {
		if !strings.HasPrefix(line, "#") {
			parts := strings.SplitN(strings.TrimSpace(line), " | ", 3)
			if len(parts) != 3 || parts[2] == "" {
				t.Errorf("unrun.list: %q has no reason", line)
				continue
			}
			unrun[parts[0]+" | "+parts[1]] = false
		}
	}
	all, missing := 0, map[string]string{}
	for _, h := range messageHints(t, table) {
		all++
		if slices.ContainsFunc(seen, h.by) {
			continue
		}
		key := h.file + " | " + h.line
		if _, listed := unrun[key]; listed {
			unrun[key] = true
		} else {
			missing[key] = h.piece
		}
	}
	for _, key := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("%s is recommended and was not run: write a program in testdata/hints, or say in unrun.list why there is none\n\t(%q)", key, missing[key])
	}
	for key, needed := range unrun {
		if !needed {
			t.Errorf("unrun.list: %s is run, or no message recommends it", key)
		}
	}
	t.Logf("%d recommendations in messages, %d not run; %d commands run", all, len(unrun), len(seen))
}

// joined returns a text without line breaks.
func joined(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "│", " ")), " ")
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex("\n"+s, sep); i >= 0 {
		return s[:i], s[i+len(sep)-1:], true
	}
	return "", s, false
}

// A messageHint is a command that a message recommends.
type messageHint struct {
	file  string
	line  string // with VALUE in place of each verb
	piece string // the text of the message around the command, up to the next verbs
}

// by reports whether a recommendation comes from the message.
func (h messageHint) by(r recommendation) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(h.line), "VALUE", ".*")
	return regexp.MustCompile("^("+view.Program+" )?"+strings.TrimPrefix(pattern, view.Program+" ")+"$").MatchString(r.command) && strings.Contains(r.message, h.piece)
}

// messageHints returns the commands that texts in the source recommend, except in help texts.
func messageHints(t *testing.T, table *command.Table) []messageHint {
	help := ""
	for i := range table.Commands {
		c := &table.Commands[i]
		help += "\n" + c.Synopsis + "\n" + c.Help + "\n" + c.After + "\n" + c.Hint
		for _, a := range c.Args {
			help += "\n" + a.Help
		}
		for _, f := range table.Flags(c) {
			help += "\n" + f.Help
		}
	}
	root := filepath.Join("..", "..")
	var out []messageHint
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case d.IsDir():
			if name != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "bench", "backendtest", "testkit", "examples"}, d.Name())) || name == filepath.Join("internal", "cli", "help") {
				return filepath.SkipDir
			}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			texts, err := textsOf(path)
			if err != nil {
				return err
			}
			for _, text := range texts {
				if strings.Contains(help, text) {
					continue
				}
				for _, line := range hintsIn(table, text) {
					out = append(out, messageHint{filepath.ToSlash(name), line, pieceAround(text, line)})
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pieceAround returns the part of a message around a command, up to the next verbs of its
// format.
func pieceAround(text, line string) string {
	at := strings.Index(text, line)
	if at < 0 {
		line = strings.TrimPrefix(line, view.Program+" ")
		at = strings.Index(text, line)
	}
	if at < 0 {
		return line
	}
	before, after := text[:at], text[at:]
	if i := strings.LastIndex(before, "VALUE"); i >= 0 {
		before = before[i+len("VALUE"):]
	}
	if i := strings.LastIndex(strings.TrimRight(before, " \n"), "\n"); i >= 0 {
		before = before[i:]
	}
	if i := strings.Index(after, "VALUE"); i >= 0 {
		after = after[:i]
	}
	if i := strings.Index(after, "\n"); i >= 0 {
		after = after[:i]
	}
	return joined(before + after)
}
