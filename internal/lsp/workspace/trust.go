package workspace

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/lsp/index"
)

// # Trust
//
// Functions of unit files (run_cmd, sops, git and cloud functions) run programs. A program runs only if
// every unit file that was read so far is in a directory that the user trusts, and every file that was
// read is saved. Otherwise the function returns an unknown value. Without the second condition, a command
// would run each time that the user has typed a part of it.

// programTime is the time after which a program is ended.
const programTime = 30 * time.Second

// answerAge is the time for which the output of a program is used again.
const answerAge = 5 * time.Minute

// maxAnswers is the number of outputs that are kept. maxAnswer is the length of each, in bytes.
const (
	maxAnswers = 256
	maxAnswer  = 1 << 20
)

// trust contains the directories that the user trusts, and the output of their programs.
type trust struct {
	programs func(context.Context, sys.Command) error // nil if no program may run in any directory
	now      func() time.Time

	mu       sync.Mutex
	roots    map[string]bool // whether programs may run, by directory; the nearest directory counts
	version  int             // changes if results with programs are outdated
	withheld bool            // a program was not run because a file was not saved
	answers  map[string]answer
}

type answer struct {
	text string
	at   time.Time
}

// SetTrust sets the directories in which functions of unit files may run programs, with true, and
// directories below them in which they may not, with false. It reports whether that changes anything.
func (s *Session) SetTrust(roots map[string]bool) bool {
	t := &s.trust
	t.mu.Lock()
	defer t.mu.Unlock()
	same := len(roots) == len(t.roots)
	for dir, on := range roots {
		if old, ok := t.roots[dir]; !ok || old != on {
			same = false
		}
	}
	if same {
		return false
	}
	t.roots, t.answers = roots, nil
	t.version++
	return true
}

// Saved makes programs run that did not run because a file was not saved. It reports whether there are
// any.
func (s *Session) Saved() bool {
	t := &s.trust
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.withheld {
		return false
	}
	t.withheld = false
	t.version++
	return true
}

// RunsPrograms reports whether programs may run in any directory that the user trusts.
func (s *Session) RunsPrograms() bool { return s.trust.programs != nil }

// Trusts reports whether functions of the unit files in a directory may run programs.
func (s *Session) Trusts(path string) bool {
	t := &s.trust
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.programs != nil && t.trusts(path)
}

func (t *trust) trusts(path string) bool {
	for at := path; ; at = filepath.Dir(at) {
		if on, ok := t.roots[at]; ok {
			return on
		}
		if filepath.Dir(at) == at {
			return false
		}
	}
}

func (t *trust) current() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version
}

// runner returns the function that runs programs for a result. The result is outdated when the trust
// changes.
func (t *trust) runner(r *reading) func(context.Context, sys.Command) error {
	version := t.current()
	r.valid = func() bool { return t.current() == version }
	if t.programs == nil {
		return sys.SkipPrograms
	}
	return func(ctx context.Context, c sys.Command) error {
		paths, unsaved := r.units()
		t.mu.Lock()
		trusted := len(paths) > 0 && !slices.ContainsFunc(paths, func(p string) bool { return !t.trusts(p) })
		t.mu.Unlock()
		if !trusted {
			return sys.ErrSkipped
		}
		key := commandKey(c)
		if text, ok := t.answer(key); ok {
			_, err := c.Stdout.Write([]byte(text))
			return err
		}
		if unsaved {
			t.mu.Lock()
			t.withheld = true
			t.mu.Unlock()
			return sys.ErrSkipped
		}
		ctx, cancel := context.WithTimeout(ctx, programTime)
		defer cancel()
		var out bytes.Buffer
		to := c.Stdout
		c.Stdout, c.Stdin = &out, nil // standard input belongs to the protocol
		if err := t.programs(ctx, c); err != nil {
			return err
		}
		t.keep(key, out.String())
		if to == nil {
			return nil
		}
		_, err := to.Write(out.Bytes())
		return err
	}
}

func (t *trust) answer(key string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, ok := t.answers[key]
	return a.text, ok && t.now().Sub(a.at) < answerAge
}

func (t *trust) keep(key, text string) {
	if len(text) > maxAnswer {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.answers == nil || len(t.answers) >= maxAnswers {
		t.answers = map[string]answer{}
	}
	t.answers[key] = answer{text, t.now()}
}

// commandKey identifies a command, with the versions of the files that it names.
func commandKey(c sys.Command) string {
	words := append([]string{c.Dir, c.Path}, c.Args...)
	for _, w := range words[1:] {
		if info, err := os.Stat(sys.Join(c.Dir, w)); err == nil && info.Mode().IsRegular() {
			words = append(words, fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
		}
	}
	return strings.Join(append(words, c.Env...), "\x00")
}

// units returns the unit and stack files that were read so far. unsaved reports whether the text of a file that
// was read, such as a data file, is not that on disk.
func (r *reading) units() (paths []string, unsaved bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for path, v := range r.seen {
		if kind := index.KindOf(path); v != (version{}) && (kind == index.Unit || kind == index.Stack || kind == index.UnitValues) {
			paths = append(paths, path)
		}
		if v.buffer == nil {
			continue
		}
		if saved, err := readfile.Whole(path); err != nil || !bytes.Equal(saved, v.buffer.Text.Bytes) {
			unsaved = true
		}
	}
	return paths, unsaved
}
