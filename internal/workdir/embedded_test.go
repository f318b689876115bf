package workdir

import (
	"errors"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// With NoExec, backends start no programs.
func TestEmbeddedNoExec(t *testing.T) {
	d, _, err := Embedded(Embedding{Dir: t.TempDir(), NoExec: true})
	if err != nil {
		t.Fatal(err)
	}
	run := d.Backends().Services(d.Dir, d.Env).Run
	if err := run(t.Context(), sys.Command{Path: "true", Dir: d.Dir}); !errors.Is(err, sys.ErrNoPrograms) {
		t.Errorf("a backend ran a program: %v", err)
	}
}
