package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/bench"
)

// editor measures a language server on a directory.
func editor(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("editor", flag.ContinueOnError)
	e := &bench.Editor{}
	flags.StringVar(&e.Dir, "dir", ".", "the workspace")
	files := flags.String("files", "", "the open documents, relative to the workspace, separated by commas")
	flags.IntVar(&e.Edits, "edits", 10000, "the number of random edits")
	flags.IntVar(&e.Starts, "starts", 0, "the number of further starts in which formatting is measured while the server indexes")
	flags.Uint64Var(&e.Seed, "seed", 1, "the seed of the edits")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 || *files == "" {
		return fmt.Errorf("-files and the server's command are required")
	}
	e.Program, e.Files = flags.Args(), strings.Split(*files, ",")
	var err error
	if e.Dir, err = filepath.Abs(e.Dir); err != nil {
		return err
	}
	f, err := e.Measure(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("first answer %.2f s, index %.2f s, idle after %.2f s\n", f.First.Seconds(), f.Indexed.Seconds(), f.Idle.Seconds())
	fmt.Printf("memory: %d MB after the index, %d MB before %d edits, %d MB after them, at most %d MB\n\n", f.MemoryIndexed>>20, f.MemoryBefore>>20, e.Edits, f.MemoryAfter>>20, f.Most>>20)
	fmt.Println("| request | n | failed | over 10 ms | over 20 ms | median, ms | 99 %, ms | slowest, ms |\n|---|--:|--:|--:|--:|--:|--:|--:|")
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	for _, l := range f.Requests {
		fmt.Printf("| %s | %d | %d | %d | %d | %.1f | %.1f | %.1f |\n", l.Request, len(l.Times), l.Failed, l.Over(10*time.Millisecond), l.Over(20*time.Millisecond), ms(l.At(0.5)), ms(l.At(0.99)), ms(l.At(1)))
	}
	return nil
}
