// Command embed embeds Terrace: it initializes a directory with providers from a mirror,
// plans, applies, explains a value and destroys.
//
//	embed [-mirror PACKAGES] [-var NAME=VALUE] DIR init|plan|apply|destroy|output
//	embed DIR explain ADDRESS
//
// Kill it during an apply and run it again: the results of completed provider calls are not
// lost.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/terrace-iac/terrace"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/plan"
)

func main() {
	mirror := flag.String("mirror", "", "directory with provider packages")
	variable := flag.String("var", "", "value of a variable, name=value")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: embed [-mirror PACKAGES] [-var NAME=VALUE] DIR init|plan|apply|destroy|output|explain [ADDRESS]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := terrace.Options{Dir: flag.Arg(0), Environ: os.Environ(), Observe: progress}
	if *mirror != "" {
		o.PluginDirs = []string{*mirror}
	}
	if *variable != "" {
		o.Vars = []string{*variable}
	}
	if err := run(ctx, o, flag.Arg(1), flag.Arg(2)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// progress prints a line when a provider call ends.
func progress(e event.Event) {
	if e.Kind == event.ApplyDone {
		fmt.Println("done:", e.Object)
	}
}

func run(ctx context.Context, o terrace.Options, command, address string) error {
	if command == "init" {
		return terrace.Init(ctx, o).Err()
	}
	dir, ds := terrace.Open(ctx, o)
	err := say(dir, ds)
	if err == nil {
		err = do(ctx, dir, command, address)
	}
	return errors.Join(err, dir.Close().Err())
}

// say prints warnings, and returns the errors as one error.
func say(dir *terrace.Directory, ds diag.List) error {
	fmt.Print(dir.Text(ds.Warnings()))
	if ds.HasErrors() {
		return errors.New(dir.Text(ds.Errors()))
	}
	return nil
}

func do(ctx context.Context, dir *terrace.Directory, command, address string) error {
	switch command {
	case "plan", "apply", "destroy":
		return change(ctx, dir, command)
	case "explain":
		found, ds := dir.Explain(ctx, address)
		if ds.HasErrors() {
			return say(dir, ds)
		}
		for _, step := range found.Steps {
			if step.At != nil {
				fmt.Printf("%s:%d: ", step.At.File, step.At.Line)
			}
			fmt.Println(step.Kind, step.Text)
		}
		return nil
	case "output":
		for name, out := range dir.State().Outputs {
			fmt.Println(name, "=", out.Value.AsString())
		}
		return nil
	}
	return fmt.Errorf("no command %q", command)
}

// change plans, prints the planned actions, and applies them.
func change(ctx context.Context, dir *terrace.Directory, command string) error {
	var o engine.PlanOptions
	if command == "destroy" {
		o.Mode = plan.Destroy
	}
	p, ds := dir.Plan(ctx, o)
	if err := say(dir, ds); err != nil {
		return err
	}
	for _, c := range p.Changes {
		if c.Op != plan.NoOp {
			fmt.Println(c.Op, c.Addr)
		}
	}
	if command == "plan" {
		return nil
	}
	res, ds := dir.Apply(ctx, p)
	fmt.Printf("%d added, %d changed, %d destroyed\n", res.Counts.Add, res.Counts.Change, res.Counts.Destroy)
	return say(dir, ds)
}
