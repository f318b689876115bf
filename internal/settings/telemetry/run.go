package telemetry

import (
	"context"
	"path/filepath"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// A Runner runs a program and waits for its end, as sys.Run does.
type Runner func(context.Context, sys.Command) error

// Programs returns a Runner that creates a span, run_NAME, for each program and passes the span's
// ID to the program. The span does not contain the arguments, which may be sensitive. It contains
// the name only if the program exists, since the name may be any text; otherwise the span is
// run_program.
func Programs(run Runner) Runner {
	return func(ctx context.Context, c sys.Command) error {
		if !On(ctx) {
			return run(ctx, c)
		}
		name, path, what := "program", "", "the program"
		if _, err := sys.LookPath(c.Path, c.Dir, c.Env); err == nil {
			name, path = filepath.Base(c.Path), c.Path
			what += " " + name
		}
		ctx, s := Start(ctx, "run_"+name)
		defer s.End()
		if path != "" {
			s.Text("binary", name).Text("binary_path", path)
		}
		s.Text("dir", c.Dir)
		if s.Traced() {
			c.Env = c.Env.With(Variable + "=" + s.Parent())
		}
		err := run(ctx, c)
		code, ran := sys.ExitCode(err)
		if ran {
			s.OutcomeCount("exit_code", code)
		}
		switch {
		case err != nil && ran:
			s.Fail("exit", what+" ended with an error")
		case err != nil:
			s.Fail("exit", what+" could not be run to its end")
		}
		return err
	}
}
