package workspace

import (
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/lsp/index"
)

// maxTexts is the number of different texts that texts keeps. After that, it begins again: some texts are
// then in memory twice.
const maxTexts = 1 << 16

// texts makes equal texts share their memory. The names in the files of a workspace are few, but they
// occur again and again, and each would otherwise keep the whole text of its file in memory.
type texts struct {
	mu    sync.Mutex
	known map[string]string
}

// compact makes a file need as little memory as possible.
func (t *texts) compact(f *index.File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.Names, f.Arguments, f.Links, f.Searched = slices.Clone(f.Names), slices.Clone(f.Arguments), slices.Clone(f.Links), slices.Clone(f.Searched)
	for i := range f.Names {
		o := &f.Names[i]
		o.Addr, o.Via, o.Part = t.share(o.Addr), t.share(o.Via), t.share(o.Part)
	}
	for i := range f.Arguments {
		a := &f.Arguments[i]
		a.Addr, a.Name = t.share(a.Addr), t.share(a.Name)
	}
	f.Merges = slices.Clone(f.Merges)
	for i := range f.Links {
		l := &f.Links[i]
		l.Text, l.Via = t.share(l.Text), t.share(l.Via)
	}
	f.Reads, f.Wholes, f.Objects = slices.Clone(f.Reads), slices.Clone(f.Wholes), slices.Clone(f.Objects)
	for i := range f.Wholes {
		f.Wholes[i].Via = t.share(f.Wholes[i].Via)
	}
	for i := range f.Objects {
		f.Objects[i].Via = t.share(f.Objects[i].Via)
	}
	for i := range f.Reads {
		r := &f.Reads[i]
		r.Path, r.End = t.share(r.Path), t.share(r.End)
	}
	for i := range f.Searched {
		f.Searched[i] = t.share(f.Searched[i])
	}
	paths := make(map[string]string, len(f.Paths))
	for via, path := range f.Paths {
		paths[t.share(via)] = t.share(path)
	}
	f.Paths = paths
	for via, name := range f.Finds {
		f.Finds[via] = t.share(name)
	}
}

// share returns a text that is equal to s. The caller holds mu.
func (t *texts) share(s string) string {
	if s == "" {
		return ""
	}
	if k, ok := t.known[s]; ok {
		return k
	}
	if len(t.known) >= maxTexts || t.known == nil {
		t.known = map[string]string{}
	}
	k := strings.Clone(s)
	t.known[k] = k
	return k
}
