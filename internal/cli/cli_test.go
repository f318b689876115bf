package cli_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/provider/testprovider"
	"github.com/terrace-iac/terrace/internal/temporal/program"
)

var update = flag.Bool("update", false, "write what the program prints into the scripts")

// TestMain allows the test binary to run as the program and as the scripted provider.
func TestMain(m *testing.M) {
	main := func() {
		system, err := sys.Real()
		if err != nil {
			panic(err)
		}
		args, stop, err := elsewhere(system.Args)
		if err != nil {
			panic(err)
		}
		system.Args = args
		code := cli.Main(context.Background(), system)
		stop()
		os.Exit(code)
	}
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == "terrace" {
		main()
	}
	// Many tests wait for a provider, a service or a clock, so run more of them concurrently.
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	testscript.Main(withProgram{m}, map[string]func(){
		programFile: main,
		"terrace-worker": func() {
			system, err := sys.Real()
			if err != nil {
				panic(err)
			}
			if os.Getenv(workerVariable) != "" {
				go endsWith(os.Getppid())
			}
			os.Exit(program.Main(context.Background(), system))
		},
		"terraform-provider-test": func() { testprovider.Main(testprovider.Protocol()) },
		"browser":                 browser,
	})
}

// TestScripts runs testdata/script. In addition to the commands of testscript, scripts have
// these commands:
//
//	terrace ARGS...  runs the program in the test process; "exec terrace" starts a process
//	scrub FILE...  replaces identifiers, times and other variable text
//	tofu ARGS...   runs the OpenTofu binary in TERRACE_TEST_TOFU; the condition [tofu]
//	               reports whether there is one
//	conforms SCHEMA FILE  checks a file, or stdout, against a schema of docs/schemas
//	terragrunt ARGS...  runs the Terragrunt binary in TERRACE_TEST_TERRAGRUNT. Terragrunt
//	               runs this program by a link named tofu, or as LINK names it.
//	               The condition [terragrunt] reports whether there is one
//	envfile NAME FILE...  sets a variable to the content of files
//	registry [odd] starts a registry and sets REGISTRY to its host
//	codes on|off   turns the codes at the end of messages on or off
//	sts            starts a token service of AWS and sets variables with its address
func TestScripts(t *testing.T) {
	t.Parallel()
	if sig := syscall.SIGHUP; signal.Ignored(sig) { // nohup ignores the signal, but programs started here must receive it
		heard := make(chan os.Signal, 1)
		signal.Notify(heard, sig)
		t.Cleanup(func() { signal.Stop(heard) })
	}
	all, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(all) == 0 {
		t.Fatal("no scripts", err)
	}
	var files []string
	for i, f := range all {
		if sampled(i) {
			files = append(files, f)
		}
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Condition:           scriptCondition,
		Cmds:                scriptCommands(t),
		WorkdirRoot:         scriptRoot(t),
	})
}

// scriptRoot makes the directory in which scripts work. Its path has the same length in each
// run: messages that contain it wrap at a fixed width, and scripts compare their lines.
func scriptRoot(t *testing.T) string {
	for {
		dir := filepath.Join(os.TempDir(), fmt.Sprintf("go-test-script%010d", rand.Uint32()))
		err := os.Mkdir(dir, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { removeAll(dir) })
		return dir
	}
}

// removeAll removes a directory, and what scripts made unwritable in it.
func removeAll(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o777)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

func scriptCondition(cond string) (bool, error) {
	switch cond {
	case "long":
		return *processes, nil
	case "tofu":
		return os.Getenv("TERRACE_TEST_TOFU") != "", nil
	case "terragrunt":
		return os.Getenv("TERRACE_TEST_TERRAGRUNT") != "", nil
	}
	return false, nil
}

func scriptCommands(t *testing.T) map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"terrace":    terrace,
		"scrub":      scrub,
		"conforms":   conforms,
		"tofu":       tofu,
		"envfile":    envfile,
		"codes":      codes,
		"editor":     editor,
		"terragrunt": func(ts *testscript.TestScript, neg bool, args []string) { terragrunt(t, ts, neg, args) },
		"registry": func(ts *testscript.TestScript, _ bool, args []string) {
			startRegistry(t, ts, args)
		},
		"sts": func(ts *testscript.TestScript, _ bool, _ []string) { startSTS(t, ts) },
	}
}

func envfile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: envfile NAME FILE...")
	}
	var text strings.Builder
	for _, name := range args[1:] {
		text.WriteString(ts.ReadFile(name))
	}
	ts.Setenv(args[0], text.String())
}

// codes changes the CLI configuration of a script, so that messages end with their codes or do
// not.
func codes(ts *testscript.TestScript, neg bool, args []string) {
	const settings, before = "TF_CLI_CONFIG_FILE", "SETTINGS_WITHOUT_CODES"
	switch {
	case neg || len(args) != 1:
		ts.Fatalf("usage: codes on|off")
	case args[0] == "off":
		ts.Setenv(settings, ts.Getenv(before))
		return
	}
	text := ""
	if name := ts.Getenv(settings); name != "" {
		text = ts.ReadFile(name)
	}
	ts.Setenv(before, ts.Getenv(settings))
	path := filepath.Join(ts.Getenv("TMPDIR"), "codes.tfrc")
	ts.Check(os.WriteFile(path, []byte(text+"show_codes = true\n"), 0o666))
	ts.Setenv(settings, path)
}

func setup(env *testscript.Env) error {
	bin, err := exec.LookPath("terrace")
	if err != nil {
		return err
	}
	home := filepath.Join(env.WorkDir, ".home")
	if err := os.Mkdir(home, 0o777); err != nil {
		return err
	}
	rc := filepath.Join(home, "test.tfrc")
	override := func(name string) string {
		return "    \"" + name + "\" = \"" + filepath.ToSlash(filepath.Dir(bin)) + "\"\n"
	}
	const head, tail = "provider_installation {\n  dev_overrides {\n", "  }\n}\n"
	if err := os.WriteFile(rc, []byte(head+override("terrace/test")+tail), 0o666); err != nil {
		return err
	}
	both := filepath.Join(home, "both.tfrc")
	if err := os.WriteFile(both, []byte(head+override("terrace/test")+override("registry.terraform.io/terrace/test")+tail), 0o666); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "s") // a short path, since plugins create sockets in it
	if err != nil {
		return err
	}
	env.Defer(func() {
		_ = os.RemoveAll(tmp)
		removeAll(env.WorkDir)
	})
	env.Setenv("TMPDIR", tmp)
	env.Setenv("HOME", home)
	env.Setenv("WITH_TEST_PROVIDER", rc)
	env.Setenv("WITH_BOTH_REGISTRIES", both)
	return nil
}

var scrubs = sync.OnceValue(func() []struct {
	re *regexp.Regexp
	to string
} {
	return []struct {
		re *regexp.Regexp
		to string
	}{
		{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
		{regexp.MustCompile(`"@timestamp":"[^"]*"`), `"@timestamp":"TIME"`},
		{regexp.MustCompile(`"timestamp":"[^"]*"`), `"timestamp":"TIME"`},
		{regexp.MustCompile(`(after|"elapsed_seconds":) ?[0-9]+s?`), "$1 TIME"},
		{regexp.MustCompile(`[0-9a-f]{8}\)`), "DEPOSED)"},
		{regexp.MustCompile(`(?s)\nWarning: Provider development overrides are in effect\n.*?releases\.\n`), ""},
	}
})

func scrub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: scrub FILE...")
	}
	for _, name := range args {
		text := ts.ReadFile(name)
		for _, s := range scrubs() {
			text = s.re.ReplaceAllString(text, s.to)
		}
		text = strings.ReplaceAll(text, ts.Getenv("WORK"), "$WORK")
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o666))
	}
}

func tofu(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec(os.Getenv("TERRACE_TEST_TOFU"), args...)
	if err == nil && neg {
		ts.Fatalf("tofu succeeded")
	}
	if err != nil && !neg {
		ts.Fatalf("tofu: %v", err)
	}
}

func terragrunt(t *testing.T, ts *testscript.TestScript, neg bool, args []string) {
	link := ts.MkAbs(filepath.Join(ts.Getenv("HOME"), cmp.Or(ts.Getenv("LINK"), "tofu")))
	if err := os.Symlink(testkit.Terrace(t), link); err != nil && !os.IsExist(err) {
		ts.Fatalf("terragrunt: %v", err)
	}
	ts.Setenv("TG_TF_PATH", link)
	defer ts.Setenv("TG_TF_PATH", "")
	err := ts.Exec(os.Getenv("TERRACE_TEST_TERRAGRUNT"), args...)
	if err == nil && neg {
		ts.Fatalf("terragrunt succeeded")
	}
	if err != nil && !neg {
		ts.Fatalf("terragrunt: %v", err)
	}
}
