// Command cmd writes the benchmark workloads and times one or two binaries on them,
// alternating. See docs/benchmarks.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

const usage = `usage:
  cmd write WORKLOAD SIZE DIR
  cmd time -a BINARY [-b BINARY] [-workload flat,count] [-n 100,1000] [-op plan,apply] [-rounds 5]
  cmd workers -terrace BINARY -server BINARY -provider BINARY [-units 100] [-call 2s] [-n 0,1,2,4] [-slots 4]
  cmd scale -terrace BINARY -provider BINARY [-only resources,units] [-largest 1000] [-rounds 1] [-memory 4096]
  cmd bare -terrace BINARY -provider BINARY -source ADDRESS [-dir DIR] [-rounds 5] COMMAND...
  cmd editor -files FILE,... [-dir DIR] [-edits 10000] [-starts 0] [-seed 1] SERVER...
`

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 4 && args[0] == "write":
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return bench.Write(args[1], n, args[3])
	case len(args) > 0 && args[0] == "time":
		return timeAll(ctx, args[1:])
	case len(args) > 0 && args[0] == "workers":
		return workers(ctx, args[1:])
	case len(args) > 0 && args[0] == "scale":
		return scale(ctx, args[1:])
	case len(args) > 0 && args[0] == "bare":
		return bare(ctx, args[1:])
	case len(args) > 0 && args[0] == "editor":
		return editor(ctx, args[1:])
	case len(args) == 3 && args[0] == "repeat": // bare calls it
		return repeat(ctx, args[1], args[2])
	}
	return fmt.Errorf("no such command\n%s", usage)
}

type options struct {
	binaries       []string
	workloads, ops []string
	sizes          []int
	rounds         int
	dir            string
}

func timeAll(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "bench"); err != nil {
			return err
		}
		defer os.RemoveAll(o.dir)
	}
	fmt.Println("| operation | workload | n | a: wall, CPU, MB | b: wall, CPU, MB | b/a |")
	fmt.Println("|---|---|--:|---|---|--:|")
	for _, w := range o.workloads {
		for _, n := range o.sizes {
			if err := timeOne(ctx, o, w, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func parse(args []string) (*options, error) {
	flags := flag.NewFlagSet("time", flag.ContinueOnError)
	a := flags.String("a", "", "the binary to time")
	b := flags.String("b", "", "the binary to compare it with")
	workloads := flags.String("workload", strings.Join(bench.Workloads(), ","), "names, separated by commas")
	sizes := flags.String("n", "100,1000", "sizes, separated by commas")
	ops := flags.String("op", strings.Join(bench.Operations(), ","), "operations, separated by commas")
	o := &options{}
	flags.IntVar(&o.rounds, "rounds", 5, "how often each is run; the median counts")
	flags.StringVar(&o.dir, "dir", "", "where to work, and leave everything; a temporary directory if not given")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	o.workloads, o.ops = strings.Split(*workloads, ","), strings.Split(*ops, ",")
	for _, s := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, err
		}
		o.sizes = append(o.sizes, n)
	}
	for _, path := range []string{*a, *b} {
		if path != "" {
			abs, err := filepath.Abs(path)
			if err != nil {
				return nil, err
			}
			o.binaries = append(o.binaries, abs)
		}
	}
	if *a == "" || o.rounds < 1 {
		return nil, fmt.Errorf("-a must name a binary, and -rounds be at least 1")
	}
	return o, nil
}

// timeOne runs all operations on one workload, alternating between the binaries: a b, b a,
// …
func timeOne(ctx context.Context, o *options, workload string, n int) error {
	var sides []*bench.Bench
	for i, binary := range o.binaries {
		dir := filepath.Join(o.dir, fmt.Sprintf("%s-%d-%c", workload, n, 'a'+i))
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		b, err := bench.New(ctx, binary, workload, n, dir)
		if err != nil {
			return err
		}
		sides = append(sides, b)
	}
	for _, op := range o.ops {
		runs := make([][]bench.Figures, len(sides))
		for round := range o.rounds {
			for k := range sides {
				i := (k + round) % len(sides)
				f, err := sides[i].Measure(ctx, op)
				if err != nil {
					return err
				}
				runs[i] = append(runs[i], f)
			}
		}
		row := fmt.Sprintf("| %s | %s | %d |", op, workload, n)
		first := bench.Median(runs[0])
		row += cell(first)
		if len(sides) == 2 {
			second := bench.Median(runs[1])
			row += cell(second) + fmt.Sprintf(" %.3f |", second.Wall.Seconds()/first.Wall.Seconds())
		} else {
			row += " | |"
		}
		fmt.Println(row)
	}
	return nil
}

func cell(f bench.Figures) string {
	return fmt.Sprintf(" %s, %s, %d |", f.Wall.Round(100*time.Microsecond), f.CPU.Round(time.Millisecond), f.Peak>>20)
}
