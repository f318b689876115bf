package git

import (
	"context"
	"fmt"
	"maps"
	"sync"
)

// # Files without a repository
//
// A worker has the files of a run, but not their git repository. The machine that starts the run
// records git's answers to filters and sends them to the worker, so that the filters select the
// same units there.

// Answers records git's answers about a repository, or replays recorded ones. Its methods may be
// called concurrently.
type Answers struct {
	mu    sync.Mutex
	said  Record
	given bool // said is complete, and git is not run
	// unpack writes the files of a tree into a directory, which must not exist.
	unpack func(ctx context.Context, tree, dir string) error
}

// Record is the serializable content of Answers.
type Record struct {
	Commits  map[string]string   `json:"commits,omitempty"`  // commit IDs, by name
	Diffs    map[string]string   `json:"diffs,omitempty"`    // output of git diff, by the text in the brackets of filters
	Affected string              `json:"affected,omitempty"` // result of Repo.Affected
	Values   map[string][]string `json:"values,omitempty"`   // names of the units whose values differ from a revision, by the revision as written in filters
	Trees    map[string]string   `json:"trees,omitempty"`    // names of the file trees of commits, by the commit as written in filters
}

// Given returns Answers that replay s, which another machine recorded. unpack writes the files of
// one of its trees into a directory that does not exist.
func Given(s *Record, unpack func(ctx context.Context, tree, dir string) error) *Answers {
	return &Answers{said: *s, given: true, unpack: unpack}
}

// Record returns a copy of the recorded answers, or nil if there are none. a may be nil.
func (a *Answers) Record() *Record {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.said.Commits) == 0 && len(a.said.Diffs) == 0 && len(a.said.Values) == 0 && a.said.Affected == "" {
		return nil
	}
	return &Record{Commits: maps.Clone(a.said.Commits), Diffs: maps.Clone(a.said.Diffs), Affected: a.said.Affected, Values: maps.Clone(a.said.Values)}
}

// areGiven reports whether answers are replayed and git is not run. a may be nil.
func (a *Answers) areGiven() bool { return a != nil && a.given }

// answer returns the recorded answer for key or, unless answers are replayed, calls ask and
// records its result. a may be nil.
func (a *Answers) answer(of func(*Record) *map[string]string, key string, ask func() (string, error)) (string, error) {
	if a == nil {
		return ask()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	m := of(&a.said)
	if a.given {
		text, ok := (*m)[key]
		if !ok {
			return "", fmt.Errorf("the run that started this worker recorded no answer about %q", key)
		}
		return text, nil
	}
	text, err := ask()
	if err == nil {
		if *m == nil {
			*m = map[string]string{}
		}
		(*m)[key] = text
	}
	return text, err
}

func (s *Record) commits() *map[string]string { return &s.Commits }
func (s *Record) diffs() *map[string]string   { return &s.Diffs }

// affected returns the recorded result of Repo.Affected, or calls ask and records its result. a
// may be nil.
func (a *Answers) affected(ask func() (string, error)) (string, error) {
	if a == nil {
		return ask()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.given && a.said.Affected != "" {
		return a.said.Affected, nil
	}
	text, err := ask()
	if err == nil {
		a.said.Affected = text
	}
	return text, err
}

// Differing returns the recorded names of the units whose values differ from a revision or, unless
// answers are replayed, calls find and records its result if ok is true. a may be nil.
func (a *Answers) Differing(base string, find func() (names []string, ok bool)) (names []string, ok bool) {
	if a == nil {
		return find()
	}
	a.mu.Lock()
	names, ok = a.said.Values[base]
	a.mu.Unlock()
	if ok || a.given {
		return names, ok
	}
	if names, ok = find(); ok { // it may ask for other answers
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.said.Values == nil {
			a.said.Values = map[string][]string{}
		}
		a.said.Values[base] = names
	}
	return names, ok
}

// tree writes the files of a commit into a directory.
func (a *Answers) tree(ctx context.Context, ref, dir string) error {
	a.mu.Lock()
	name := a.said.Trees[ref]
	a.mu.Unlock()
	if name == "" || a.unpack == nil {
		return fmt.Errorf("the files of the commit %s are not among those of the run", ref)
	}
	return a.unpack(ctx, name, dir)
}
