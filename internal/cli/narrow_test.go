package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/base/wrap"
	"github.com/terrace-iac/terrace/internal/cli"
)

// On a terminal of 60 columns, no line of a message, a help or the text around a plan is
// longer. Progress lines with IDs are not wrapped.
func TestNarrowTerminal(t *testing.T) {
	dir := t.TempDir()
	text := `
variable "name" {
  default = "x"
}
resource "terraform_data" "web" {
  input = var.name
}
output "name" {
  value = var.name
}
`
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		words, want string
	}{
		{"paln", "Terrace has no command named"},
		{"-chdri=x plan", "did you mean -chdir?"},
		{"-install-autocomplete -uninstall-autocomplete", "Either the autocomplete install"},
		{"init", "rerun this command to reinitialize"},
		{"plan", "to generate the following execution plan. Resource actions"},
		{"plan -out=p", "To perform exactly these actions"},
		{"apply -auto-approve -var=name=y", "Plan: 1 to add"},
		{"plan -var=name=y", "so no changes are needed."},
		{"plan -refresh-only -var=name=y", "found no differences."},
		{"apply -auto-approve -var=name=y -state-out=other.tfstate", "Apply complete!"},
		{"workspace new a", "will not see any existing state"},
		{"workspace select b", "doesn't exist"},
		{"validate", "The configuration is valid."},
		{"apply", "Only 'yes' will be accepted to approve."},
		{"", "Start with:"},
		{"help", "Main commands:"},
		{"state -help", "replace-provider"},
		{"plan -help", "-refresh-only"},
		{"taint -help", "-allow-missing"},
	} {
		var out sys.Buffer
		system := &sys.System{
			Dir: dir, Env: sys.Env{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TERM=dumb"}, Args: append([]string{"terrace"}, strings.Fields(c.words)...),
			Stdin: strings.NewReader("no\n"), Stdout: &out, Stderr: &out, Now: time.Now, Run: sys.Run,
			Terminal:   sys.Terminal{Out: true, Err: true, Width: func() int { return 60 }, Height: func() int { return 24 }},
			Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
			Executable: os.Executable, Host: func() string { return "" }, User: func() string { return "" },
		}
		cli.Main(context.Background(), system)
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), c.want) {
			t.Errorf("terrace %s: want %q in\n%s", c.words, c.want, out.String())
		}
		for line := range strings.Lines(out.String()) {
			if n := wrap.Columns(strings.TrimSuffix(line, "\n")); n > 60 && !strings.Contains(line, "[id=") {
				t.Errorf("terrace %s: %d columns: %s", c.words, n, line)
			}
		}
	}
}
