package git

import (
	"context"
	"fmt"
	"maps"
	"sync"
)

// # Where there are files and no repository
//
// A worker has the files of a run, and not the repository that they were in. What filters
// ask git is noted where the run begins, and travels: so they find the same units there.

// Answers are what git said of a repository. Its methods may be called concurrently.
type Answers struct {
	mu    sync.Mutex
	said  Record
	given bool // said is all that there is to know
	// unpack writes the files of a tree into a folder, which must not exist.
	unpack func(ctx context.Context, tree, dir string) error
}

// Record is what Answers hold.
type Record struct {
	Commits  map[string]string `json:"commits,omitempty"`  // IDs by name
	Diffs    map[string]string `json:"diffs,omitempty"`    // as git prints them, by what stands in the brackets of filters
	Affected string            `json:"affected,omitempty"` // what Repo.Affected found
	Trees    map[string]string `json:"trees,omitempty"`    // names of the files of commits, by the commit as it was asked for
}

// Given are answers that were given elsewhere. unpack writes the files of one of its trees
// into a folder that does not exist.
func Given(s *Record, unpack func(ctx context.Context, tree, dir string) error) *Answers {
	return &Answers{said: *s, given: true, unpack: unpack}
}

// Record is what is known so far; nil for nothing. a may be nil.
func (a *Answers) Record() *Record {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.said.Commits) == 0 && len(a.said.Diffs) == 0 && a.said.Affected == "" {
		return nil
	}
	return &Record{Commits: maps.Clone(a.said.Commits), Diffs: maps.Clone(a.said.Diffs), Affected: a.said.Affected}
}

// areGiven reports whether there is no git to ask. a may be nil.
func (a *Answers) areGiven() bool { return a != nil && a.given }

// answer is what is known of something, or what ask says, which is noted.
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
			return "", fmt.Errorf("the run that this is a part of did not tell what %q stands for", key)
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

// affected is like answer.
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

// tree writes the files of a commit into a folder.
func (a *Answers) tree(ctx context.Context, ref, dir string) error {
	a.mu.Lock()
	name := a.said.Trees[ref]
	a.mu.Unlock()
	if name == "" || a.unpack == nil {
		return fmt.Errorf("the files of the commit %s are not among those of the run", ref)
	}
	return a.unpack(ctx, name, dir)
}
