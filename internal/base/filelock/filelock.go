// Package filelock locks files between processes and within one process.
//
// Main function: Lock. The one rule: only this package opens lock files, because a process
// loses a POSIX lock when it closes any descriptor of the file. POSIX locks are used
// because OpenTofu uses them for its plugin cache.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// errHeld is returned by tryLock while another process holds the lock.
var errHeld = errors.New("held by another process")

// held contains the paths that a caller in this process has locked or is locking. The
// channel is closed when that caller releases the lock.
var held = struct {
	sync.Mutex
	byPath map[string]chan struct{}
}{byPath: make(map[string]chan struct{})}

// Lock locks the file at path. It creates the file if it does not exist and never deletes
// it. Lock waits until the lock is free or ctx ends. Call unlock once. The system releases
// the lock when the process ends.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	// Another process may be replacing a parent directory: resolve the part that exists.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	leave, err := enter(ctx, path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		leave()
		return nil, fmt.Errorf("%s is a symbolic link, not a lock file: remove it", path)
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
				_ = f.Close() // also releases the lock
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

// enter waits for other callers in this process.
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
