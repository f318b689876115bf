package randconfig_test

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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/dev/randconfig"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

// seeds returns the number of cases and the first seed: TERRACE_TEST_SEEDS=FIRST:COUNT, or
// wide:FIRST:COUNT for MakeWide.
func seeds(t *testing.T) (first, count int64, draw func(int64) randconfig.Case) {
	first, count, draw = 1, 30, randconfig.Make
	if text := os.Getenv("TERRACE_TEST_SEEDS"); text != "" {
		rest, wide := strings.CutPrefix(text, "wide:")
		if text = rest; wide {
			draw = randconfig.MakeWide
		}
		if _, err := fmt.Sscanf(text, "%d:%d", &first, &count); err != nil {
			t.Fatalf("TERRACE_TEST_SEEDS is %q, not FIRST:COUNT or wide:FIRST:COUNT", text)
		}
	}
	return first, count, draw
}

// TestBesideOpenTofu runs random cases with Terrace and OpenTofu. After each step it
// compares the status, messages, planned actions, plan texts and documents, and the state
// with its outputs. Intended differences are counted by their reason (see purposes). Other
// differences fail the test. After a difference both programs continue with OpenTofu's
// state.
func TestBesideOpenTofu(t *testing.T) {
	tofu := os.Getenv("TERRACE_TEST_TOFU")
	if tofu == "" {
		t.Skip("TERRACE_TEST_TOFU names no binary to compare with")
	}
	terrace := os.Getenv("TERRACE_TEST_TERRACE")
	if terrace == "" {
		terrace = testkit.Terrace(t)
	}
	first, count, draw := seeds(t)
	sum := &summary{reasons: map[string]int{}, classes: map[string]int{}}
	t.Run("seeds", func(t *testing.T) {
		for seed := first; seed < first+count; seed++ {
			t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
				t.Parallel()
				compare(t, terrace, tofu, draw(seed), sum)
			})
		}
	})
	t.Log(sum)
}

// compare runs the steps of a case with both programs.
func compare(t *testing.T, terrace, tofu string, c randconfig.Case, sum *summary) {
	ours, theirs := folder(t, c.Files), folder(t, c.Files)
	run(t, terrace, ours, []string{"init"})
	run(t, tofu, theirs, []string{"init"})
	saved := false // both have a plan that can be applied
	text := c.Files["main.tf"]
	var made, planned []string // the command that created the saved plan, and its planned actions
	found, classes := map[string]bool{}, map[string]bool{}
	for i, step := range c.Steps {
		write(t, ours, step.Files)
		write(t, theirs, step.Files)
		if main, ok := step.Files["main.tf"]; ok {
			text = main
		}
		of := step.Args[len(step.Args)-1] == "p" // a saved plan is applied or shown
		if of && !saved {
			continue
		}
		asked := step.Args
		if of {
			asked = append(slices.Clone(asked), made...)
		} else {
			made = asked
		}
		got, want := run(t, terrace, ours, step.Args), run(t, tofu, theirs, step.Args)
		if !of {
			saved = got.Status != 1 && want.Status != 1
			planned = got.Planned
		}
		where := at{asked, text, nil}
		if of {
			where.planned = planned
		}
		same := got.Status == want.Status && got.State == want.State
		was := cmp.Diff(want, got)
		for _, p := range purposes {
			if was == "" {
				break
			}
			p.known(where, &got, &want)
			now := cmp.Diff(want, got)
			if now != was {
				found[p.reason] = true
			}
			was = now
		}
		if was != "" {
			for _, class := range differing(got, want) {
				classes[class] = true
			}
			t.Errorf("seed %s, step %d, %s: -OpenTofu +Terrace:\n%s", filepath.Base(t.Name()), i, strings.Join(step.Args, " "), was)
		}
		if same {
			continue
		}
		saved = false
		raw, err := os.ReadFile(filepath.Join(theirs, "terraform.tfstate"))
		if err != nil {
			break // neither has a state to continue with
		}
		if err := os.WriteFile(filepath.Join(ours, "terraform.tfstate"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(sum.add(found, classes))
}

// A summary counts seeds by their differences.
type summary struct {
	mu                    sync.Mutex
	all, equal, on, other int
	reasons, classes      map[string]int
}

// add counts a case and returns a description of its result.
func (s *summary) add(reasons, classes map[string]bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all++
	for r := range reasons {
		s.reasons[r]++
	}
	for c := range classes {
		s.classes[c]++
	}
	switch {
	case len(classes) > 0:
		s.other++
		return "different: " + strings.Join(slices.Sorted(maps.Keys(classes)), ", ")
	case len(reasons) > 0:
		s.on++
		return "different on purpose: " + strings.Join(slices.Sorted(maps.Keys(reasons)), "; ")
	}
	s.equal++
	return "equal"
}

func (s *summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds: %d equal, %d different on purpose, %d different\n", s.all, s.equal, s.on, s.other)
	for _, m := range []struct {
		title  string
		counts map[string]int
	}{{"on purpose", s.reasons}, {"different", s.classes}} {
		for _, name := range slices.Sorted(maps.Keys(m.counts)) {
			fmt.Fprintf(&b, "%s: %d %s\n", m.title, m.counts[name], name)
		}
	}
	return b.String()
}

// differing returns the parts of two outcomes that differ.
func differing(ours, theirs outcome) []string {
	var out []string
	if ours.Status != theirs.Status {
		out = append(out, "status")
	}
	if !slices.Equal(ours.Messages, theirs.Messages) {
		out = append(out, "messages")
	}
	if !slices.Equal(ours.Planned, theirs.Planned) {
		out = append(out, "planned")
	}
	if !slices.Equal(ours.Text, theirs.Text) {
		out = append(out, "plan text")
	}
	for _, part := range slices.Sorted(maps.Keys(theirs.Document)) {
		if ours.Document[part] != theirs.Document[part] {
			out = append(out, "document: "+part)
		}
	}
	if ours.State != theirs.State {
		out = append(out, "state")
	}
	return out
}

func TestMakeIsTheSameForASeed(t *testing.T) {
	for seed := range int64(50) {
		if diff := cmp.Diff(randconfig.Make(seed), randconfig.Make(seed)); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(randconfig.MakeWide(seed), randconfig.MakeWide(seed)); diff != "" {
			t.Fatal(diff)
		}
	}
}

// folder returns a new directory with files.
func folder(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	write(t, dir, files)
	return dir
}

func write(t *testing.T, dir string, files map[string]string) {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// outcome is the compared result of a step.
type outcome struct {
	Status   int
	Messages []string // summaries
	Planned  []string
	Text     []string          // of a successful plan
	Document map[string]string // of a plan, as JSON, by property
	State    string
}

var (
	planned  = regexp.MustCompile(`(?m)^ +# .*(?:will be|must be|has moved|is tainted).*$|^Plan: .*$|^No changes\.`)
	messages = regexp.MustCompile(`(?m)^(?:│ )?((?:Error|Warning): .*)$`)
	colors   = regexp.MustCompile("\x1b\\[[0-9;]*m")
	program  = regexp.MustCompile(`\b(?:Terrace|OpenTofu|terrace)\b`)
	begins   = regexp.MustCompile(`(?m)^(?:Note: |No changes|Changes to Outputs|tofu used the selected|tofu will perform|This is a refresh-only)`)
	chance   = []struct {
		what *regexp.Regexp
		with string
	}{
		{regexp.MustCompile(`deposed object [0-9a-f]{8}`), "deposed object"},
		{regexp.MustCompile(`(deposed|deposed_key)": ?"[0-9a-f]{8}"`), `$1": "key"`},
		{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "id"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`), "time"},
	}
)

// longest is the time limit of a command. A case with a slower command fails.
const longest = 3 * time.Minute

func run(t *testing.T, bin, dir string, args []string) outcome {
	words := 1
	if args[0] == "state" {
		words = 2
	}
	all := append(slices.Clone(args[:words]), args[words:]...)
	if args[0] != "taint" && args[0] != "untaint" && args[0] != "state" {
		all = slices.Insert(all, 1, "-no-color")
	}
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, all...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TF_IN_AUTOMATION=1", "TF_INPUT=0"}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Errorf("%s %s does not end", filepath.Base(bin), strings.Join(all, " "))
	}
	var o outcome
	if err != nil {
		o.Status = cmd.ProcessState.ExitCode()
	}
	out = colors.ReplaceAll(out, nil) // some commands do not support -no-color
	for _, c := range chance {
		out = c.what.ReplaceAll(out, []byte(c.with))
	}
	if args[0] == "show" {
		o.Document = document(t, out)
	} else {
		text := program.ReplaceAllString(string(out), "tofu")
		text = strings.ReplaceAll(text, "Releasing state lock. This may take a few moments...\n", "") // printed if the disk is slow
		for _, m := range messages.FindAllStringSubmatch(text, -1) {
			o.Messages = append(o.Messages, m[1])
		}
		slices.Sort(o.Messages)
		o.Messages = slices.Compact(o.Messages) // OpenTofu prints some warnings twice
		for _, line := range planned.FindAllString(text, -1) {
			o.Planned = append(o.Planned, strings.TrimSpace(line))
		}
		slices.Sort(o.Planned)
		if args[0] == "plan" && o.Status != 1 {
			o.Text = planText(text)
		}
	}
	o.State = state(t, filepath.Join(dir, "terraform.tfstate"))
	return o
}

// planText returns the lines of a plan's text, without progress lines, and without
// messages, whose order is random.
func planText(text string) []string {
	if at := begins.FindStringIndex(text); at != nil {
		text = text[at[0]:]
	}
	text, _, _ = strings.Cut(text, "Warning: ")
	return strings.Split(strings.TrimRight(text, "╷\n"), "\n")
}

// document returns the document of a plan, each property indented. Failed plans are not
// compared, because where the programs stop is random.
func document(t *testing.T, out []byte) map[string]string {
	var doc map[string]any
	if err := json.Unmarshal(out, &doc); err != nil {
		return map[string]string{"text": string(out)}
	}
	if doc["errored"] == true {
		return nil
	}
	if relevant, ok := doc["relevant_attributes"].([]any); ok { // in random order
		slices.SortFunc(relevant, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	sortChildren(doc)
	parts := map[string]string{}
	for name, value := range doc {
		text, err := json.MarshalIndent(value, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		parts[name] = string(text)
	}
	return parts
}

// sortChildren sorts the child modules of values, whose order in OpenTofu is random.
func sortChildren(v any) {
	switch v := v.(type) {
	case map[string]any:
		if all, ok := v["child_modules"].([]any); ok {
			slices.SortFunc(all, func(a, b any) int { return strings.Compare(address(a), address(b)) })
		}
		for _, x := range v {
			sortChildren(x)
		}
	case []any:
		for _, x := range v {
			sortChildren(x)
		}
	}
}

func address(v any) string {
	m, _ := v.(map[string]any)
	a, _ := m["address"].(string)
	return a
}

// state returns the content of a state file without random parts.
func state(t *testing.T, path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	var s struct {
		Outputs   map[string]any
		Resources []struct {
			Module, Mode, Type, Name string
			Instances                []struct {
				IndexKey     any `json:"index_key"`
				Attributes   any
				Status       string
				Dependencies []string
				Deposed      string
			}
		}
	}
	for _, c := range chance[1:3] {
		raw = c.what.ReplaceAll(raw, []byte(c.with))
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // as they are written
	if err := dec.Decode(&s); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, r := range s.Resources {
		var lines, deposed []string
		for _, i := range r.Instances {
			line, err := json.Marshal(i)
			if err != nil {
				t.Fatal(err)
			}
			if i.Deposed == "" {
				lines = append(lines, string(line))
			} else { // in the order of their random keys
				deposed = append(deposed, string(line))
			}
		}
		slices.Sort(deposed)
		for _, line := range append(lines, deposed...) {
			fmt.Fprintln(&b, r.Module, r.Mode, r.Type, r.Name)
			fmt.Fprintln(&b, line)
		}
	}
	if err := enc.Encode(s.Outputs); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
