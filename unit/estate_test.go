package unit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/unit"
)

// unitFiles lists the unit files below a directory.
func unitFiles(t testing.TB, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".terragrunt-cache" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if err == nil && d.Name() == unit.DefaultName {
			out = append(out, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func realEnv(root string) unit.Env {
	return unit.Env{WorkingDir: root, Machine: unit.Machine{Environ: os.Environ(), Run: sys.Run, Now: time.Now, Home: os.UserHomeDir}, Tolerant: true,
		Request: unit.Request{Command: "render", Args: []string{"render"}}}
}

// TestEstate renders every unit of a real estate with Terragrunt and Terrace, and logs how
// many results are equal.
func TestEstate(t *testing.T) {
	root, peer := os.Getenv("TERRACE_TEST_ESTATE"), os.Getenv("TERRACE_TEST_TERRAGRUNT")
	if root == "" || peer == "" {
		t.Skip("SKIP: TERRACE_TEST_ESTATE names no directory with units, or TERRACE_TEST_TERRAGRUNT no Terragrunt 1.1.3")
	}
	cacheDir := os.Getenv("TERRACE_TEST_ESTATE_CACHE")
	files := unitFiles(t, root)
	if n, err := strconv.Atoi(os.Getenv("TERRACE_TEST_ESTATE_STRIDE")); err == nil && n > 1 {
		var some []string
		for i := 0; i < len(files); i += n {
			some = append(some, files[i])
		}
		files = some
	}
	var agree, bothFail, onlyPeer, onlyOurs, differ int
	lines := make([]string, len(files))
	l := unit.NewLoader(realEnv(root))
	parallel.Each(len(files), 2, func(i int) {
		task := l.Task(context.Background())
		ours, oerr := renderUnit(l, task, files[i])
		theirs, terr := peerRender(peer, files[i], cacheDir)
		rel, _ := filepath.Rel(root, files[i])
		switch {
		case oerr != nil && terr != nil:
			lines[i] = "both-fail " + rel + "\n   ours: " + oerr.Error() + "\n   theirs: " + firstLine(terr.Error())
		case oerr != nil:
			lines[i] = "ONLY-PEER " + rel + ": " + oerr.Error()
		case terr != nil:
			lines[i] = "only-ours " + rel + ": " + firstLine(terr.Error())
		default:
			if d := jsonDiff(theirs, ours); d != "" {
				lines[i] = "DIFFER " + rel + "\n" + d
			} else {
				lines[i] = "agree " + rel
			}
		}
	})
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "agree"):
			agree++
			continue
		case strings.HasPrefix(line, "both-fail"):
			bothFail++
		case strings.HasPrefix(line, "ONLY-PEER"):
			onlyPeer++
		case strings.HasPrefix(line, "only-ours"):
			onlyOurs++
		default:
			differ++
		}
		fmt.Println(line)
	}
	fmt.Printf("%d units: %d agree, %d fail in both, %d only Terragrunt renders, %d only we render, %d differ\n", len(files), agree, bothFail, onlyPeer, onlyOurs, differ)
}

func firstLine(s string) string {
	out := ""
	for _, line := range strings.Split(s, "\n") {
		if strings.Contains(line, "ERROR") || strings.Contains(line, "Error") {
			if i := strings.Index(line, "ERROR"); i >= 0 {
				line = line[i:]
			}
			out += line + " | "
			if len(out) > 500 {
				break
			}
		}
	}
	if out == "" {
		out = s
	}
	if len(out) > 700 {
		out = out[:700]
	}
	return strings.ReplaceAll(out, "\n", " ")
}

func renderUnit(l *unit.Loader, t *demand.Task, path string) ([]byte, error) {
	u, ds := l.Unit(t, path, "")
	if ds.HasErrors() {
		return nil, allErrors(ds)
	}
	out, ds := u.RenderJSON(t)
	return out, allErrors(ds)
}

func allErrors(ds diag.List) error {
	if !ds.HasErrors() {
		return nil
	}
	var b strings.Builder
	for _, m := range ds.Errors() {
		at := ""
		if m.At != nil {
			at = m.At.String() + ": "
		}
		fmt.Fprintf(&b, "%s%s: %s [%s]; ", at, m.Summary, m.Detail, m.Code)
	}
	return fmt.Errorf("%s", b.String())
}

func peerRender(peer, path, cacheDir string, more ...string) ([]byte, error) {
	key := ""
	if cacheDir != "" {
		key = filepath.Join(cacheDir, strings.ReplaceAll(path, "/", "_"))
		if b, err := os.ReadFile(key + ".json"); err == nil {
			return b, nil
		}
		if b, err := os.ReadFile(key + ".err"); err == nil {
			return nil, fmt.Errorf("%s", b)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	args := append([]string{"render", "--json", "--no-color", "--log-level", "error", "--non-interactive"}, more...)
	cmd := exec.CommandContext(ctx, peer, args...)
	cmd.Dir = filepath.Dir(path)
	cmd.Env = append(os.Environ(), "TG_NO_COLOR=1", "PATH="+os.Getenv("PATH")+":"+filepath.Dir(peer))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		if key != "" {
			_ = os.WriteFile(key+".err", append(errs.Bytes(), out.Bytes()...), 0o666)
		}
		return nil, fmt.Errorf("%w: %s", err, errs.String()+out.String())
	}
	if key != "" {
		_ = os.WriteFile(key+".json", out.Bytes(), 0o666)
	}
	return out.Bytes(), nil
}

// jsonDiff compares two JSON texts. Numbers are compared as floating point, which
// Terragrunt uses.
func jsonDiff(want, got []byte) string {
	var w, g any
	if i := bytes.IndexByte(want, '{'); i > 0 {
		want = want[i:]
	}
	if err := json.Unmarshal(want, &w); err != nil {
		return "theirs: " + err.Error()
	}
	if err := json.Unmarshal(got, &g); err != nil {
		return "ours: " + err.Error()
	}
	return cmp.Diff(unknownAsNull(w, g), g)
}

// unknownAsNull replaces empty strings by null if the Terrace side has null: Terragrunt
// renders unknown values as empty strings.
func unknownAsNull(theirs, ours any) any {
	switch t := theirs.(type) {
	case string:
		if t == "" && ours == nil {
			return nil
		}
	case map[string]any:
		if o, ok := ours.(map[string]any); ok {
			for k := range t {
				if _, both := o[k]; both {
					t[k] = unknownAsNull(t[k], o[k])
				}
			}
		}
	case []any:
		if o, ok := ours.([]any); ok {
			for i := range t {
				if i < len(o) {
					t[i] = unknownAsNull(t[i], o[i])
				}
			}
		}
	}
	return theirs
}

// TestEstateSpeed evaluates all units of an estate in one process.
func TestEstateSpeed(t *testing.T) {
	root := os.Getenv("TERRACE_TEST_ESTATE_SPEED")
	if root == "" {
		t.Skip("SKIP: TERRACE_TEST_ESTATE_SPEED names no directory with units")
	}
	files := unitFiles(t, root)
	sort.Strings(files)
	start := time.Now()
	parallel.Each(len(files), 2, func(i int) {
		text, err := os.ReadFile(files[i])
		if err != nil {
			t.Error(err)
		}
		_, _ = hclsyntax.ParseConfig(text, files[i], hcl.InitialPos)
	})
	floor := time.Since(start)
	start = time.Now()
	l := unit.NewLoader(realEnv(root))
	var failed, inputs, edges int
	type counts struct{ failed, inputs, edges int }
	all := parallel.Map(len(files), 2, func(i int) (n counts) {
		task := l.Task(context.Background())
		u, ds := l.Unit(task, files[i], "")
		if ds.HasErrors() {
			n.failed = 1
			return n
		}
		in, ds := u.Inputs(task, nil)
		es, more := u.Dependencies(task, nil)
		_, rest := u.Files(task)
		if ds.HasErrors() || more.HasErrors() || rest.HasErrors() {
			n.failed = 1
		}
		n.inputs, n.edges = len(in), len(es)
		return n
	})
	for _, n := range all {
		failed, inputs, edges = failed+n.failed, inputs+n.inputs, edges+n.edges
	}
	took := time.Since(start)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Printf("%d units in %v, of which reading and parsing alone take %v: %d failed, %d inputs, %d edges; parsed %d, evaluated %d; heap %d MB, from the system %d MB\n",
		len(files), took, floor, failed, inputs, edges, l.Parsed(), l.Evaluated(), m.HeapAlloc>>20, m.Sys>>20)
}
