package remoterun_test

import (
	"os"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/interrupt"
	"github.com/terrace-iac/terrace/internal/cli/remoterun"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

// A directory whose backend runs nothing at a service leaves the operation to the caller.
func TestLocal(t *testing.T) {
	c := command.New(t.Context(), sys.Test(testkit.Files(t, "-- main.tf --\nterraform {\n  backend \"local\" {}\n}\n")).System, nil, &interrupt.Handler{})
	c.Backends = c.OpenBackends
	c.Report.Open()
	if code, done := remoterun.Do(t.Context(), c, remoterun.Request{Command: "plan"}); done {
		t.Errorf("it ran at a service, with status %d", code)
	}
}

// A file that refers to a plan at a service has the form that OpenTofu writes. Other files, also
// plans and large ones, are none.
func TestIsBookmark(t *testing.T) {
	c := command.New(t.Context(), sys.Test(t.TempDir()).System, nil, nil)
	for text, want := range map[string]bool{
		`{"remote_plan_format":1,"run_id":"run-1","hostname":"example.com"}`: true,
		`{"remote_plan_format":2}`: true, // a newer format, whose error names it
		`{"format_version":"1.0"}`: false, "PK\x03\x04": false, "": false,
		`{"remote_plan_format":1,"run_id":"` + string(make([]byte, 5000)) + `"}`: false,
	} {
		if err := os.WriteFile(c.Path("plan"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := remoterun.IsBookmark(c, "plan"); got != want {
			t.Errorf("%.40q: %v", text, got)
		}
	}
	for _, name := range []string{"missing", "."} {
		if remoterun.IsBookmark(c, name) {
			t.Errorf("%s is a plan", name)
		}
	}
}
