package main_test

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestMain allows more concurrent tests than processors, because they mostly wait.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	m.Run()
}

// TestReadme runs the README's commands in a copy of the tree, block by block, as a user
// would paste them. It skips only the test command, which runs this test.
func TestReadme(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIP: the README's commands are for a Unix shell")
	}
	if testing.Short() {
		t.Skip("SKIP: builds the program anew; run without -short")
	}
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copyTree(t, root, dir)
	blocks, tests := 0, 0
	for _, part := range strings.Split(string(raw), "```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		if strings.TrimSpace(block) == "go test -timeout 30m ./..." {
			tests++
			continue
		}
		blocks++
		c := exec.Command("sh", "-e", "-c", block)
		c.Dir = dir
		// With -trimpath, packages come from the build cache in spite of the copy's path.
		c.Env = environ("TF_CLI_CONFIG_FILE="+os.DevNull, "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s\n%v\n%s", block, err, out)
		} else if blocks == 1 && !strings.Contains(string(out), "No changes.") {
			t.Errorf("the second run finds something to do:\n%s", out)
		}
	}
	if blocks < 5 || tests != 1 {
		t.Errorf("%d blocks and %d test commands found in the README", blocks, tests)
	}
}

// environ returns the environment of the test without variables that affect the program,
// and with the given ones.
func environ(given ...string) []string {
	out := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "TF_") || strings.HasPrefix(kv, "TG_") || strings.HasPrefix(kv, "TERRAGRUNT_")
	})
	return append(out, given...)
}

// copyTree copies the files of a checkout.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && (name == ".git" || name == ".terraform" || name == "testdata" || rel == "bin"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular() || strings.Contains(name, ".tfstate") || name == ".terraform.lock.hcl" || strings.HasSuffix(name, ".plan"):
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
