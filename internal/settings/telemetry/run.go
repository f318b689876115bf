package telemetry

import (
	"context"
	"path/filepath"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// A Runner runs a program to its end, as sys.Run does.
type Runner func(context.Context, sys.Command) error

// Programs has each program that is run have a span, run_NAME, whose ID the program gets.
// What its arguments are is not in it: they may hold what is sensitive. Neither is the
// name of a program that there is not, which may be anything: its span is run_program.
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
