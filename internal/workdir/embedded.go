package workdir

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/provider/install"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/source"
)

// An Embedding contains the settings of a program that embeds Terrace. Dir is required.
type Embedding struct {
	Dir          string   // relative to the working directory of the process, or absolute
	Environ      []string // the complete environment, as os.Environ returns it
	Providers    map[addr.Provider]provider.Factory
	Provisioners engine.Provisioners
	NoExec       bool       // start no program and no provider plugin
	Observe      event.Sink // nil discards events
	Log          io.Writer  // receives the output of plugins; nil means standard error
}

// Embedded returns the Directory of an embedding program. Terrace does not ask the user there and
// does not handle signals. who is user@host, for locks. It returns an error if Dir is not a
// directory.
func Embedded(o Embedding) (d *Directory, who string, err error) {
	system, err := sys.Real()
	if err != nil {
		return nil, "", err
	}
	dir := o.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(system.Dir, dir)
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, "", err
	} else if !info.IsDir() {
		return nil, "", fmt.Errorf("%s is not a directory", dir)
	}
	log := o.Log
	if log == nil {
		log = system.Stderr
	}
	who = system.User() + "@" + system.Host()
	d = &Directory{
		Dir: dir, Launch: dir, Env: o.Environ, User: journal.UserOf(o.Environ), Now: system.Now, Stderr: log, Run: system.Run, Executable: system.Executable,
		Hashes: &install.Hashes{}, Files: &readfile.Kept{}, Providers: o.Providers, Provisioners: o.Provisioners,
		Set: &source.Set{}, Host: embeddingHost{observe: o.Observe, log: log},
	}
	d.RecordPackages(system.Host())
	if o.NoExec {
		d.WithoutPrograms() // before the backends, which may start programs too
	}
	backends := d.NewBackends(who)
	d.Backends = func() *backend.Set { return backends }
	return d, who, nil
}

// embeddingHost is the Host of an embedding program.
type embeddingHost struct {
	Silent
	observe event.Sink // nil discards events
	log     io.Writer
}

func (h embeddingHost) Event(e event.Event) {
	if h.observe != nil {
		h.observe(e)
	}
}

func (h embeddingHost) Rescue(text []byte) diag.List { return Rescue(h.log, text) }
