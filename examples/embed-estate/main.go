// Command embed-estate embeds Terrace: it lists the units of an estate in their order, checks
// and plans them, and explains a value of a unit.
//
//	embed-estate DIR list|check|plan
//	embed-estate DIR inputs UNIT
//	embed-estate DIR explain UNIT ADDRESS
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/terrace-iac/terrace/estate"
	"github.com/terrace-iac/terrace/plan"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, args []string) error {
	if len(args) < 2 {
		return errors.New("usage: embed-estate DIR list|check|plan|inputs UNIT|explain UNIT ADDRESS")
	}
	e, ds := estate.Open(ctx, estate.Options{Dir: args[0], Environ: os.Environ()})
	defer e.Close(ctx)
	if ds.HasErrors() {
		return errors.New(e.Text(ds.Errors(), nil))
	}
	arg := func(i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	switch args[1] {
	case "list":
		for _, u := range e.Units() {
			fmt.Fprintln(w, u.Name, strings.Join(u.Needs, ","))
		}
	case "check":
		ds = e.Check(ctx)
		fmt.Fprint(w, e.Text(ds, nil))
	case "plan":
		for _, r := range e.Plan(ctx, plan.Options{}) {
			fmt.Fprintf(w, "%s %s: %d to add, %d to change, %d to destroy\n", r.Unit, r.Status, r.Counts.Add, r.Counts.Change, r.Counts.Destroy)
			fmt.Fprint(w, e.Text(r.Diags, &r))
		}
	case "inputs":
		settings, more := e.Inputs(ctx, arg(2))
		for _, s := range settings {
			fmt.Fprintf(w, "%s at line %d, known: %v\n", s.Name, s.At.Start.Line, s.Value.IsWhollyKnown())
		}
		ds = more
	case "explain":
		x, more := e.Explain(ctx, arg(2), arg(3))
		if !more.HasErrors() {
			if err := x.Print(w); err != nil {
				return err
			}
		}
		ds = more
	default:
		return fmt.Errorf("no command %q", args[1])
	}
	if ds.HasErrors() {
		return errors.New(e.Text(ds.Errors(), nil))
	}
	return nil
}
