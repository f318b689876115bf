package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Workers times a run of an estate in one process and on workers of a Temporal server. Each
// unit has one object of the test provider, which is planned once and responds after Call.
type Workers struct {
	Terrace  string // the program, with terrace-worker next to it; all paths are absolute
	Server   string // the program of examples/temporal
	Provider string // the program of internal/provider/testprovider
	Dir      string // an existing, empty directory for all files
	Units    int
	Call     time.Duration
	Slots    int // of each worker
	At       int // number of concurrent units in one process
}

// WorkersFigures are the measurements of one run.
type WorkersFigures struct {
	Wall    time.Duration // from the client's start to its end
	Ideal   time.Duration // the duration of the provider's calls alone
	Client  Figures
	Workers []Figures // with the providers that they started
	Server  Figures
}

// CPU returns the processor time of the client and of all workers.
func (f *WorkersFigures) CPU() time.Duration {
	sum := f.Client.CPU
	for _, w := range f.Workers {
		sum += w.CPU
	}
	return sum
}

const (
	workersRunKey = "TERRACE_RUN_KEY=MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	workersModule = `terraform {
  backend "local" {}
  required_providers {
    test = { source = "terrace/test" }
  }
}

variable "name" {
  type = string
}

provider "test" {
  delay_ms = <1>
}

resource "test_record" "it" {
  name = var.name
}

output "name" {
  value = var.name
}
`
	workersUnit = `terraform {
  source = "../modules//m"
}

remote_state {
  backend = "local"
  config  = { path = "<1>" }
}

inputs = {
  name = "<2>"
}
`
)

// Write writes the estate.
func (w *Workers) Write() error {
	plugins := filepath.Join(w.Dir, "plugins")
	f := files{}
	f.add("rc", "provider_installation {\n  dev_overrides {\n    \"terrace/test\" = \"<1>\"\n  }\n}\n", filepath.ToSlash(plugins))
	f.add("estate/modules/m/main.tf", workersModule, w.Call.Milliseconds())
	for i := range w.Units {
		name := fmt.Sprintf("unit%05d", i)
		f.add("estate/"+name+"/terragrunt.hcl", workersUnit, filepath.ToSlash(filepath.Join(w.Dir, "states", name+".tfstate")), name)
	}
	if err := f.write(w.Dir); err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(plugins, 0o755), os.MkdirAll(w.tmp(), 0o755)); err != nil {
		return err
	}
	return os.Symlink(w.Provider, filepath.Join(plugins, "terraform-provider-test"+filepath.Ext(w.Provider)))
}

func (w *Workers) tmp() string { return filepath.Join(w.Dir, "tmp") }

func (w *Workers) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, program, args...)
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "TF_") && !strings.HasPrefix(name, "TERRACE_") && !strings.HasPrefix(name, "TG_") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, "TF_CLI_CONFIG_FILE="+filepath.Join(w.Dir, "rc"), "TMPDIR="+w.tmp(), workersRunKey)
	c.Dir, c.WaitDelay = filepath.Join(w.Dir, "estate"), 10*time.Second
	return c
}

// One runs the estate in one process.
func (w *Workers) One(ctx context.Context) (*WorkersFigures, error) {
	return w.client(ctx, w.At, "--parallelism", fmt.Sprint(w.At))
}

// client runs the estate with at concurrent units.
func (w *Workers) client(ctx context.Context, at int, flags ...string) (*WorkersFigures, error) {
	var out bytes.Buffer
	c := w.command(ctx, w.Terrace, append(append([]string{"run", "--all", "--non-interactive"}, flags...), "plan", "-no-color")...)
	c.Stdout, c.Stderr = &out, &out
	begin := time.Now()
	err := c.Run()
	f := &WorkersFigures{Wall: time.Since(begin), Client: used(c), Ideal: w.Call * time.Duration((w.Units+at-1)/at)}
	if want := fmt.Sprintf("Plan: %d to add, 0 to change, 0 to destroy.", w.Units); err == nil && !strings.Contains(out.String(), want) {
		err = fmt.Errorf("it does not say: %s", want)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, tail(out.String(), 2000))
	}
	return f, err
}

// used returns the resources that an ended process used.
func used(c *exec.Cmd) (f Figures) {
	if s := c.ProcessState; s != nil {
		f.CPU = s.UserTime() + s.SystemTime()
		if u, ok := s.SysUsage().(*syscall.Rusage); ok {
			f.Peak = peak(u)
		}
	}
	return f
}

// On runs the estate on n new workers of a server.
func (w *Workers) On(ctx context.Context, n int) (f *WorkersFigures, err error) {
	dir, err := os.MkdirTemp(w.Dir, "on")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, address, err := w.server(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end(server, &f.Server)) }()
	f = &WorkersFigures{}
	blobs := filepath.Join(dir, "blobs")
	taken := make([]Figures, n)
	for i := range n {
		c := w.command(ctx, filepath.Join(filepath.Dir(w.Terrace), "terrace-worker"), "worker", "--temporal", address,
			"--slots", fmt.Sprint(w.Slots), "--dir", filepath.Join(dir, fmt.Sprint("worker", i)), "--blobs", blobs)
		log := bytes.Buffer{}
		c.Stderr = &log
		if err := c.Start(); err != nil {
			return f, err
		}
		defer func() {
			if ended := end(c, &taken[i]); ended != nil {
				err = errors.Join(err, fmt.Errorf("worker %d: %w\n%s", i, ended, tail(log.String(), 2000)))
			}
			f.Workers = taken
		}()
	}
	f, err = w.client(ctx, n*w.Slots, "--on", "temporal://"+address+"/default/terrace", "--blobs", blobs, "--parallelism", fmt.Sprint(n*w.Slots))
	return f, err
}

// server starts a server with its own database, and waits until it responds.
func (w *Workers) server(ctx context.Context, dir string) (*exec.Cmd, string, error) {
	c := w.command(ctx, w.Server, "--listen", "127.0.0.1:0", "--db", filepath.Join(dir, "temporal.db"))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := c.Start(); err != nil {
		return nil, "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("the server does not start: %w", err), c.Process.Kill(), c.Wait())
	}
	address, _, _ := strings.Cut(line, " ")
	return c, address, nil
}

// end interrupts a process and returns the resources that it used.
func end(c *exec.Cmd, into *Figures) error {
	err := c.Process.Signal(os.Interrupt)
	if waited := c.Wait(); err == nil {
		err = waited
	}
	*into = used(c)
	return err
}
