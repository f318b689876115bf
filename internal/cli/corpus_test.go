package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/parallel"
	"golang.org/x/tools/txtar"
)

// A corpusCase is a configuration and the commands that run on it, one after the other in one
// directory. Each archive of testdata/corpus contains many cases. The file NAME/steps contains
// one command per line, the other files below NAME are those of the directory, and NAME/want
// contains the expected answers. A line of steps is
//
//	[VAR=text]... COMMAND ARGUMENT... [<INPUT] [>OUTPUT]
//
// Arguments may be quoted. "cat FILE" prints a file, "cp FROM TO" copies one, and "rm FILE"
// removes one. A line "## reason" means that OpenTofu's answer to the next step differs.
// "init" runs first and is not compared, unless it is a step or the first line is "-".
type corpusCase struct {
	area, name string
	files      []txtar.File
	steps      []corpusStep
	want       string
}

type corpusStep struct {
	line   string
	reason string // why OpenTofu's answer differs
}

// TestCorpus compares the answers of the program with those in testdata/corpus. If
// TERRACE_TEST_TOFU names an OpenTofu 1.12, it compares OpenTofu's answers too. The output on
// both streams and the exit status must be equal, except for times, identifiers, product names
// and line breaks. -update writes the answers of the program.
func TestCorpus(t *testing.T) {
	cases := corpus(t)
	peer := os.Getenv("TERRACE_TEST_TOFU")
	// Answers contain paths and are wrapped, so all paths have the same length.
	root := t.TempDir()
	root = filepath.Join(root, strings.Repeat("d", max(1, 47-len(root))))
	type answer struct {
		text     string // the recorded answer
		failures []string
		steps    int
		known    int // answers with intended differences
		purposes []string
		exact    int // answers that are equal, including the wording of messages
	}
	answers := make([]answer, len(cases))
	parallel.Each(len(cases), 4, func(i int) {
		if !sampled(i) {
			return
		}
		c, a := cases[i], &answers[i]
		mine := newCorpusRun("", filepath.Join(root, fmt.Sprintf("%03d", i), "terrace"), c)
		var theirs *corpusRun
		if peer != "" {
			theirs = newCorpusRun(peer, filepath.Join(root, fmt.Sprintf("%03d", i), "tofu"), c)
		}
		for _, s := range c.steps {
			a.steps++
			out := mine.step(s.line)
			a.text += "$ " + s.line + "\n" + out
			if theirs == nil {
				continue
			}
			other := theirs.step(s.line)
			if corpusSpace.ReplaceAllString(scrubAll(out, corpusNames), " ") == corpusSpace.ReplaceAllString(scrubAll(other, corpusNames), " ") {
				a.exact++
			}
			switch same := corpusEqual(out) == corpusEqual(other); {
			case !same && s.reason == "":
				a.failures = append(a.failures, fmt.Sprintf("%s/%s: %s\n%s", c.area, c.name, s.line, corpusDifference(corpusEqual(out), corpusEqual(other))))
			case same && s.reason != "":
				a.failures = append(a.failures, fmt.Sprintf("%s/%s: %s: the answers are equal, so %q is said in vain", c.area, c.name, s.line, s.reason))
			case !same:
				a.known++
				a.purposes = append(a.purposes, fmt.Sprintf("%s/%s: %s: %s\n%s", c.area, c.name, s.line, s.reason, corpusDifference(corpusEqual(out), corpusEqual(other))))
			}
		}
	})
	var steps, known, exact int
	for i, a := range answers {
		if !sampled(i) {
			continue
		}
		steps += a.steps
		known += a.known
		exact += a.exact
		for _, f := range a.failures {
			t.Error(f)
		}
		for _, p := range a.purposes {
			t.Log(p)
		}
		if c := cases[i]; a.text != c.want && !*update {
			t.Errorf("%s/%s answers\n%s\nand not\n%s", c.area, c.name, a.text, c.want)
		}
	}
	if *update {
		texts := map[string]string{}
		for i, a := range answers {
			texts[cases[i].area+"/"+cases[i].name] = a.text
		}
		writeCorpus(t, texts)
	}
	t.Logf("%d configurations with commands, %d commands", len(cases), steps)
	if peer != "" {
		t.Logf("beside OpenTofu: %d answers are equal with all messages, %d but for the wording of messages, %d are other on purpose", exact, steps-exact-known, known)
	}
}

// TestSmallDifferences compares docs/small-differences.md with the reasons in the corpus.
// -update writes the page.
func TestSmallDifferences(t *testing.T) {
	const page = "../../docs/small-differences.md"
	shown := map[string][]string{}
	for _, c := range corpus(t) {
		for _, s := range c.steps {
			if s.reason != "" && len(shown[s.reason]) < 2 {
				shown[s.reason] = append(shown[s.reason], "`"+strings.ReplaceAll(s.line, "|", "\\|")+"`")
			}
		}
	}
	var b strings.Builder
	b.WriteString("# Small differences from OpenTofu\n\n[Differences](differences.md) lists what can matter to a configuration. This page has the rest: what single commands print or refuse, found by a comparison of some thousand commands with OpenTofu 1.12. Not listed: the wording of messages, and the order of lines of work that goes on at once. `go test ./internal/cli -run TestSmallDifferences -update` writes it from [the commands and their answers](../internal/cli/testdata/corpus); with `TERRACE_TEST_TOFU`, `TestCorpus` checks that each is one.\n\n| | shown by |\n|---|---|\n")
	for _, reason := range slices.Sorted(maps.Keys(shown)) {
		fmt.Fprintf(&b, "| %s | %s |\n", reason, strings.Join(slices.Compact(shown[reason]), ", "))
	}
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != b.String() {
		t.Errorf("%s is not what the corpus says (%v): run go test ./internal/cli -run TestSmallDifferences -update", page, err)
	}
}

const corpusDir = "testdata/corpus"

func corpus(t *testing.T) []corpusCase {
	t.Helper()
	paths, err := filepath.Glob(corpusDir + "/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no corpus: ", err)
	}
	var all []corpusCase
	for _, path := range paths {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		area := strings.TrimSuffix(filepath.Base(path), ".txtar")
		for _, f := range ar.Files {
			name, rest, ok := strings.Cut(f.Name, "/")
			if !ok {
				t.Fatalf("%s: %s belongs to no case", path, f.Name)
			}
			if len(all) == 0 || all[len(all)-1].area != area || all[len(all)-1].name != name {
				all = append(all, corpusCase{area: area, name: name})
			}
			c := &all[len(all)-1]
			switch rest {
			case "steps":
				c.steps = corpusSteps(string(f.Data))
			case "want":
				c.want = string(f.Data)
			default:
				c.files = append(c.files, txtar.File{Name: rest, Data: f.Data})
			}
		}
	}
	for _, c := range all {
		if len(c.steps) == 0 {
			t.Fatalf("%s/%s has no steps", c.area, c.name)
		}
	}
	return all
}

func corpusSteps(text string) []corpusStep {
	var steps []corpusStep
	reason := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if why, ok := strings.CutPrefix(line, "## "); ok {
			reason = why
		} else if line != "" {
			steps = append(steps, corpusStep{line, reason})
			reason = ""
		}
	}
	return steps
}

func writeCorpus(t *testing.T, texts map[string]string) {
	t.Helper()
	paths, err := filepath.Glob(corpusDir + "/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		ar.Files = slices.DeleteFunc(ar.Files, func(f txtar.File) bool { return strings.HasSuffix(f.Name, "/want") })
		area := strings.TrimSuffix(filepath.Base(path), ".txtar")
		var files []txtar.File
		for i, f := range ar.Files {
			files = append(files, f)
			name, _, _ := strings.Cut(f.Name, "/")
			if i+1 == len(ar.Files) || !strings.HasPrefix(ar.Files[i+1].Name, name+"/") {
				files = append(files, txtar.File{Name: name + "/want", Data: []byte(texts[area+"/"+name])})
			}
		}
		ar.Files = files
		if err := os.WriteFile(path, txtar.Format(ar), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// A corpusRun is a directory in which a program runs the steps of a case.
type corpusRun struct {
	peer, dir, home string // peer is the binary of another program; "" for this one
	env             []string
}

func newCorpusRun(peer, dir string, c corpusCase) *corpusRun {
	r := &corpusRun{peer: peer, dir: filepath.Join(dir, "work"), home: filepath.Join(dir, "home")}
	r.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, "TMPDIR=" + dir, "TF_CLI_CONFIG_FILE=" + filepath.Join(r.home, "rc"), "TF_CLI_ARGS=-no-color"}
	for _, name := range []string{"SYSTEMROOT", "TEMP", "USERPROFILE", "PATHEXT"} {
		if v, ok := os.LookupEnv(name); ok {
			r.env = append(r.env, name+"="+v)
		}
	}
	if err := os.MkdirAll(r.dir, 0o777); err != nil {
		panic(err) // the test's own directory
	}
	files := append([]txtar.File{{Name: "../home/rc"}}, c.files...)
	for _, f := range files {
		path := filepath.Join(r.dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			panic(err) // the test's own directory
		}
		if err := os.WriteFile(path, f.Data, 0o666); err != nil {
			panic(err)
		}
	}
	own := slices.ContainsFunc(c.steps, func(s corpusStep) bool {
		return s.line == "-" || slices.Contains(strings.Fields(s.line), "init")
	})
	if !own {
		r.step("init")
	}
	return r
}

// step runs a line and returns its output, after the exit status if that is not 0.
func (r *corpusRun) step(line string) string {
	words := shellWords(line)
	env := slices.Clone(r.env)
	for len(words) > 0 && corpusVariable.MatchString(words[0]) {
		env, words = append(env, words[0]), words[1:]
	}
	at := func(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }
	var input []byte
	var output string
	words = slices.DeleteFunc(words, func(w string) bool {
		if name, ok := strings.CutPrefix(w, "<"); ok {
			input, _ = os.ReadFile(at(name)) // a missing file is empty input
			return true
		}
		if name, ok := strings.CutPrefix(w, ">"); ok {
			output = at(name)
			return true
		}
		return false
	})
	switch words[0] {
	case "-":
		return ""
	case "cat":
		text, err := os.ReadFile(at(words[1]))
		if err != nil {
			return "no such file\n"
		}
		return corpusScrubbed(string(text))
	case "rm":
		_ = os.Remove(at(words[1])) // a failure shows in the next steps
		return ""
	case "cp":
		text, err := os.ReadFile(at(words[1]))
		if err == nil {
			err = os.WriteFile(at(words[2]), text, 0o666)
		}
		if err != nil {
			return err.Error() + "\n"
		}
		return ""
	}
	var stdout, stderr bytes.Buffer
	code := 0
	if r.peer != "" {
		cmd := exec.Command(r.peer, words...)
		cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.dir, env, bytes.NewReader(input), &stdout, &stderr
		_ = cmd.Run() // the exit status is checked
		code = cmd.ProcessState.ExitCode()
	} else {
		var err error
		if code, err = runProgram(context.Background(), r.dir, env, bytes.NewReader(input), &stdout, &stderr, words...); err != nil {
			panic(err)
		}
	}
	text := ""
	if code != 0 {
		text = fmt.Sprintf("exit %d\n", code)
	}
	printed := stdout.String()
	if output != "" {
		if err := os.WriteFile(output, stdout.Bytes(), 0o666); err != nil {
			return err.Error() + "\n"
		}
		printed = ""
	}
	printed = corpusScrubbed(strings.ReplaceAll(printed, r.dir, "DIR"))
	if strings.HasPrefix(printed, "{\"@level") { // the order of events is not fixed
		lines := strings.SplitAfter(printed, "\n")
		slices.Sort(lines)
		printed = strings.Join(lines, "")
	}
	if printed != "" && !strings.HasSuffix(printed, "\n") {
		printed += "\n"
	}
	return text + printed + corpusScrubbed(strings.ReplaceAll(stderr.String(), r.dir, "DIR"))
}

var corpusVariable = regexp.MustCompile(`^[A-Z][A-Za-z0-9_]*=`)

// shellWords splits a line as a shell does, as far as the corpus needs it.
func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	in, quote := false, rune(0)
	for _, c := range line {
		switch {
		case c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'':
			quote, in = c, true
		case c == ' ':
			if in {
				words = append(words, word.String())
			}
			word.Reset()
			in = false
		default:
			in = true
			word.WriteRune(c)
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words
}

type corpusScrub struct {
	re *regexp.Regexp
	to string
}

var (
	corpusScrubs = []corpusScrub{
		{regexp.MustCompile(`(deposed object |"deposed":\s*")[0-9a-f]{8}`), "${1}DEPOSED"},
		{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
		{regexp.MustCompile(`"(@?timestamp|[a-z_]*time)":\s*"[^"]*"`), `"$1":"TIME"`},
		{regexp.MustCompile(`after [0-9]+s|"elapsed_seconds":[0-9.]+`), "TIME"},
		{regexp.MustCompile(`[0-9]{10}\.backup`), "TIME.backup"},
		{regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{8}[0-9.]*( [+-][0-9]{4})?(Z| UTC)?`), "TIME"},
		{regexp.MustCompile(`1\.12\.6-dev`), "1.12.6"}, // a development build of OpenTofu
		{regexp.MustCompile(`"terraform_version":\s*"[^"]*"`), `"terraform_version":"VERSION"`},
	}
	corpusUsage = regexp.MustCompile(`(?s)Usage: .*?\n(Error: |$)`)
	corpusNames = []corpusScrub{
		{corpusUsage, "\n$1"}, // each program has its own usage text

		{regexp.MustCompile(`Terrace|OpenTofu`), "PRODUCT"},
		{regexp.MustCompile(`\bterrace\b|\btofu\b`), "PROGRAM"},
	}
)

func scrubAll(text string, scrubs []corpusScrub) string {
	for _, s := range scrubs {
		text = s.re.ReplaceAllString(text, s.to)
	}
	return text
}

// corpusScrubbed returns a text without parts that differ between runs. It sorts adjacent
// progress lines, but keeps the order of lines about one address.
func corpusScrubbed(text string) string {
	lines := strings.SplitAfter(scrubAll(text, corpusScrubs), "\n")
	for i := 0; i < len(lines); i++ {
		j := i
		for j < len(lines) && corpusProgress.MatchString(lines[j]) {
			j++
		}
		slices.SortStableFunc(lines[i:j], func(a, b string) int {
			x, _, _ := strings.Cut(a, ": ")
			y, _, _ := strings.Cut(b, ": ")
			return strings.Compare(x, y)
		})
		i = max(i, j)
	}
	return strings.Join(lines, "")
}

var corpusProgress = regexp.MustCompile(`^[a-z]\S*.*: (Refreshing|Creating|Creation|Destroying|Destruction|Modifying|Modifications|Reading|Read|Importing|Import|Preparing|Opening|Closing)\b.*`)

// corpusEqual returns the part of an answer in which two programs must agree: everything
// except the wording of messages. For a message, it keeps the severity and, in JSON, the
// source range.
func corpusEqual(text string) string {
	var kept []string
	message := false
	for line := range strings.Lines(scrubAll(text, corpusNames)) {
		line = strings.TrimSuffix(line, "\n")
		switch severity := corpusSeverity.FindStringSubmatch(line); {
		case severity != nil:
			message = true
			kept = append(kept, "MESSAGE "+severity[1])
		case message && corpusAfterMessage.MatchString(line):
			message = false
			kept = append(kept, line)
		case !message:
			kept = append(kept, corpusEvent(line))
		}
	}
	if strings.Contains("\n"+text, "\n{\"@level") {
		slices.Sort(kept)
	}
	text = strings.Join(kept, "\n")
	if corpusValidation.MatchString(text) {
		text = corpusWording.ReplaceAllString(text, "")
	}
	return strings.TrimSpace(corpusSpace.ReplaceAllString(text, " "))
}

var (
	corpusSpace        = regexp.MustCompile(`\s+`) // names of other lengths move line breaks
	corpusSeverity     = regexp.MustCompile(`^(Error|Warning): `)
	corpusAfterMessage = regexp.MustCompile(`^(Apply complete|Destroy complete|Import successful|Success!|Plan:|Outputs:|Saved the plan|─────|Changes to Outputs|\S+\.(tf|tofu)test\.(hcl|json)\.\.\.|  run "|Failure!|Executed )`)
	corpusValidation   = regexp.MustCompile(`(?s)^(exit 1\n)?\{\n  "format_version"`)
	corpusWording      = regexp.MustCompile(`(?s)"(code|summary|detail)": "[^\n]*",?|"(snippet|notes)": .*?\n      [}\]],?`)
)

// corpusEvent returns a line. Of an event that is a message, it keeps only the severity and
// the source range.
func corpusEvent(line string) string {
	if line == "For information on valid syntax, see:" || strings.HasPrefix(line, "https://opentofu.org/docs/") {
		return ""
	}
	var event struct {
		Level      string `json:"@level"`
		Type       string
		Diagnostic struct {
			Severity string
			Range    struct {
				Filename string
				Start    struct{ Line int }
			}
		}
	}
	if json.Unmarshal([]byte(line), &event) != nil || event.Type != "diagnostic" && event.Level != "error" {
		return line
	}
	d := event.Diagnostic
	return fmt.Sprintf("MESSAGE %s %s %d", event.Level, d.Range.Filename, d.Range.Start.Line)
}

// corpusDifference returns the first difference between two texts.
func corpusDifference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	cut := func(s string) string { return s[max(0, i-80):min(len(s), i+240)] }
	return "  terrace: " + cut(a) + "\n  tofu:    " + cut(b)
}
