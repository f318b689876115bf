package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A Scale measures commands on configurations, estates and states of growing sizes.
type Scale struct {
	Terrace  string // all paths are absolute
	Provider string // the program of internal/provider/testprovider
	Dir      string // an existing, empty directory for all files
	Rounds   int    // the least processor time of so many runs counts
}

// A Series is something that grows, and the commands to measure on it.
type Series struct {
	Name  string // of what a size counts
	Sizes []int
	steps []step
	write func(s *Scale, n int, dir string) error // writes the files of size n
}

// A step is a command of a series. Steps run in order, in the same directory.
type step struct {
	name string // "" for a command that is not measured
	args []string
	want func(n int) string // a text that the command must print; nil for no check
	// exception explains a growth exponent above MaxExponent.
	exception string
}

// A Point contains the measurements of one command at one size.
type Point struct {
	Series, Command string
	N               int
	CPU             time.Duration // of all processes
	Peak            int64         // the most memory of all processes together, in bytes
	// Exponent is the growth exponent of the processor time since the size before: 1 if the
	// time is proportional to the size. It is 0 for the first size.
	Exponent  float64
	Exception string // the reason why the exponent may be above MaxExponent
}

// MaxExponent is the limit for the growth exponent of the last two sizes.
const MaxExponent = 1.05

// generatedTypes is the number of resource types that the provider of the series "types"
// has.
const generatedTypes = 1500

func toAdd(per int) func(int) string {
	return func(n int) string { return fmt.Sprintf("Plan: %d to add, 0 to change, 0 to destroy.", per*n) }
}

func noChanges(int) string { return "No changes." }

// AllSeries returns what grows, with the sizes for the table in docs/benchmarks.md.
func AllSeries() []Series {
	initialize := step{args: []string{"init", "-no-color"}}
	const caches = "a heap of more than 1 GB: maps, sorting and the garbage collector miss the processor's caches more often"
	return []Series{
		{
			Name: "resources in a directory", Sizes: []int{10, 100, 1_000, 10_000, 100_000}, write: (*Scale).resources,
			steps: []step{
				initialize,
				{name: "validate", args: []string{"validate", "-no-color"}},
				{name: "plan", args: []string{"plan", "-no-color", "-out=scale.plan"}, want: toAdd(1), exception: caches},
				{name: "apply", args: []string{"apply", "-no-color", "scale.plan"}, want: func(n int) string { return fmt.Sprintf("Resources: %d added", n) }, exception: caches},
				{name: "plan, all exist", args: []string{"plan", "-no-color"}, want: noChanges},
			},
		},
		{
			Name: "units of an estate", Sizes: []int{10, 100, 1_000, 10_000, 20_000}, write: (*Scale).units,
			steps: []step{
				{
					name: "run --all plan", args: []string{"run", "--all", "--non-interactive", "plan", "-no-color"}, want: toAdd(2),
					exception: "each unit locks a local state, which creates a directory and two files and deletes them; ext4 searches the list of deleted files when it creates one",
				},
				{name: "find --json", args: []string{"find", "--json", "--dependencies"}},
				{name: "estate check", args: []string{"estate", "check"}},
				{name: "affected", args: []string{"affected", "../base", "."}, want: func(n int) string { return fmt.Sprintf("%d units differ", n) }},
			},
		},
		{
			Name: "types of a provider with 1,500", Sizes: []int{1, 10, 100, 500, 1_500}, write: (*Scale).types,
			steps: []step{
				{name: "validate", args: []string{"validate", "-no-color"}},
				{name: "plan", args: []string{"plan", "-no-color", "-out=scale.plan"}, want: toAdd(1)},
				{name: "show -json PLAN", args: []string{"show", "-json", "scale.plan"}},
			},
		},
		{
			Name: "KB of state", Sizes: []int{1, 1_000, 10_000, 100_000, 500_000}, write: (*Scale).state,
			steps: []step{
				initialize,
				{name: "state list", args: []string{"state", "list"}},
				{name: "output", args: []string{"output", "-no-color"}},
				{name: "plan", args: []string{"plan", "-no-color"}, want: noChanges},
				{name: "state rm", args: []string{"state", "rm", "terraform_data.big[0]"}},
			},
		},
		{
			Name: "modules inside each other", Sizes: []int{3, 30, 100, 300}, write: (*Scale).depth,
			steps: []step{
				initialize,
				{name: "validate", args: []string{"validate", "-no-color"}},
				{
					name: "plan", args: []string{"plan", "-no-color", "-out=scale.plan"}, want: toAdd(perLevel),
					exception: "the address of a resource has a step for each module around it, so plans and their text grow with the square of the depth",
				},
			},
		},
	}
}

// Run measures the commands of a series at each of its sizes. It calls report with each
// point as soon as it was measured, in the order of sizes.
func (s *Scale) Run(ctx context.Context, series Series, report func(Point)) error {
	before := map[string]Point{}
	for _, n := range series.Sizes {
		best, err := s.size(ctx, series, n)
		if err != nil {
			return fmt.Errorf("%s: %d: %w", series.Name, n, err)
		}
		for _, p := range best {
			if old, ok := before[p.Command]; ok {
				p.Exponent = math.Log(p.CPU.Seconds()/old.CPU.Seconds()) / math.Log(float64(p.N)/float64(old.N))
			}
			before[p.Command] = p
			report(p)
		}
	}
	return nil
}

// size measures the commands of a series at one size.
func (s *Scale) size(ctx context.Context, series Series, n int) ([]Point, error) {
	var best []Point
	for round := range max(s.Rounds, 1) {
		dir, err := os.MkdirTemp(s.Dir, "size")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if err := series.write(s, n, dir); err != nil {
			return nil, err
		}
		i := 0
		for _, step := range series.steps {
			f, err := s.measure(ctx, dir, step, n)
			if err != nil {
				return nil, err
			}
			if step.name == "" {
				continue
			}
			p := Point{Series: series.Name, Command: step.name, N: n, CPU: f.CPU, Peak: f.Peak, Exception: step.exception}
			if round == 0 {
				best = append(best, p)
			} else {
				best[i].CPU, best[i].Peak = min(best[i].CPU, p.CPU), max(best[i].Peak, p.Peak)
			}
			i++
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	return best, nil
}

// measure runs a command. It runs on two processors, as far as the Go runtime decides this,
// so that the figures of larger machines can be compared.
func (s *Scale) measure(ctx context.Context, dir string, step step, n int) (Figures, error) {
	out, err := os.Create(filepath.Join(s.Dir, "output"))
	if err != nil {
		return Figures{}, err
	}
	defer out.Close()
	tmp := filepath.Join(dir, "tmp")
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return Figures{}, err
	}
	c := exec.CommandContext(ctx, s.Terrace, step.args...)
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "TF_") && !strings.HasPrefix(name, "TERRACE_") && !strings.HasPrefix(name, "TG_") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, "TF_CLI_CONFIG_FILE="+filepath.Join(dir, "tmp", "rc"), "TMPDIR="+tmp, "GOMAXPROCS=2", fmt.Sprint("TEST_TYPES=", generatedTypes))
	rc := "provider_installation {\n  dev_overrides {\n    \"terrace/test\" = \"" + filepath.ToSlash(filepath.Dir(s.Provider)) + "\"\n  }\n}\n"
	if err := os.WriteFile(filepath.Join(tmp, "rc"), []byte(rc), 0o644); err != nil {
		return Figures{}, err
	}
	var errs bytes.Buffer
	c.Dir, c.Stdout, c.Stderr = filepath.Join(dir, "it"), out, &errs
	start := time.Now()
	if err := c.Start(); err != nil {
		return Figures{}, err
	}
	watched := make(chan int64)
	ended := make(chan struct{})
	go func() { watched <- watchMemory(c.Process.Pid, ended) }()
	err = c.Wait()
	close(ended)
	together := <-watched
	f := used(c)
	f.Wall, f.Peak = time.Since(start), max(f.Peak, together)
	if err == nil && step.want != nil {
		err = find(out.Name(), step.want(n))
	}
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, tail(errs.String(), 2000))
	}
	return f, err
}

// find returns an error if a file does not contain a text in one of its lines. It does not
// read the whole file into memory, since the memory of this process is a lower bound for
// what the system reports for the next one.
func find(path, text string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewReaderSize(f, 1<<16)
	for {
		line, err := lines.ReadSlice('\n')
		if bytes.Contains(line, []byte(text)) {
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("it does not print: %s", text)
		}
	}
}
