package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/dev/bench"
)

// scale prints a table of commands on growing configurations. It fails if the processor time
// grows too fast, or if a command needs too much memory.
func scale(ctx context.Context, args []string) (err error) {
	s := &bench.Scale{}
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.StringVar(&s.Terrace, "terrace", "", "the program")
	flags.StringVar(&s.Provider, "provider", "", "the program of internal/provider/testprovider/cmd/terraform-provider-test")
	flags.StringVar(&s.Dir, "dir", "", "a new directory to work in; a temporary directory if not given")
	flags.IntVar(&s.Rounds, "rounds", 1, "how often each command runs; the least processor time counts")
	only := flags.String("only", "", "beginnings of the names of the series to measure, separated by commas; all if not given")
	largest := flags.Int("largest", 0, "the largest size; 0 means no limit")
	memory := flags.Int64("memory", 4096, "the most memory that a command may use, in MB")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.Terrace == "" || s.Provider == "" {
		return fmt.Errorf("-terrace and -provider must name programs")
	}
	for _, p := range []*string{&s.Terrace, &s.Provider, &s.Dir} {
		if *p == "" {
			continue
		}
		if *p, err = filepath.Abs(*p); err != nil {
			return err
		}
	}
	if s.Dir == "" {
		if s.Dir, err = os.MkdirTemp("", "bench"); err != nil {
			return err
		}
	} else if err := os.Mkdir(s.Dir, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(s.Dir)
	fmt.Println("| size | command | n | CPU, s | MB | exponent |")
	fmt.Println("|---|---|--:|--:|--:|--:|")
	var exceptions, failures []string
	for _, series := range bench.AllSeries() {
		chosen := func(name string) bool { return strings.HasPrefix(series.Name, name) }
		if *only != "" && !slices.ContainsFunc(strings.Split(*only, ","), chosen) {
			continue
		}
		if *largest > 0 {
			series.Sizes = slices.DeleteFunc(series.Sizes, func(n int) bool { return n > *largest })
		}
		err := s.Run(ctx, series, func(p bench.Point) {
			exponent := ""
			if p.Exponent != 0 {
				exponent = fmt.Sprintf("%.2f", p.Exponent)
			}
			fmt.Printf("| %s | `%s` | %d | %.3f | %d | %s |\n", p.Series, p.Command, p.N, p.CPU.Seconds(), p.Peak>>20, exponent)
			name := fmt.Sprintf("%s, `%s`", p.Series, p.Command)
			if p.N == series.Sizes[len(series.Sizes)-1] && p.Exponent > bench.MaxExponent {
				if p.Exception != "" {
					exceptions = append(exceptions, name+": "+p.Exception)
				} else {
					failures = append(failures, fmt.Sprintf("%s: the exponent is %s, more than %.2f", name, exponent, bench.MaxExponent))
				}
			}
			if p.Peak>>20 > *memory {
				failures = append(failures, fmt.Sprintf("%s, %d: it uses %d MB of memory, more than %d", name, p.N, p.Peak>>20, *memory))
			}
		})
		if err != nil {
			return err
		}
	}
	for _, e := range exceptions {
		fmt.Printf("\nException: %s.\n", e)
	}
	if len(failures) > 0 {
		return fmt.Errorf("%s", strings.Join(failures, "\n"))
	}
	return nil
}
