package installer

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-version"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// # Pinned modules
//
// A module entry of the lock file pins the content of a package by hash: a registry module with
// its version, any other by its address. If there is one entry, all remote modules are pinned.
type pins struct {
	old   *lock.File
	on    bool // modules are pinned
	fixed bool // the lock file must not change
	up    bool
	next  map[[2]string]lock.Hash
	mu    sync.Mutex // protects next
}

func newPins(o Options) *pins {
	p := &pins{old: o.Lock, fixed: o.LockOnly, up: o.Upgrade, next: map[[2]string]lock.Hash{}}
	p.on = o.LockModules || o.Lock != nil && len(o.Lock.Modules) > 0
	return p
}

// version returns the newest pinned version that a call allows, or "".
func (p *pins) version(c *call) string {
	if !p.on || p.old == nil {
		return ""
	}
	var best *version.Version
	for _, m := range p.old.Modules {
		if m.Source != c.addr.Package() || !c.want.Allows(m.Version) {
			continue
		}
		if v, err := version.NewVersion(m.Version); err == nil && (best == nil || v.GreaterThan(best)) {
			best = v
		}
	}
	if best == nil {
		return ""
	}
	return best.String()
}

// keeps reports whether an installed module has the pinned content, and adds it to the new lock
// file.
func (p *pins) keeps(ctx context.Context, c *call) bool {
	if !p.on {
		return true
	}
	if st, err := os.Lstat(c.packageDir); err == nil && st.Mode()&os.ModeSymlink != 0 {
		return true // a local directory of the user
	}
	h, err := fetch.HashTree(ctx, c.packageDir)
	return err == nil && p.check(c, h) == nil
}

type pinError struct{ msg string }

func (e *pinError) Error() string { return e.msg }

// check compares content with its pin and adds it to the new lock file.
func (p *pins) check(c *call, h lock.Hash) error {
	if !p.on || h == "" {
		return nil
	}
	m := p.old.Module(c.addr.Package(), c.version)
	if m != nil && !p.up && !slices.Contains(m.Hashes, h) {
		what := c.addr.Package()
		if c.version != "" {
			what += " " + c.version
		}
		return &pinError{fmt.Sprintf("The content of module package %s has changed: it has the hash %s, but %s pins %s. If the change is wanted, run \"terrace init -upgrade\" to pin the new content.", what, h, lock.Name, strings.Join(hashTexts(m.Hashes), ", "))}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next[[2]string{c.addr.Package(), c.version}] = h
	return nil
}

func hashTexts(hs []lock.Hash) []string {
	out := make([]string, len(hs))
	for i, h := range hs {
		out[i] = string(h)
	}
	return out
}

// lockFile returns the lock file with the installed modules.
func (p *pins) lockFile() (*lock.File, diag.List) {
	out := p.old.Clone()
	if !p.on {
		return out, nil
	}
	out.Modules = nil
	for k, h := range p.next {
		m := &lock.Module{Source: k[0], Version: k[1], Hashes: []lock.Hash{h}}
		if old := p.old.Module(k[0], k[1]); old != nil && !p.up {
			m.Hashes = old.Hashes
			m.At = old.At
		}
		out.SetModule(m)
	}
	if p.fixed && !out.Equal(p.old) {
		return p.old.Clone(), diag.Errorf(diag.CodeLockMismatch, nil, "Module dependency changes detected", "The remote modules are not those that the dependency lock file pins, but the lock file is read-only. To use and record the changes, run \"terrace init\" without the \"-lockfile=readonly\" flag.")
	}
	return out, nil
}
