package program

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/sys"
)

var (
	exampleArgument = regexp.MustCompile(`(?m)^\s+- (worker|--\S+)$`)
	exampleVariable = regexp.MustCompile(`TERRACE_[A-Z_]+`)
)

// The workers of the examples have flags that there are, with values that are taken, and
// variables that are read.
func TestExamples(t *testing.T) {
	read := []string{remote.KeyVariable, heartbeatVariable, "TERRACE_TEMPORAL_TLS_CERT", "TERRACE_TEMPORAL_TLS_KEY", "TERRACE_TEMPORAL_TLS_CA", "TERRACE_TEMPORAL_TLS_SERVER_NAME", "TERRACE_TEMPORAL_API_KEY"}
	for _, name := range []string{"compose.yaml", "kubernetes.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../../examples/temporal", name))
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"terrace-worker"}
		for _, m := range exampleArgument.FindAllSubmatch(text, -1) {
			args = append(args, string(m[1]))
		}
		if len(args) < 5 || args[1] != "worker" {
			t.Fatalf("%s: the arguments are %q", name, args)
		}
		var errs bytes.Buffer
		code := Main(t.Context(), &sys.System{Args: args, Dir: t.TempDir(), Stdin: strings.NewReader(""), Stdout: &errs, Stderr: &errs})
		if code == 0 || !strings.Contains(errs.String(), "there is no key that the run is encrypted with") {
			t.Errorf("%s: without a key: status %d, %s", name, code, errs.String())
		}
		for _, v := range exampleVariable.FindAllString(string(text), -1) {
			if !slices.Contains(read, v) {
				t.Errorf("%s: nobody reads %s", name, v)
			}
		}
	}
}
