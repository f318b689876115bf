package flags_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/report"
)

func document(w io.Writer) error {
	_, err := io.WriteString(w, "{}")
	return err
}

// A document is one line on standard output, or in the file of -json-into, which only its owner can
// read. A file that cannot be written is status 1.
func TestDocument(t *testing.T) {
	fake := sys.Test(t.TempDir())
	c := command.New(t.Context(), fake.System, nil, nil)
	if code := (&flags.JSON{On: true}).Document(c, document); code != 0 || fake.Out.String() != "{}\n" {
		t.Errorf("%d %q", code, fake.Out.String())
	}
	if code := (&flags.JSON{Into: "a.json"}).Document(c, document); code != 0 || fake.Out.String() != "{}\n" {
		t.Errorf("%d %q", code, fake.Out.String())
	}
	path := filepath.Join(c.Dir, "a.json")
	text, err := os.ReadFile(path)
	info, more := os.Stat(path)
	if err != nil || more != nil || string(text) != "{}\n" || os.PathSeparator == '/' && info.Mode().Perm() != 0o600 {
		t.Error(string(text), info, err, more)
	}
	c.Report.Open()
	if code := (&flags.JSON{Into: "missing/a.json"}).Document(c, document); code != 1 {
		t.Error(code)
	}
}

// An error of standard output is reported at the end of the program, and only there.
func TestNotWritten(t *testing.T) {
	if ds := flags.NotWritten(&sys.OutputError{Err: io.ErrClosedPipe}); ds != nil {
		t.Error(ds.Err())
	}
	if ds := flags.NotWritten(errors.New("disk full")); !ds.HasErrors() {
		t.Error("no error")
	}
}

// The flags of View are accepted before and after arguments. Those for warnings are flags of the
// command in its help.
func TestView(t *testing.T) {
	o := report.Defaults()
	rest, _, err := flags.View(&o).Parse([]string{"word", "-no-color", "-deprecation=module:none"}, nil, false)
	if err != nil || len(rest) != 1 || !o.NoColor || o.Deprecation != "module:none" {
		t.Errorf("%q %+v %v", rest, o, err)
	}
	for _, f := range flags.Warnings() {
		if f.Anywhere || f.Name == "no-color" {
			t.Errorf("%+v", f)
		}
	}
}
