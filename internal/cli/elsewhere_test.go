package cli_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var everywhere = flag.Bool("everywhere", false, "run all scripts with a run over all units on workers, not those alone that are known to pass")

const (
	onVariable     = "TERRACE_TEST_ON"     // address of the server, for scripts
	workerVariable = "TERRACE_TEST_WORKER" // path of the worker's program
)

// TestScriptsElsewhere runs scripts of estates again, those in testdata/elsewhere.txt without
// a reason against it. Each "run --all" in them runs its units on a worker of the Temporal
// server in TERRACE_TEST_TEMPORAL (HOST:PORT/NAMESPACE). The expected output is the same as in
// one process.
func TestScriptsElsewhere(t *testing.T) {
	server := os.Getenv("TERRACE_TEST_TEMPORAL")
	if server == "" {
		t.Skip("SKIP: TERRACE_TEST_TEMPORAL names no Temporal server (HOST:PORT/NAMESPACE)")
	}
	files := elsewhereScripts(t)
	testscript.Run(t, testscript.Params{
		Files: files, RequireExplicitExec: true, RequireUniqueNames: true, WorkdirRoot: scriptRoot(t),
		Condition: scriptCondition, Cmds: scriptCommands(t),
		Setup: func(env *testscript.Env) error {
			if err := setup(env); err != nil {
				return err
			}
			worker, err := exec.LookPath("terrace-worker")
			if err != nil {
				return err
			}
			env.Setenv("TERRACE_RUN_KEY", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
			env.Setenv(onVariable, server)
			env.Setenv(workerVariable, worker)
			return nil
		},
	})
}

// elsewhereScripts returns the files of the scripts.
func elsewhereScripts(t *testing.T) (out []string) {
	t.Helper()
	listed := listedElsewhere(t)
	for _, path := range scriptsOverAll(t) {
		if why, ok := listed[scriptName(path)]; *everywhere || ok && why == "" {
			out = append(out, path)
		}
	}
	return out
}

func scriptName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".txtar") }

// listedElsewhere returns the scripts in testdata/elsewhere.txt, with the reasons of those
// that do not run.
func listedElsewhere(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/elsewhere.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, why, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" || name == "#" {
			continue
		}
		if _, ok := out[name]; ok {
			t.Errorf("testdata/elsewhere.txt has %s twice", name)
		}
		out[name] = strings.TrimSpace(why)
	}
	return out
}

// scriptsOverAll returns the scripts of estates that contain a run over all units which
// workers can execute.
func scriptsOverAll(t *testing.T) (out []string) {
	t.Helper()
	all, err := filepath.Glob("testdata/script/estate_*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if args := strings.Fields(line); slices.Contains(args, "terrace") && runsAll(args) >= 0 {
				out = append(out, path)
				break
			}
		}
	}
	return out
}

// TestElsewhereListed checks that testdata/elsewhere.txt lists every script, so that each
// script that does not run on workers has a reason.
func TestElsewhereListed(t *testing.T) {
	listed := listedElsewhere(t)
	for _, path := range scriptsOverAll(t) {
		name := scriptName(path)
		if _, ok := listed[name]; !ok {
			t.Errorf("testdata/elsewhere.txt does not have %s, which runs over all units: list it, with a reason if it cannot pass on a worker of a Temporal server", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("testdata/elsewhere.txt has %s, and there is no such script that runs over all units", name)
	}
}

// runsAll returns the index of the word in a command line that selects all units, if workers
// can run them, and otherwise -1.
func runsAll(args []string) int {
	i := slices.IndexFunc(args, func(a string) bool { return a == "--all" || a == "-a" })
	if i < 0 || !slices.Contains(args, "run") || slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--on") || strings.HasSuffix(a, "-help") }) {
		return -1
	}
	for _, a := range args {
		switch a {
		case "plan", "apply", "destroy", "validate", "init":
			return i
		}
	}
	return -1
}

// elsewhere changes a command line of a script into one for a run on a worker. The worker has
// the same environment and runs until the caller calls stop.
func elsewhere(args []string) (given []string, stop func(), err error) {
	server := os.Getenv(onVariable)
	i := runsAll(args)
	if server == "" || i < 0 {
		return args, func() {}, nil
	}
	host, namespace, _ := strings.Cut(server, "/")
	queue := fmt.Sprintf("script-%d-%d", os.Getpid(), time.Now().UnixNano())
	dir, err := os.MkdirTemp("", "worker")
	if err != nil {
		return nil, nil, err
	}
	blobs := "--blobs=" + filepath.Join(dir, "blobs")
	c := exec.Command(os.Getenv(workerVariable), "worker", "--temporal="+host, "--namespace="+namespace, "--queue="+queue, "--dir="+filepath.Join(dir, "files"), blobs)
	if err := c.Start(); err != nil {
		return nil, nil, err
	}
	return slices.Insert(slices.Clone(args), i+1, "--on=temporal://"+server+"/"+queue, blobs, "--in-place"), func() {
		// End it as a worker is ended, so that it closes its files.
		_ = c.Process.Signal(os.Interrupt)
		kill := time.AfterFunc(20*time.Second, func() { _ = c.Process.Kill() })
		_ = c.Wait()
		kill.Stop()
		_ = os.RemoveAll(dir)
	}, nil
}

// endsWith ends this process when its parent has ended.
func endsWith(parent int) {
	for os.Getppid() == parent {
		time.Sleep(time.Second)
	}
	os.Exit(1)
}
