package main

import (
	"context"
	"encoding/gob"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/internal/dev/bench"
)

// bare compares a command with a bare client that makes the same calls to the provider. The
// requests are recorded first. The command and the client then run alternately.
func bare(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bare", flag.ContinueOnError)
	terrace := flags.String("terrace", "", "the program")
	provider := flags.String("provider", "", "the provider's program")
	source := flags.String("source", "", "the provider's address, such as hashicorp/aws")
	dir := flags.String("dir", ".", "an initialized directory")
	rounds := flags.Int("rounds", 5, "how often each is run; the median counts")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *terrace == "" || *provider == "" || *source == "" || flags.NArg() == 0 {
		return fmt.Errorf("-terrace, -provider, -source and a command are required")
	}
	for _, p := range []*string{terrace, provider} {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return err
		}
		*p = abs
	}
	calls, err := bench.Record(ctx, *provider, *source, *dir, *terrace, flags.Args()...)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp("", "calls")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := gob.NewEncoder(f).Encode(calls); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var runs [2][]bench.Figures
	for round := range *rounds {
		for k := range 2 {
			side := (k + round) % 2
			program, a := *terrace, flags.Args()
			if side == 1 {
				program, a = self, []string{"repeat", *provider, f.Name()}
			}
			got, err := bench.Time(ctx, *dir, nil, program, a...)
			if err != nil {
				return err
			}
			runs[side] = append(runs[side], got)
		}
	}
	fmt.Printf("%d calls\n\n| | wall, s | CPU, s |\n|---|--:|--:|\n", len(calls))
	for side, name := range []string{"terrace", "bare client"} {
		slices.SortFunc(runs[side], func(a, b bench.Figures) int { return int(a.CPU - b.CPU) })
		m := runs[side][len(runs[side])/2]
		fmt.Printf("| %s | %.3f | %.3f |\n", name, m.Wall.Seconds(), m.CPU.Seconds())
	}
	return nil
}

// repeat makes the calls of a file to a provider.
func repeat(ctx context.Context, provider, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var calls []bench.Call
	if err := gob.NewDecoder(f).Decode(&calls); err != nil {
		return err
	}
	_, err = bench.Repeat(ctx, provider, calls)
	return err
}
