package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/bench"
)

// workers times runs of an estate on workers of a Temporal server, compared with one
// process.
func workers(ctx context.Context, args []string) (err error) {
	w := &bench.Workers{}
	flags := flag.NewFlagSet("workers", flag.ContinueOnError)
	flags.StringVar(&w.Terrace, "terrace", "", "the program, with terrace-worker beside it")
	flags.StringVar(&w.Server, "server", "", "the program of examples/temporal")
	flags.StringVar(&w.Provider, "provider", "", "the program of internal/provider/testprovider/cmd/terraform-provider-test")
	flags.StringVar(&w.Dir, "dir", "", "a new directory to work in, and to leave everything in; a temporary directory if not given")
	flags.IntVar(&w.Units, "units", 100, "how many units there are")
	flags.DurationVar(&w.Call, "call", 2*time.Second, "how long a call of the provider takes, one for each unit")
	flags.IntVar(&w.Slots, "slots", 4, "how many units a worker has at once")
	numbers := flags.String("n", "0,1,2,4", "how many workers, separated by commas; 0: one process, which has as many units at once as the most of them together")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if w.Units < 1 || w.Slots < 1 || w.Terrace == "" || w.Server == "" || w.Provider == "" {
		return fmt.Errorf("-terrace, -server and -provider must name programs, and -units and -slots be at least 1")
	}
	for _, p := range []*string{&w.Terrace, &w.Server, &w.Provider, &w.Dir} {
		if *p == "" {
			continue
		}
		if *p, err = filepath.Abs(*p); err != nil {
			return err
		}
	}
	var most int
	var counts []int
	for _, s := range strings.Split(*numbers, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return fmt.Errorf("-n: %q is not a number of workers", s)
		}
		counts, most = append(counts, n), max(most, n)
	}
	w.At = max(most, 1) * w.Slots
	if w.Dir == "" {
		if w.Dir, err = os.MkdirTemp("", "bench"); err != nil {
			return err
		}
		defer os.RemoveAll(w.Dir)
	} else if err := os.Mkdir(w.Dir, 0o755); err != nil {
		return err
	}
	if err := w.Write(); err != nil {
		return err
	}
	fmt.Printf("%d units, one call of %s each\n\n", w.Units, w.Call)
	fmt.Println("| | at once | wall | ideal | of linear | CPU a unit: client, workers | more than one process | server's a unit | MB: client, largest worker |")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
	per := func(d time.Duration) string {
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000/float64(w.Units))
	}
	var one, first *bench.WorkersFigures // in one process, and the first run on workers
	var firstCount int
	for _, n := range counts {
		if n == 0 {
			if one, err = w.One(ctx); err != nil {
				return err
			}
			fmt.Printf("| one process | %d | %.1f s | %.1f s | | %s | | | %d |\n", w.At, one.Wall.Seconds(), one.Ideal.Seconds(), per(one.CPU()), one.Client.Peak>>20)
			continue
		}
		f, err := w.On(ctx, n)
		if err != nil {
			return err
		}
		if first == nil {
			first, firstCount = f, n
		}
		more := ""
		if one != nil {
			more = per(f.CPU() - one.CPU())
		}
		var largest int64
		for _, worker := range f.Workers {
			largest = max(largest, worker.Peak)
		}
		linear := 100 * first.Wall.Seconds() * float64(firstCount) / (f.Wall.Seconds() * float64(n))
		fmt.Printf("| workers: %d | %d | %.1f s | %.1f s | %.0f %% | %s, %s | %s | %s | %d, %d |\n", n, n*w.Slots, f.Wall.Seconds(), f.Ideal.Seconds(), linear,
			per(f.Client.CPU), per(f.CPU()-f.Client.CPU), more, per(f.Server.CPU), f.Client.Peak>>20, largest>>20)
	}
	return nil
}
