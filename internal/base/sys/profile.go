package sys

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// Profiles contains the paths of profile files; "" disables a profile.
type Profiles struct{ CPU, Memory, Goroutines string }

// sampledBytes is the allocated memory between two samples of the memory profile: Go's
// own default.
const sampledBytes = 512 << 10

// withoutSamples disables memory sampling, which Go enables in every program that contains
// the profiler. It must be called first.
func withoutSamples() { runtime.MemProfileRate = 0 }

// profile starts profiling. It creates the files and their directories immediately,
// readable only by their owner. stop writes the profiles and must be called once. Only one
// processor profile can run at a time.
func profile(p Profiles) (stop func() error, err error) {
	var ends []func() error
	stop = func() error {
		var all []error
		for _, end := range ends {
			all = append(all, end())
		}
		return errors.Join(all...)
	}
	begin := func(path string, start, end func(io.Writer) error) {
		if path == "" || err != nil {
			return
		}
		var f *os.File
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			f, err = os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		}
		if err != nil {
			return
		}
		if err = start(f); err != nil {
			_ = f.Close()
			return
		}
		ends = append(ends, func() error {
			if err := errors.Join(end(f), f.Close()); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			return nil
		})
	}
	later := func(io.Writer) error { return nil }
	begin(p.CPU, pprof.StartCPUProfile, func(io.Writer) error {
		pprof.StopCPUProfile()
		return nil
	})
	begin(p.Goroutines, later, func(w io.Writer) error { return pprof.Lookup("goroutine").WriteTo(w, 0) })
	begin(p.Memory, func(io.Writer) error {
		runtime.MemProfileRate = sampledBytes
		return nil
	}, func(w io.Writer) error {
		runtime.GC() // so that the profile contains only live memory
		return pprof.WriteHeapProfile(w)
	})
	if err != nil {
		_ = stop()
	}
	return stop, err
}
