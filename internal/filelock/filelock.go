// Package filelock takes locks that hold between processes and within this one.
//
// Main function: Lock. The one rule: a lock file is opened here and nowhere
// else, since POSIX locks are lost when a process closes any descriptor of the
// file; that they are of this kind is so that OpenTofu, which uses them for its
// plugin cache, and we keep each other out.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// errHeld is what tryLock returns while another process has the lock.
var errHeld = errors.New("held by another process")

// held are the locks of this process: whoever is in the table has the file, or
// is trying to get it; the channel is closed when it lets go.
var held = struct {
	sync.Mutex
	byPath map[string]chan struct{}
}{byPath: make(map[string]chan struct{})}

// Lock takes the lock that the file at path stands for, which is created if it
// does not exist and is left behind. It waits for others until ctx ends. Call
// the returned function once to let go; a lock is let go when the process ends,
// however it ends.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	// Another process may be replacing parents; resolve what exists of them.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	leave, err := enter(ctx, path)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		leave()
		return nil, err
	}
	for wait := 2 * time.Millisecond; ; wait = min(wait*3/2, 100*time.Millisecond) {
		err := tryLock(f)
		if err == nil {
			return func() {
				_ = f.Close() // lets go of the lock too
				leave()
			}, nil
		}
		if errors.Is(err, errHeld) {
			err = sleep(ctx, wait)
		}
		if err != nil {
			_ = f.Close()
			leave()
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
	}
}

// enter keeps out others of this process.
func enter(ctx context.Context, path string) (leave func(), err error) {
	for {
		held.Lock()
		busy := held.byPath[path]
		if busy == nil {
			mine := make(chan struct{})
			held.byPath[path] = mine
			held.Unlock()
			return func() {
				held.Lock()
				delete(held.byPath, path)
				held.Unlock()
				close(mine)
			}, nil
		}
		held.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot lock %s: %w", path, context.Cause(ctx))
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
