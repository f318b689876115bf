// Package funcs is the table of functions that expressions can call, one file
// a family.
//
// [Table] gives the functions by name, made for one [Config]: the folder, the
// clock and the phase that the functions with effects need. Which functions
// there are, and what they do at their edges, follows the function reference
// of OpenTofu 1.12. The one rule to obey: a function never puts the text of an
// argument into an error without asking whether that argument is secret (see
// quoting and guarded).
package funcs

import (
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty/function"
)

// Config is what functions need from outside. The zero value works in the
// current folder, without home folder and clock.
type Config struct {
	// BaseDir is the folder that relative paths of file functions start from;
	// "" means ".". Give an absolute path where the answer of abspath must not
	// depend on the process.
	BaseDir string
	// Folder has what lies in BaseDir where that folder is not on disk. Nil: it is, or what
	// lies in it does not exist.
	Folder fs.FS
	// Home tells the user's home folder, for `~`. Nil: `~` is an error.
	Home func() (string, error)
	// Now is the clock of timestamp(). Nil: timestamp() is an error, unless
	// PureOnly is set.
	Now func() time.Time
	// PlanTime is what plantimestamp() gives; the zero time gives an unknown
	// string.
	PlanTime time.Time
	// PureOnly makes timestamp, uuid and bcrypt give unknown strings, as a
	// plan must.
	PureOnly bool
	// Console adds the function type and takes plantimestamp away.
	Console bool
	// ReadFile reads a file, by a path that is joined with BaseDir. Nil means
	// readfile.Whole. It must be safe to call concurrently.
	ReadFile func(path string) ([]byte, error)
	// TemplateDepth limits how deep templates may call each other; 0 means 1024.
	TemplateDepth int
}

// family is some functions by name.
type family map[string]function.Function

// corePrefix stands before a function's name in its long form.
const corePrefix = "core::"

// Table returns every function under its name and under core::NAME. It is
// cheap (functions that do not depend on c are built once a process, at the first
// call). The map must not be changed; it and the functions may be used
// concurrently.
func Table(c Config) map[string]function.Function {
	return newScope(c).level(0)
}

// own is the functions that depend on the configuration of s, without those that
// run templates.
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

// shared is the functions that are the same in every table, under both names.
var shared = sync.OnceValue(func() family {
	fs := make(family, 256)
	for _, part := range []family{
		numeric(), text(), regular(), collections(), searching(), encoding(),
		hashes(), network(), datetime(), conversion(), marking(), attempts(), removed(),
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

// Names lists the names of all functions without prefix, sorted: those that
// only the console has and those that it lacks too. The retired function
// defaults, which is there only to say where it went, is left out.
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
