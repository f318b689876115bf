package randconfig_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/randconfig"
	"github.com/terrace-iac/terrace/internal/testkit"
)

// seeds is how many cases are compared, and the first: TERRACE_TEST_SEEDS=FIRST:COUNT.
func seeds(t *testing.T) (first, count int64) {
	first, count = 1, 30
	if text := os.Getenv("TERRACE_TEST_SEEDS"); text != "" {
		if _, err := fmt.Sscanf(text, "%d:%d", &first, &count); err != nil {
			t.Fatalf("TERRACE_TEST_SEEDS is %q, not FIRST:COUNT", text)
		}
	}
	return first, count
}

// TestBesideOpenTofu runs random cases with Terrace and OpenTofu, and compares after each
// step the status, what was planned, and state with its outputs.
func TestBesideOpenTofu(t *testing.T) {
	tofu := os.Getenv("TERRACE_TEST_TOFU")
	if tofu == "" {
		t.Skip("TERRACE_TEST_TOFU names no binary to compare with")
	}
	terrace := testkit.Terrace(t)
	first, count := seeds(t)
	for seed := first; seed < first+count; seed++ {
		t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
			t.Parallel()
			c := randconfig.Make(seed)
			ours, theirs := folder(t, c), folder(t, c)
			run(t, terrace, ours, []string{"init"})
			run(t, tofu, theirs, []string{"init"})
			for _, step := range c.Steps {
				got, want := run(t, terrace, ours, step), run(t, tofu, theirs, step)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s: -OpenTofu +Terrace:\n%s\n%s", strings.Join(step, " "), diff, c.Files["main.tf"])
				}
			}
		})
	}
}

func TestMakeIsTheSameForASeed(t *testing.T) {
	for seed := range int64(50) {
		if diff := cmp.Diff(randconfig.Make(seed), randconfig.Make(seed)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func folder(t *testing.T, c randconfig.Case) string {
	dir := t.TempDir()
	for name, text := range c.Files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// outcome is what is compared of a step.
type outcome struct {
	Status  int
	Planned []string
	State   string
}

var (
	planned = regexp.MustCompile(`(?m)^ +# .*(?:will be|must be|has moved|is tainted).*$|^Plan: .*$|^No changes\.`)
	deposed = regexp.MustCompile(`deposed object [0-9a-f]{8}`)
	ids     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

func run(t *testing.T, bin, dir string, args []string) outcome {
	cmd := exec.CommandContext(t.Context(), bin, append(slices.Clone(args), "-no-color")...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TF_IN_AUTOMATION=1", "TF_INPUT=0"}
	out, err := cmd.CombinedOutput()
	var o outcome
	if err != nil {
		o.Status = cmd.ProcessState.ExitCode()
	}
	for _, line := range planned.FindAll(deposed.ReplaceAll(out, []byte("deposed object")), -1) {
		o.Planned = append(o.Planned, strings.TrimSpace(string(line)))
	}
	slices.Sort(o.Planned)
	o.State = state(t, filepath.Join(dir, "terraform.tfstate"))
	return o
}

// state is what a state file says, without what differs by chance.
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
			}
		}
	}
	if err := json.Unmarshal(ids.ReplaceAll(raw, []byte("id")), &s); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, r := range s.Resources {
		for _, i := range r.Instances {
			fmt.Fprintln(&b, r.Module, r.Mode, r.Type, r.Name)
			if err := enc.Encode(i); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := enc.Encode(s.Outputs); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
