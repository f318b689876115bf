package cli_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli"
)

// TestConsoleVectors compares the values of expressions with the recorded answers of OpenTofu.
func TestConsoleVectors(t *testing.T) {
	t.Parallel()
	const file = "testdata/vectors/console.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split("\n"+string(text), "\n> ")
	if len(parts) < 40 {
		t.Fatalf("only %d vectors", len(parts)-1)
	}
	dir := t.TempDir()
	peer := os.Getenv("TERRACE_TEST_TOFU")
	recorded := parts[0][1:] + "\n"
	for _, part := range parts[1:] {
		expr, want, _ := strings.Cut(part, "\n")
		want = strings.TrimRight(want, "\n")
		if peer != "" && *update {
			c := exec.Command(peer, "console")
			c.Dir, c.Stdin, c.Env = dir, strings.NewReader(expr+"\n"), append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull)
			out, err := c.Output()
			if want = strings.TrimRight(string(out), "\n"); err != nil {
				want = "error"
			}
		}
		recorded += "> " + expr + "\n" + want + "\n"
		var out, errs bytes.Buffer
		system := &sys.System{
			Dir: dir, Env: sys.Env{"HOME=" + dir}, Args: []string{"terrace", "console"},
			Stdin: strings.NewReader(expr + "\n"), Stdout: &out, Stderr: &errs, Now: time.Now, Run: sys.Run,
			Terminal:   sys.Terminal{Width: func() int { return 0 }, Height: func() int { return 0 }},
			Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
			Executable: os.Executable, Host: func() string { return "" }, User: func() string { return "" },
		}
		got := "error"
		if cli.Main(context.Background(), system) == 0 {
			got = strings.TrimRight(out.String(), "\n")
		}
		if got != want {
			t.Errorf("%s\n is  %s\n not %s\n%s", expr, got, want, errs.String())
		}
	}
	if *update && peer != "" {
		if err := os.WriteFile(file, []byte(recorded), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
