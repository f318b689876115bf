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

// Profiles are the files that profiles of the process are written to; "" for those
// that are not wanted.
type Profiles struct{ CPU, Memory, Goroutines string }

// sampledBytes is how much memory is allocated between two samples of a profile: what
// Go takes by itself where something reads the profile.
const sampledBytes = 512 << 10

// withoutSamples has no memory sampled: since profile is linked in, every allocation
// would count towards one else. It must be called first of all.
func withoutSamples() { runtime.MemProfileRate = 0 }

// profile begins to profile the process. The files are made at once, with their
// folders, and are readable by their owner alone; stop, which must be called once,
// writes them. Only one profile of the processor can be taken at a time.
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
		runtime.GC() // so that the profile has what is in use
		return pprof.WriteHeapProfile(w)
	})
	if err != nil {
		_ = stop()
	}
	return stop, err
}
