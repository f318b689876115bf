// Package funcs contains the functions that expressions can call, one file per family.
//
// [Table] returns the functions by name for one [Config], which contains the directory, the
// clock and the phase for functions with effects. The functions and their edge cases follow
// the function reference of OpenTofu 1.12. The one rule: a function only puts the text of an
// argument into an error if the argument is not secret (see quoting and guarded).
package funcs

import (
	"bytes"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty/function"
)

// Config configures the functions with effects. The zero value uses the current directory,
// without a home directory and a clock.
type Config struct {
	// BaseDir is the base of relative paths in file functions; "" means ".". It must be
	// absolute if the result of abspath must not depend on the process.
	BaseDir string
	// Folder contains the files of BaseDir if they are not read from disk; nil means that they
	// are. It also contains those of Above parent directories, with names that begin with "..".
	Folder fs.FS
	Above  int
	// OnDisk means that files which Folder does not contain are read from disk.
	OnDisk bool
	// Home returns the user's home directory, for `~`. nil: `~` is an error.
	Home func() (string, error)
	// Now is the clock of timestamp(). nil: timestamp() is an error, unless PureOnly is set.
	Now func() time.Time
	// PlanTime is the result of plantimestamp(). The zero time gives an unknown string.
	PlanTime time.Time
	// PureOnly lets timestamp, uuid and bcrypt return unknown strings, as in a plan.
	PureOnly bool
	// Comparing lets uuid and bcrypt return unknown strings.
	Comparing bool
	// Console adds the function type and removes plantimestamp.
	Console bool
	// ReadFile reads a file by its path, which is already joined with BaseDir. nil means
	// readfile.Whole. It must be safe for concurrent calls.
	ReadFile func(path string) ([]byte, error)
	// Stat and ReadDir are like the functions of package os, which nil means.
	Stat    func(path string) (fs.FileInfo, error)
	ReadDir func(path string) ([]fs.DirEntry, error)
	// TemplateDepth is the maximum nesting of templates that call templates; 0 means 1024.
	TemplateDepth int
}

// family is a set of functions by name.
type family map[string]function.Function

// corePrefix is the namespace in the long form of a function's name.
const corePrefix = "core::"

// Table returns every function under its name and under core::NAME. It is cheap: functions
// that do not depend on c are built once per process. The map must not be changed. The map
// and the functions may be used concurrently.
func Table(c Config) map[string]function.Function {
	return newScope(c).level(0)
}

// Plain returns a table for expressions that call no function which depends on a Config. One table
// then serves all directories. It contains all names, since messages about unknown functions suggest
// some.
var Plain = sync.OnceValue(func() map[string]function.Function { return Table(Config{PureOnly: true}) })

// Configured reports whether the text of a configuration file may call a function that depends on a
// Config: the name of one, before parentheses or a comment. It reads texts quickly, because an editor
// calls it after each edit.
func Configured(text []byte) bool {
	names := configured()
	for i, c := range text {
		switch {
		case c == '(' || c == '#':
		case c == '/' && i+1 < len(text) && (text[i+1] == '/' || text[i+1] == '*'):
		default:
			continue
		}
		end := len(bytes.TrimRight(text[:i], " \t\n\f\r"))
		start := end
		for start > 0 && inName[text[start-1]] {
			start--
		}
		if start < end && names[string(text[start:end])] {
			return true
		}
	}
	return false
}

// inName contains the bytes of names of functions.
var inName = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
	}
	return t
}()

// configured returns the names of the functions that depend on a Config.
var configured = sync.OnceValue(func() map[string]bool {
	s := newScope(Config{Console: true})
	out := map[string]bool{}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(own(s))), slices.Collect(maps.Keys(own(newScope(Config{})))), slices.Collect(maps.Keys(s.templates(0)))) {
		if !strings.HasPrefix(name, corePrefix) {
			out[name] = true
		}
	}
	return out
})

// own returns the functions that depend on the configuration of s, except those that run
// templates.
func own(s *scope) family {
	fs := make(family, 32)
	maps.Copy(fs, filesystem(s))
	maps.Copy(fs, clock(s.config))
	maps.Copy(fs, random(s.config))
	if s.config.Console {
		addBoth(fs, family{"type": typeFunc()})
	}
	return fs
}

// shared contains the functions that are the same in every table, under both names.
var shared = sync.OnceValue(func() family {
	fs := make(family, 256)
	for _, part := range []family{
		numeric(), text(), regular(), collections(), searching(), encoding(),
		hashes(), network(), datetime(), conversion(), marking(), attempts(), assumptions(), removed(),
	} {
		addBoth(fs, part)
	}
	return fs
})

// addBoth adds the functions of part to fs under their short and long names.
func addBoth(fs, part family) {
	for name, f := range part {
		fs[name] = f
		fs[corePrefix+name] = f
	}
}

// Names returns the names of all functions without prefix, sorted, including those that
// only the console has or lacks. It omits the removed function defaults, which only returns
// an error.
func Names() []string {
	all := make(map[string]bool, 128)
	for _, console := range []bool{false, true} {
		for name := range Table(Config{Console: console}) {
			if len(name) < len(corePrefix) || name[:len(corePrefix)] != corePrefix {
				all[name] = true
			}
		}
	}
	delete(all, "defaults")
	return slices.Sorted(maps.Keys(all))
}
