package workspace

import (
	"cmp"
	"context"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/overlay"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/unit"
)

// scanAge is the age of the last walk over the workspace after which a request starts another one in the
// background. watchedAge is the same if the client reports which files change.
const (
	scanAge    = 3 * time.Second
	watchedAge = time.Minute
)

// A Symbol is a name with its scope: the directory of a module, or the path of a unit file.
type Symbol struct{ Scope, Addr string }

// A Place is an occurrence in a file.
type Place struct {
	File *index.File
	*index.Occurrence
}

// Index contains the names in all files of a workspace. It is safe for concurrent use.
type Index struct {
	// Counted is called with the number of files in the workspace before they are read for the first time, and
	// when the number has doubled. nil means that nothing is called.
	Counted func(files int)

	files *Files
	now   func() time.Time

	walk      chan struct{} // has a value while the workspace is walked over
	counted   int           // the number of files in the last call of Counted; used only during a walk
	reread    chan struct{} // has a value while changed files are read again
	urgent    atomic.Int32  // requests that must not wait for the processor
	mu        sync.Mutex
	walked    time.Time // of the last walk; zero means that a request waits for one
	reset     int       // the number of calls of Invalidate
	again     bool      // a walk in the background has started
	age       time.Duration
	done      bool           // a walk has ended
	changed   map[string]int // the number of reported changes of paths that are not read again yet
	roots     []string
	entries   map[string]*entry
	dirs      map[string]map[string]*entry // files by directory
	users     map[string]*users            // the files that use a directory or file, by its path
	version   int                          // see Version
	texts     texts
	sources   map[string]int             // the number of files with a source of a module, as ModuleSource returns it
	links     map[string]string          // the files, and directories outside of the workspace, to which symbolic links lead
	edges     int                        // the number of changes of edges
	cycles    map[string]cycle           // the cycles of units, by path
	listed    map[string]bool            // directories that were read before the first walk ended
	relative  map[string]bool            // files whose paths are relative to the units that include them
	inclusion *inclusion                 // the files that these units use; nil if they are not known yet
	search    map[string]map[string]bool // paths of the files that search a file in parent directories, by its name
	// overrides contains the number of override files, by directory.
	overrides map[string]int
	// appearances is the number of files that have appeared or disappeared after the first walk.
	appearances int
	// read contains the results of readers, for one version.
	read        map[string][]string
	readVersion int
}

// users are the files that use a directory or file.
type users struct {
	paths  map[string]bool
	sorted []string // nil if paths has changed since; never modified
}

type entry struct {
	version version
	file    *index.File
	targets []string // directories and files that the file uses; sorted, without duplicates
	module  string   // the directory of the module of a unit, if the file itself names it
	// edges contains the dependencies and merged files among the targets, sorted by their address.
	edges []edge
	// calls contains the local directories to which the module calls of the file lead, sorted by their address.
	calls []edge
	// repeated contains the addresses of the module calls with count or for_each, sorted.
	repeated []string
	// relative means that units may include the file, and that it contains paths relative to them.
	relative bool
	// outdated means that a file appeared or disappeared that the file searches.
	outdated bool
}

// An edge leads from a file to another file, or to the directory of a module.
type edge struct{ via, to string }

// A cycle is the result of a search, after a number of changes of edges.
type cycle struct {
	edges int
	chain []Dependency
}

func newIndex(f *Files, now func() time.Time) *Index {
	return &Index{files: f, now: now, age: scanAge, walk: make(chan struct{}, 1), reread: make(chan struct{}, 1), changed: map[string]int{}, entries: map[string]*entry{}, dirs: map[string]map[string]*entry{}, users: map[string]*users{}, sources: map[string]int{}, search: map[string]map[string]bool{}, listed: map[string]bool{}, cycles: map[string]cycle{}, overrides: map[string]int{}, relative: map[string]bool{}}
}

// SetRoots sets the directories of the workspace.
func (x *Index) SetRoots(dirs []string) {
	x.mu.Lock()
	x.roots = dirs
	x.mu.Unlock()
	x.Invalidate()
}

// Watched means that the client reports each file that changes, so that the index looks for changes
// less often.
func (x *Index) Watched() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.age = watchedAge
}

// Invalidate makes the next request wait for a walk over the workspace. It does not wait itself.
func (x *Index) Invalidate() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.walked = time.Time{}
	x.reset++
}

// Changed makes the next request read files again that were changed, created or deleted. A path may be
// that of a deleted directory. It does not wait itself, because a client may report thousands of files,
// and the request that follows may be one for formatting.
func (x *Index) Changed(paths []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, path := range paths {
		x.changed[path]++
	}
}

// refresh reads the changed files again, and waits until no other request does. If done is closed, the next
// request continues.
func (x *Index) refresh(done <-chan struct{}) {
	select {
	case x.reread <- struct{}{}:
	case <-done:
		return
	}
	defer func() { <-x.reread }()
	for {
		select {
		case <-done:
			return
		default:
		}
		path, n := "", 0
		x.mu.Lock()
		for path, n = range x.changed {
			break
		}
		x.mu.Unlock()
		if n == 0 {
			return
		}
		x.readAgain(path)
		x.mu.Lock()
		if x.changed[path] == n { // it has not changed while it was read
			delete(x.changed, path)
		}
		x.mu.Unlock()
	}
}

// readAgain reads a changed file again, or removes the files of a deleted directory.
func (x *Index) readAgain(path string) {
	if index.KindOf(path).Indexed() {
		x.file(path)
		return
	}
	if x.files.Exists(path) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for name := range x.entries {
		if strings.HasPrefix(name, path+string(filepath.Separator)) {
			x.remove(name)
		}
	}
}

// urgency is the key of the function that ends the urgency of a request, in its context.
type urgency struct{}

// answerTime is the time after an urgent request in which its answer is encoded and sent, and the next
// request may arrive.
const answerTime = 3 * time.Millisecond

// Urgent makes the walk over the workspace pause until answerTime after done is called, or until a request
// with the returned context waits for the walk itself.
func (x *Index) Urgent(ctx context.Context) (_ context.Context, done func()) {
	x.urgent.Add(1)
	done = sync.OnceFunc(func() { x.urgent.Add(-1) })
	return context.WithValue(ctx, urgency{}, done), done
}

// notUrgent ends the urgency of a request that waits for work in the background.
func notUrgent(ctx context.Context) {
	if done, ok := ctx.Value(urgency{}).(func()); ok {
		done()
	}
}

// pause waits while an urgent request runs, and until its answer is sent.
func (x *Index) pause(ctx context.Context) {
	for x.urgent.Load() > 0 && ctx.Err() == nil {
		for x.urgent.Load() > 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(answerTime)
	}
	runtime.Gosched() // otherwise a request that arrives waits for up to 10 ms if no processor is idle
}

// skipped contains the names of directories that are not part of a workspace.
var skipped = []string{".git", ".terraform", ".terragrunt-cache", "node_modules", ".hg", ".svn"}

// Ready reports whether the workspace was walked over once.
func (x *Index) Ready() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.walked.IsZero()
}

// Scan waits until the workspace was walked over once. If that was long ago, it starts another walk in
// the background.
func (x *Index) Scan(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, b := range x.files.Open() { // an edit counts at once
		if index.KindOf(b.Path) != index.Other {
			x.File(b.Path)
		}
	}
	x.mu.Lock()
	walked, age := x.walked, x.age
	if !walked.IsZero() && x.now().Sub(walked) >= age && !x.again {
		x.again = true
		go func() { // ends with the walk
			_ = x.scan(context.WithoutCancel(ctx), walked) // the next request repeats it
			x.mu.Lock()
			x.again = false
			x.mu.Unlock()
		}()
	}
	x.mu.Unlock()
	if walked.IsZero() {
		notUrgent(ctx)
		if err := x.scan(ctx, walked); err != nil {
			return err
		}
	}
	x.refreshed(ctx.Done())
	return ctx.Err()
}

// scan walks over the workspace and reads the files that changed, unless another walk has ended since
// the walk at the time before.
func (x *Index) scan(ctx context.Context, before time.Time) error {
	select {
	case x.walk <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-x.walk }()
	now := x.now()
	x.mu.Lock()
	roots, walked, reset := x.roots, x.walked, x.reset
	x.mu.Unlock()
	if !walked.Equal(before) && !walked.IsZero() {
		return nil
	}
	found, links, dirs := map[string]bool{}, map[string]string{}, map[string]string{}
	var paths []string
	for _, root := range roots {
		root = strings.TrimSuffix(root, string(filepath.Separator)) + string(filepath.Separator) // WalkDir would not follow a symbolic link
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			x.pause(ctx)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				return nil // a directory that cannot be read has no names
			case d.IsDir() && slices.Contains(skipped, d.Name()):
				return fs.SkipDir
			case d.Type()&fs.ModeSymlink != 0 && isDir(path):
				to, err := filepath.EvalSymlinks(path)
				if err != nil {
					return nil
				}
				if in := inside(to, roots); in != "" {
					dirs[path] = in
				} else {
					links[path] = to // its files are read where a source names them
				}
			case !index.KindOf(d.Name()).Indexed() || found[path]:
			case d.Type()&fs.ModeSymlink != 0:
				to, err := filepath.EvalSymlinks(path)
				if err != nil {
					return nil // as for a file that does not exist
				}
				if info, err := os.Stat(to); err != nil || !info.Mode().IsRegular() {
					return nil
				}
				links[path] = to
				fallthrough
			case d.Type().IsRegular():
				found[path] = true
				paths = append(paths, path)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if x.files.setLinks(dirs) { // paths through a link lead to other files than before
		x.mu.Lock()
		for _, e := range x.entries {
			e.outdated = true
		}
		x.mu.Unlock()
	}
	for _, b := range x.files.Open() {
		if !found[b.Path] && index.KindOf(b.Path).Indexed() {
			found[b.Path] = true
			paths = append(paths, b.Path)
		}
	}
	if n := len(paths); x.Counted != nil && n > 2*x.counted {
		x.counted = n
		x.Counted(n)
	}
	workers := max(1, runtime.GOMAXPROCS(0)-1) // one processor is left for requests
	parallel.Each(len(paths), workers, func(i int) {
		if x.pause(ctx); ctx.Err() == nil {
			x.file(paths[i])
		}
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for path, e := range x.entries {
		if !found[path] && e.file.Kind.Indexed() {
			x.remove(path)
		}
	}
	x.done, x.links = true, links
	if x.reset == reset { // otherwise the next request walks again
		x.walked = now
	}
	return nil
}

// isDir reports whether a path is that of a directory, or of a symbolic link to one.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// inside returns the path of a directory below one of the roots, or "" if it is not below them, or in a directory that
// is left out. dir has no symbolic links. A root may be one, or have some in its path.
func inside(dir string, roots []string) string {
	for _, root := range roots {
		real, err := filepath.EvalSymlinks(root)
		if err != nil {
			continue
		}
		rel, err := filepath.Rel(real, dir)
		if err == nil && filepath.IsLocal(rel) && !slices.ContainsFunc(strings.Split(filepath.ToSlash(rel), "/"), func(name string) bool { return slices.Contains(skipped, name) }) {
			return filepath.Join(root, rel)
		}
	}
	return ""
}

// File returns the names in a file, as it is now.
func (x *Index) File(path string) *index.File {
	x.refreshed(nil)
	return x.file(path)
}

// refreshed reads the changed files again, if there are any, until done is closed. nil means to the end.
func (x *Index) refreshed(done <-chan struct{}) {
	x.mu.Lock()
	n := len(x.changed)
	x.mu.Unlock()
	if n > 0 {
		x.refresh(done)
	}
}

func (x *Index) file(path string) *index.File {
	path = x.files.Real(path)
	v := x.files.versionOf(path)
	x.mu.Lock()
	e := x.entries[path]
	valid := e != nil && e.version == v && !e.outdated
	appearances := x.appearances
	x.mu.Unlock()
	if valid {
		return e.file
	}
	old := e
	var text []byte
	var err error
	if v.size <= index.MaxSize {
		text, err = x.files.ReadFile(path)
	}
	if err != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.remove(path)
		return &index.File{Path: path, Kind: index.KindOf(path)}
	}
	if v.size > index.MaxSize {
		e = &entry{version: v, file: &index.File{Path: path, Kind: index.KindOf(path), Broken: true}}
	} else {
		e = &entry{version: v, file: index.Of(path, text, x.files.Exists)}
		x.texts.compact(e.file)
	}
	if e.file.Broken {
		e.file.Last = x.last(path, old)
	}
	part := e.file.Kind == index.Unit && !index.IsDefault(path) && !hasUnits(e.file)
	e.relative = part && len(e.file.Finds) > 0
	for via, p := range e.file.Paths {
		e.relative = e.relative || part && toUnit(e.file, via)
		t := x.resolved(e.file, via, x.base(e.file), p)
		if t == "" {
			continue
		}
		if via == "terraform" {
			e.module = t
		}
		e.targets = append(e.targets, t)
		if isDependency(via) && !conditional(e.file, via) || slices.Contains(e.file.Merges, via) {
			e.edges = append(e.edges, edge{via, t})
		}
		if e.file.Kind.OfModule() && strings.HasPrefix(via, "module.") {
			e.calls = append(e.calls, edge{via, t})
		}
	}
	slices.Sort(e.targets)
	e.targets = slices.Compact(e.targets)
	if e.file.Kind.OfModule() {
		for _, a := range e.file.Arguments {
			if !a.Inner && (a.Name == "count" || a.Name == "for_each") && strings.HasPrefix(a.Addr, "module.") {
				e.repeated = append(e.repeated, a.Addr)
			}
		}
		slices.Sort(e.repeated)
	}
	byVia := func(a, b edge) int { return strings.Compare(a.via, b.via) }
	slices.SortFunc(e.edges, byVia)
	slices.SortFunc(e.calls, byVia)
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.entries[path] // another request may have replaced it meanwhile
	e.outdated = appearances != x.appearances && len(e.file.Searched) > 0
	x.replace(path, e)
	if before == nil {
		x.appeared(path)
	}
	if before == nil && len(e.edges) > 0 || before != nil && !slices.Equal(before.edges, e.edges) {
		x.edges++
	}
	return e.file
}

// last returns the last version of a file without a syntax error, or nil. old is the version before.
func (x *Index) last(path string, old *entry) *index.File {
	switch {
	case old != nil && !old.file.Broken:
		return old.file
	case old != nil && old.file.Last != nil:
		return old.file.Last
	}
	if info, err := os.Stat(path); err != nil || info.Size() > index.MaxSize {
		return nil
	}
	saved, err := readfile.Whole(path)
	if err != nil || x.files.Buffer(path) == nil {
		return nil
	}
	if f := index.Of(path, saved, x.files.Exists); !f.Broken {
		return f
	}
	return nil
}

// appeared makes the files below a new or deleted file that search for its name to be read again. The
// caller holds mu.
func (x *Index) appeared(path string) {
	if !x.done { // the first walk reads files that do not change meanwhile
		return
	}
	x.appearances++
	below := filepath.Dir(path) + string(filepath.Separator)
	for user := range x.search[filepath.Base(path)] {
		if e := x.entries[user]; e != nil && strings.HasPrefix(user, below) {
			e.outdated = true
		}
	}
}

// remove removes a file. The caller holds mu.
func (x *Index) remove(path string) {
	if e := x.entries[path]; e != nil {
		x.replace(path, nil)
		x.appeared(path)
		if len(e.edges) > 0 {
			x.edges++
		}
	}
}

// replace puts an entry in the place of the last one of a file. nil removes the file. The caller holds mu.
func (x *Index) replace(path string, e *entry) {
	old := x.entries[path]
	dir := filepath.Dir(path)
	var was, is entry // without names and targets
	if old != nil {
		was = *old
	}
	if e != nil {
		is = *e
		x.entries[path] = e
		if x.dirs[dir] == nil {
			x.dirs[dir] = map[string]*entry{}
		}
		x.dirs[dir][path] = e
	} else {
		delete(x.entries, path)
		if delete(x.dirs[dir], path); len(x.dirs[dir]) == 0 {
			delete(x.dirs, dir)
		}
	}
	if was.file != nil && was.file.Override {
		x.overrides[dir]--
	}
	if is.file != nil && is.file.Override {
		x.overrides[dir]++
	}
	for _, name := range was.searched() {
		if delete(x.search[name], path); len(x.search[name]) == 0 {
			delete(x.search, name)
		}
	}
	for _, name := range is.searched() {
		if x.search[name] == nil {
			x.search[name] = map[string]bool{}
		}
		x.search[name][path] = true
	}
	if old == nil || e == nil || was.units() != is.units() || was.root() != is.root() || was.source() != is.source() || was.relative != is.relative || !sameForUnits(was.file, is.file) || !slices.Equal(was.calls, is.calls) || !slices.Equal(was.repeated, is.repeated) {
		x.version++
	}
	if is.relative {
		x.relative[path] = true
	} else {
		delete(x.relative, path)
	}
	for _, source := range was.sources() {
		if x.sources[source]--; x.sources[source] == 0 {
			delete(x.sources, source)
		}
	}
	for _, source := range is.sources() {
		x.sources[source]++
	}
	for _, t := range was.targets {
		if _, stays := slices.BinarySearch(is.targets, t); stays { // most edits change no target
			continue
		}
		u := x.users[t]
		if delete(u.paths, path); len(u.paths) == 0 {
			delete(x.users, t)
		}
		u.sorted = nil
		x.version++
	}
	for _, t := range is.targets {
		u := x.users[t]
		if u == nil {
			u = &users{paths: map[string]bool{}}
			x.users[t] = u
		}
		if !u.paths[path] {
			u.paths[path], u.sorted = true, nil
			x.version++
		}
	}
}

// sources returns the sources of modules in the file that are not local paths.
func (e *entry) sources() (out []string) {
	if e.file == nil {
		return nil
	}
	for via, path := range e.file.Paths {
		if kind, _, _ := strings.Cut(via, "."); kind == "module" || via == "terraform" {
			if source := ModuleSource(path); source != "" {
				out = append(out, source)
			}
		}
	}
	return out
}

// moduleSources returns the sources of modules in all files that are not local paths.
func (x *Index) moduleSources() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Keys(x.sources))
}

// firstDirs returns the first n directories with files, sorted.
func (x *Index) firstDirs(n int) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := slices.Sorted(maps.Keys(x.dirs))
	return all[:min(n, len(all))]
}

// units reports whether the file declares units.
func (e *entry) units() bool { return e.file != nil && hasUnits(e.file) }

// root reports whether the file makes its directory a root module: it has a backend, or commands read its
// variables in this directory only.
func (e *entry) root() bool {
	if e.file == nil {
		return false
	}
	if e.file.Kind == index.Values {
		name := strings.TrimSuffix(filepath.Base(e.file.Path), ".json")
		return name == "terraform.tfvars" || strings.HasSuffix(name, ".auto.tfvars")
	}
	return e.file.Kind.OfModule() && slices.ContainsFunc(e.file.Arguments, func(a index.Argument) bool {
		return a.Addr == "terraform" && a.Nested && (a.Name == "backend" || a.Name == "cloud")
	})
}

// source reports whether the unit in the file has a source of its own.
func (e *entry) source() bool {
	if e.file == nil {
		return false
	}
	_, written := e.file.Paths["terraform"]
	return written
}

// IsRoot reports whether a directory contains a root module for certain: it has a backend, or variable files that
// commands read in this directory only.
func (x *Index) IsRoot(dir string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.dirs[dir] {
		if e.root() {
			return true
		}
	}
	return false
}

// A Call is a module call.
type Call struct {
	Dir      string // of the module that calls
	Via      string // such as "module.app"
	Repeated bool   // the block has count or for_each
}

// Callers returns the calls of the module in a directory from modules in other directories, sorted.
func (x *Index) Callers(ctx context.Context, dir string) ([]Call, error) {
	users, err := x.Users(ctx, dir)
	if err != nil {
		return nil, err
	}
	var out []Call
	for _, path := range users {
		from := filepath.Dir(path)
		x.mu.Lock()
		e := x.entries[path]
		x.mu.Unlock()
		if e == nil || from == dir {
			continue
		}
		for _, c := range e.calls {
			if p, _ := x.declared(from, c.via); c.to == dir && p == e.file.Paths[c.via] { // otherwise an override file replaces it
				out = append(out, Call{from, c.via, x.isRepeated(from, c.via)})
			}
		}
	}
	slices.SortFunc(out, func(a, b Call) int { return cmp.Or(strings.Compare(a.Dir, b.Dir), strings.Compare(a.Via, b.Via)) })
	return slices.Compact(out), nil
}

// isRepeated reports whether the block of a module call has count or for_each, in any file of its directory.
func (x *Index) isRepeated(dir, via string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.dirs[dir] {
		if slices.Contains(e.repeated, via) {
			return true
		}
	}
	return false
}

// sameForUnits reports whether two versions of a file search for the same files for each unit, and have the same
// dependency blocks, which replace those of included files.
func sameForUnits(a, b *index.File) bool {
	among := func(vias, others map[string]string) bool {
		for via := range vias {
			if _, ok := others[via]; !ok && isDependency(via) {
				return false
			}
		}
		return true
	}
	return maps.Equal(a.Finds, b.Finds) && among(a.Paths, b.Paths) && among(b.Paths, a.Paths)
}

// searched returns the names of the files that the file searches in parent directories.
func (e *entry) searched() []string {
	if e.file == nil {
		return nil
	}
	return e.file.Searched
}

// Dir returns the files of a directory as they are now, in the order in which they are loaded.
func (x *Index) Dir(dir string) []*index.File {
	entries, _ := x.files.ReadDir(dir)
	var out []*index.File
	for _, e := range entries {
		if !e.IsDir() && index.KindOf(e.Name()).Indexed() {
			out = append(out, x.File(filepath.Join(dir, e.Name())))
		}
	}
	slices.SortFunc(out, func(a, b *index.File) int {
		if a.Override != b.Override {
			if b.Override {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	return out
}

// All returns all files of the workspace, sorted by path.
func (x *Index) All(ctx context.Context) ([]*index.File, error) {
	if err := x.Scan(ctx); err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	out := make([]*index.File, 0, len(x.entries))
	for _, e := range x.entries {
		out = append(out, e.file)
	}
	slices.SortFunc(out, func(a, b *index.File) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// Users returns the paths of the files that use a directory or file, sorted. The caller must not modify
// them. A unit uses what a file that it includes names with a relative path.
func (x *Index) Users(ctx context.Context, target string) ([]string, error) {
	out, err := x.Naming(ctx, target)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	relative := len(x.relative) > 0
	x.mu.Unlock()
	if !relative {
		return out, nil
	}
	more := x.throughIncludes().users[target]
	out = slices.DeleteFunc(slices.Clone(out), func(path string) bool { return !x.uses(path, target) })
	out = append(out, more...)
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Naming returns the paths of the files whose own paths lead to a directory or file, as if no file were included,
// sorted. The caller must not modify them. It costs less than Users.
func (x *Index) Naming(ctx context.Context, target string) ([]string, error) {
	if err := x.Scan(ctx); err != nil {
		return nil, err
	}
	x.mu.Lock()
	u := x.users[target]
	if u != nil && u.sorted == nil {
		u.sorted = slices.Sorted(maps.Keys(u.paths))
	}
	var out []string
	if u != nil {
		out = slices.Clip(u.sorted)
	}
	x.mu.Unlock()
	return out, nil
}

// uses reports whether a file uses a directory or file by itself, and not only by a path that is relative to the units
// that include it.
func (x *Index) uses(path, target string) bool {
	x.mu.Lock()
	e := x.entries[path]
	per := e != nil && e.relative && x.included(path)
	x.mu.Unlock()
	if !per {
		return true
	}
	for via := range e.file.Paths {
		if !toUnit(e.file, via) {
			if dir, p := x.written(e.file, via); x.resolved(e.file, via, dir, p) == target {
				return true
			}
		}
	}
	return false
}

// Version returns a number that changes if a file appears or disappears, declares units or no longer does, or
// uses other directories or files. It also changes if a module call gets another name, or count or for_each, if
// a file makes its directory a root module, or if a unit gets a source or a dependency, and if the opposite happens.
// It changes if an included file searches for another file for each unit.
func (x *Index) Version(ctx context.Context) (int, error) {
	if err := x.Scan(ctx); err != nil {
		return 0, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.version, nil
}

// Linked returns another path of a file or directory: the path or a part of it is a symbolic link, or a symbolic link
// of the workspace leads to one of them. It is "" if there is none.
func (x *Index) Linked(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, link := range slices.Sorted(maps.Keys(x.links)) {
		to := x.links[link]
		if rest, ok := strings.CutPrefix(path, link); ok && (rest == "" || rest[0] == filepath.Separator) {
			return to + rest
		}
		if rest, ok := strings.CutPrefix(real, to); ok && (rest == "" || rest[0] == filepath.Separator) && link+rest != path {
			return link + rest
		}
	}
	return ""
}

// Target returns the directory or file to which a source or path refers, or "".
func (x *Index) Target(f *index.File, via string) string { return x.target(f, via) }

func (x *Index) target(f *index.File, via string) string {
	if first, next, chained := strings.Cut(via, " "); chained {
		g, next := x.chained(f, first, next)
		if g == nil {
			return ""
		}
		return x.target(g, next)
	}
	if x.PerUnit(f, via) {
		return ""
	}
	dir, p := x.written(f, via)
	return x.resolved(f, via, dir, p)
}

// chained returns the file in which the address next is, which the file f uses through the address first, or nil. A
// dependency of an included file is one of the unit.
func (x *Index) chained(f *index.File, first, next string) (*index.File, string) {
	if strings.HasPrefix(first, "include.") {
		if _, own := f.Paths[next]; own {
			return nil, ""
		}
		return f, next
	}
	to := x.target(f, first)
	if to == "" || index.KindOf(to) != index.Unit {
		return nil, ""
	}
	return x.file(to), next
}

// resolved returns the directory or file to which the source or path p of an address refers, relative to dir, or "".
func (x *Index) resolved(f *index.File, via, dir, p string) string {
	if p == "" {
		return ""
	}
	at := func(p string) string {
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		return x.files.Real(filepath.Clean(p))
	}
	if strings.HasPrefix(via, "local.") && index.KindOf(p) == index.Data {
		return at(p)
	}
	if f.Kind.OfModule() || f.Kind == index.Test {
		if module.IsLocal(p) {
			return at(p)
		}
		key := strings.TrimPrefix(via, "module.")
		if run, ok := strings.CutPrefix(via, "run."); ok {
			key = testrun.InstallKey(relative(dir, f.Path), run)
		}
		return installed(dir, key)
	}
	kind, _, _ := strings.Cut(via, ".")
	switch kind {
	case "terraform", "module", "unit", "stack":
		if !unit.LocalSource(p) {
			return ""
		}
		p, _, _ = strings.Cut(p, "?")
		root, sub := unit.SplitSource(p)
		return x.files.Real(filepath.Join(at(root), sub))
	}
	path := at(p)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return x.files.UnitFile(path)
	}
	return path
}

// toUnit reports whether a path of a file is relative to the unit, if a unit includes the file.
func toUnit(f *index.File, via string) bool {
	if f.Finds[via] != "" {
		return true
	}
	p := f.Paths[via]
	return p != "" && !filepath.IsAbs(p) && (via == "terraform" && unit.LocalSource(p) || isDependency(via))
}

// isDependency reports whether an address is that of a dependency block, or of an element of a dependencies block.
func isDependency(via string) bool {
	return strings.HasPrefix(via, "dependency.") || strings.HasPrefix(via, "dependencies.")
}

// PerUnit reports whether a path of a file refers to another directory for each unit that includes the file.
func (x *Index) PerUnit(f *index.File, via string) bool {
	if first, next, chained := strings.Cut(via, " "); chained {
		g, next := x.chained(f, first, next)
		return g != nil && x.PerUnit(g, next)
	}
	if f.Kind != index.Unit || index.IsDefault(f.Path) || !toUnit(f, via) {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.included(f.Path)
}

// included reports whether a unit includes a file. The caller holds mu.
func (x *Index) included(path string) bool {
	u := x.users[path]
	if u == nil {
		return false
	}
	for user := range u.paths {
		if includes(x.entries[user], path) {
			return true
		}
	}
	return false
}

// Including returns the paths of the unit files that include a file, sorted.
func (x *Index) Including(path string) (out []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for user := range x.users[path].all() {
		if includes(x.entries[user], path) {
			out = append(out, user)
		}
	}
	slices.Sort(out)
	return out
}

// includes reports whether a file includes another.
func includes(e *entry, path string) bool {
	return e != nil && slices.ContainsFunc(e.edges, func(g edge) bool { return g.to == path && strings.HasPrefix(g.via, "include.") })
}

// TargetFor is Target for a file that a unit includes: relative paths are relative to the unit.
func (x *Index) TargetFor(unitFile, f *index.File, via string) string {
	if x.PerUnit(f, via) {
		if name := f.Finds[via]; name != "" {
			return x.found(filepath.Dir(filepath.Dir(unitFile.Path)), name)
		}
		return x.resolved(f, via, filepath.Dir(unitFile.Path), f.Paths[via])
	}
	if to := x.target(f, via); to != "" {
		return to
	}
	return x.target(unitFile, via)
}

// found returns the path of the first indexed file with a name in a directory and its parents, or "".
func (x *Index) found(dir, name string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	for ; ; dir = filepath.Dir(dir) {
		if path := filepath.Join(dir, name); x.entries[path] != nil {
			return path
		}
		if filepath.Dir(dir) == dir {
			return ""
		}
	}
}

// Finding returns the paths of the files that search for a file with a name for each unit, and use an address of it.
func (x *Index) Finding(name, address string) (out []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for path := range x.relative {
		f := x.entries[path].file
		for i := range f.Names {
			if o := &f.Names[i]; o.Addr == address && f.Finds[o.Via] == name {
				out = append(out, path)
				break
			}
		}
	}
	slices.Sort(out)
	return out
}

// An inclusion contains the units that use directories and files through the relative paths of files that they
// include.
type inclusion struct {
	version int // of the index
	users   map[string][]string
}

// throughIncludes returns the inclusion of the index as it is now. It is computed again only if the version has
// changed, because a file may be included by thousands of units.
func (x *Index) throughIncludes() *inclusion {
	x.mu.Lock()
	kept, version := x.inclusion, x.version
	if kept != nil && kept.version == version {
		x.mu.Unlock()
		return kept
	}
	type part struct {
		file  *index.File
		units []*index.File
	}
	var parts []part
	for path := range x.relative {
		p := part{file: x.entries[path].file}
		for user := range x.users[path].all() {
			if e := x.entries[user]; includes(e, path) {
				p.units = append(p.units, e.file)
			}
		}
		parts = append(parts, p)
	}
	x.mu.Unlock()
	out := &inclusion{version, map[string][]string{}}
	for _, p := range parts {
		for _, name := range p.file.Finds {
			found := map[string]string{} // by directory
			for _, u := range p.units {
				dir := filepath.Dir(filepath.Dir(u.Path))
				to, known := found[dir]
				if !known {
					to = x.found(dir, name)
					found[dir] = to
				}
				if to != "" {
					out.users[to] = append(out.users[to], u.Path)
				}
			}
		}
		for via, text := range p.file.Paths {
			if p.file.Finds[via] != "" || !toUnit(p.file, via) {
				continue
			}
			known := map[string]string{} // by the directory that the path leaves from
			for _, u := range p.units {
				if _, own := u.Paths[via]; own && !strings.HasPrefix(via, "dependencies.") {
					continue
				}
				from, rest := filepath.Dir(u.Path), text
				for strings.HasPrefix(rest, "../") {
					from, rest = filepath.Dir(from), rest[len("../"):]
				}
				if rest != text {
					rest = "./" + rest // still a path
				}
				to, ok := known[from]
				if !ok {
					to = x.resolved(p.file, via, from, rest)
					known[from] = to
				}
				if to != "" {
					out.users[to] = append(out.users[to], u.Path)
				}
			}
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.inclusion = out
	return out
}

// all returns the paths. nil has none.
func (u *users) all() map[string]bool {
	if u == nil {
		return nil
	}
	return u.paths
}

// Written returns the source or path of an address as it is written in the file, in another file of its
// module, or in a file that the unit merges. It is "" if it is not known.
func (x *Index) Written(f *index.File, via string) string {
	if first, next, chained := strings.Cut(via, " "); chained {
		if f, via = x.chained(f, first, next); f == nil {
			return ""
		}
	}
	_, p := x.written(f, via)
	return p
}

// base returns the directory to which the paths in a file are relative.
func (x *Index) base(f *index.File) string {
	if f.Kind == index.Test {
		return x.tested(f) // the working directory of the test
	}
	return filepath.Dir(f.Path)
}

// written returns the source or path of an address as written, and the directory to which it is relative.
func (x *Index) written(f *index.File, via string) (dir, p string) {
	dir = x.base(f)
	p, own := f.Paths[via]
	kind, _, _ := strings.Cut(via, ".")
	switch {
	case f.Kind.OfModule() && (kind == "local" || kind == "module") && (!own || x.overridden(dir)):
		if last, ok := x.declared(dir, via); ok { // otherwise f is an older version
			p = last
		}
	case own:
	case f.Kind == index.Test && (kind == "local" || kind == "module"):
		p, _ = x.declared(dir, via)
	case f.Kind == index.Unit && (kind == "terraform" || kind == "dependency"):
		dir, p, _ = x.inherited(f, via, 0)
	}
	return dir, p
}

// overridden reports whether a directory contains override files.
func (x *Index) overridden(dir string) bool {
	x.mu.Lock()
	list := !x.done && !x.listed[dir]
	x.mu.Unlock()
	if list {
		return true // not known before its files are listed
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.overrides[dir] > 0
}

// declared returns the source or path of an address in the files of a module: that of the last file in load
// order that sets it. ok is false if none does.
func (x *Index) declared(dir, via string) (p string, ok bool) {
	x.mu.Lock()
	list := !x.done && !x.listed[dir]
	if list {
		x.listed[dir] = true
	}
	x.mu.Unlock()
	if list { // a request does not wait for the first walk
		x.Dir(dir)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var last *index.File
	for _, e := range x.dirs[dir] {
		f := e.file
		if _, own := f.Paths[via]; own && f.Kind.OfModule() && (last == nil || index.Overrides(f, last)) {
			last = f
		}
	}
	if last == nil {
		return "", false
	}
	return last.Paths[via], true
}

// maxMerged is the number of files that a unit may merge one through the other.
const maxMerged = 10

// inherited returns the path of an address in the files that a unit merges, and the directory to which it is
// relative. known is false if such a file is not known.
func (x *Index) inherited(f *index.File, via string, depth int) (dir, p string, known bool) {
	known = depth <= maxMerged
	if !known {
		return "", "", false
	}
	for _, merged := range f.Merges {
		to := x.target(f, merged)
		if to == "" {
			known = false
			continue
		}
		g := x.file(to)
		from := filepath.Dir(to)
		if strings.HasPrefix(merged, "include.") { // evaluated for the unit
			from = filepath.Dir(f.Path)
		}
		next, own := g.Paths[via]
		if !own {
			var ok bool
			if from, next, ok = x.inherited(g, via, depth+1); !ok {
				known = false
			}
		}
		if next != "" { // the last one counts
			dir, p = from, next
		} else if own {
			known = false
		}
	}
	return dir, p, known
}

// A Dependency is an edge from one unit file to another.
type Dependency struct {
	From, To string // paths of the unit files
	Via      string // such as "dependency.vpc"
}

// conditional reports whether a dependency block has the argument enabled, whose value may be false.
func conditional(f *index.File, via string) bool {
	return slices.ContainsFunc(f.Arguments, func(a index.Argument) bool { return a.Addr == via && a.Name == "enabled" })
}

// known returns a file with its edges. A file that is not open is returned as it was read last. It is nil if there is
// none.
func (x *Index) known(path string) *entry {
	if x.files.Buffer(path) != nil {
		x.file(path)
	}
	x.mu.Lock()
	e := x.entries[path]
	x.mu.Unlock()
	if e != nil {
		return e
	}
	x.file(path)
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.entries[path]
}

// dependencies returns the units on which a unit depends through dependency and dependencies blocks of its file and of
// those that it merges. A block with the argument enabled is left out.
func (x *Index) dependencies(path string) (out []Dependency) {
	own := x.known(path)
	if own == nil {
		return nil
	}
	seen := map[string]bool{}
	files := []*entry{own}
	for i := 0; i < len(files) && i < maxMerged; i++ {
		for _, g := range files[i].edges {
			switch {
			case !isDependency(g.via):
				if e := x.known(g.to); e != nil {
					files = append(files, e)
				}
			case seen[g.via]:
			case strings.HasPrefix(g.via, "dependencies."): // those of all files count
				to := g.to
				if i > 0 {
					to = x.TargetFor(own.file, files[i].file, g.via)
				}
				if to != "" {
					out = append(out, Dependency{path, to, g.via})
				}
			default:
				seen[g.via] = true
				to := g.to
				if i > 0 { // relative to the unit, if the file is included
					to = x.target(own.file, g.via)
				}
				if to != "" {
					out = append(out, Dependency{path, to, g.via})
				}
			}
		}
	}
	return out
}

// maxCycle is the number of units that are searched for a cycle.
const maxCycle = 2000

// Cycle returns the shortest chain of dependencies that leads from a unit back to it, or nil. It searches again
// only after a dependency of some unit has changed. A file that is not open counts as it was read last.
func (x *Index) Cycle(path string) []Dependency {
	for _, b := range x.files.Open() {
		if index.KindOf(b.Path) == index.Unit {
			x.file(b.Path)
		}
	}
	x.mu.Lock()
	found, ok := x.cycles[path]
	edges := x.edges
	x.mu.Unlock()
	if ok && found.edges == edges {
		return found.chain
	}
	chain := x.cycle(path)
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.cycles) >= maxResults {
		clear(x.cycles)
	}
	x.cycles[path] = cycle{edges, chain}
	return chain
}

func (x *Index) cycle(path string) []Dependency {
	before := map[string]Dependency{} // the edge by which a unit was reached first
	queue := []string{path}
	for i := 0; i < len(queue) && i < maxCycle; i++ {
		for _, d := range x.dependencies(queue[i]) {
			if _, seen := before[d.To]; seen {
				continue
			}
			before[d.To] = d
			if d.To != path {
				queue = append(queue, d.To)
				continue
			}
			chain := []Dependency{d}
			for chain[0].From != path {
				chain = slices.Insert(chain, 0, before[chain[0].From])
			}
			return chain
		}
	}
	return nil
}

// relative returns a path relative to a directory, with slashes.
func relative(dir, path string) string { return filepath.ToSlash(sys.RelativeTo(dir, path)) }

// Tested returns the directory of the module that a test file tests.
func (x *Index) Tested(f *index.File) string { return x.tested(f) }

// tested returns the directory of the module that a test file tests.
func (x *Index) tested(f *index.File) string {
	dir := filepath.Dir(f.Path)
	if filepath.Base(dir) == testDir {
		return filepath.Dir(dir)
	}
	return dir
}

// testDir is the name of the directory next to a module's files in which its tests are.
const testDir = "tests"

// installed returns the directory of an installed module, or "".
func installed(dir, call string) string {
	for _, m := range manifest(dir) {
		if m.Key == call {
			return filepath.Join(dir, m.Dir)
		}
	}
	return ""
}

// Resolve returns the symbol of an occurrence. ok is false if the module or file that it is in is not
// known.
func (x *Index) Resolve(f *index.File, o *index.Occurrence) (s Symbol, ok bool) {
	own := filepath.Dir(f.Path)
	if f.Kind == index.Unit || f.Kind == index.Stack || f.Kind == index.Rules || f.Kind == index.UnitValues {
		own = f.Path
	}
	if kind, _, _ := strings.Cut(o.Addr, "."); f.Kind == index.Data || kind == "run" || f.Kind == index.Test && kind == "provider" {
		own = f.Path
	} else if f.Kind == index.Test {
		own = x.tested(f)
	}
	if first, next, chained := strings.Cut(o.Via, " "); chained {
		g, next := x.chained(f, first, next)
		if g == nil {
			return s, false
		}
		return x.Resolve(g, &index.Occurrence{Addr: o.Addr, Via: next})
	}
	switch kind, _, _ := strings.Cut(o.Via, "."); kind {
	case "":
		switch {
		case f.Kind == index.Values:
			return x.setIn(f, o.Addr)
		case f.Kind == index.Unit && o.Role == index.Uses && strings.HasPrefix(o.Addr, "dependency."):
			return Symbol{x.declaring(f, o.Addr), o.Addr}, true
		}
		return Symbol{own, o.Addr}, true
	case "run": // a run without a module is about the module under test
		if _, other := f.Paths[o.Via]; !other {
			return Symbol{x.tested(f), o.Addr}, true
		}
		to := x.target(f, o.Via)
		return Symbol{to, o.Addr}, to != ""
	case "unit", "stack": // a value that a stack file gives
		to := x.target(f, o.Via)
		return Symbol{filepath.Join(to, unit.ValuesName), o.Addr}, to != ""
	case "terraform":
		return x.moduleOf(f, o.Addr)
	case "dependency":
		if to := x.target(f, o.Via); to != "" {
			return x.moduleOf(x.File(to), o.Addr)
		}
		return s, false
	default:
		to := x.target(f, o.Via)
		return Symbol{to, o.Addr}, to != ""
	}
}

// moduleOf returns the symbol of a variable or output of a unit's module.
func (x *Index) moduleOf(f *index.File, addr string) (Symbol, bool) {
	if to := x.target(f, "terraform"); to != "" {
		return Symbol{to, addr}, true
	}
	own := x.OwnModule(f)
	if own != "" && x.hasModule(own) {
		return Symbol{own, addr}, true
	}
	switch dirs := x.readers(f.Path); {
	case len(dirs) == 1 && dirs[0] != "":
		return Symbol{dirs[0], addr}, true
	case len(dirs) == 0 && own != "":
		return Symbol{own, addr}, true
	}
	return Symbol{}, false
}

// hasModule reports whether a directory contains files of a module. Before the first walk has ended, it returns true.
func (x *Index) hasModule(dir string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.dirs[dir] {
		if e.file.Kind.OfModule() {
			return true
		}
	}
	return !x.done
}

// setIn returns the symbol of a variable that a variable file sets: that of the module in its directory, or of the
// only module whose units read the file.
func (x *Index) setIn(f *index.File, addr string) (Symbol, bool) {
	dir := filepath.Dir(f.Path)
	if x.hasModule(dir) {
		return Symbol{dir, addr}, true
	}
	x.mu.Lock()
	var units []string
	if u := x.users[f.Path]; u != nil {
		units = slices.Sorted(maps.Keys(u.paths))
	}
	x.mu.Unlock()
	if overlay.IsValues(filepath.Base(f.Path)) {
		if unit := x.files.UnitFile(dir); x.files.Exists(unit) && !slices.Contains(units, unit) {
			units = append(units, unit)
		}
	}
	var one Symbol
	for _, path := range units {
		s, ok := x.moduleOf(x.file(path), addr)
		if !ok || one.Scope != "" && one != s {
			return Symbol{}, false
		}
		one = s
	}
	return one, one.Scope != ""
}

// declares reports whether a file declares an address.
func declares(f *index.File, addr string) bool {
	return slices.ContainsFunc(f.Names, func(o index.Occurrence) bool { return o.Addr == addr && o.Role == index.Declares })
}

// declaring returns the path of the file that declares an address which a unit file uses: the file itself, or one
// that it merges.
func (x *Index) declaring(f *index.File, addr string) string {
	if declares(f, addr) {
		return f.Path
	}
	for _, g := range x.Merged(f)[1:] {
		if declares(g, addr) {
			return g.Path
		}
	}
	return f.Path
}

// Merged returns a unit file and the files that it merges, also through others.
func (x *Index) Merged(f *index.File) []*index.File {
	out := []*index.File{f}
	for i := 0; i < len(out) && len(out) <= maxMerged; i++ {
		for _, via := range out[i].Merges {
			if to := x.target(out[i], via); to != "" && !slices.ContainsFunc(out, func(g *index.File) bool { return g.Path == to }) {
				out = append(out, x.file(to))
			}
		}
	}
	return out
}

// Merging returns the paths of the unit files that merge a file, also through others, sorted.
func (x *Index) Merging(path string) (out []string) {
	x.merging(path, func(user string) bool {
		out = append(out, user)
		return true
	})
	slices.Sort(out)
	return out
}

// merging calls found for each unit file that merges a file, also through others, until found returns false.
func (x *Index) merging(path string, found func(user string) bool) {
	seen := map[string]bool{path: true}
	for queue := []string{path}; len(queue) > 0; queue = queue[1:] {
		for _, user := range x.mergedIn(queue[0]) {
			if seen[user] {
				continue
			}
			seen[user] = true
			if !found(user) {
				return
			}
			queue = append(queue, user)
		}
	}
}

// mergedIn returns the paths of the unit files that merge a file themselves.
func (x *Index) mergedIn(path string) (out []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	u := x.users[path]
	if u == nil {
		return nil
	}
	for user := range u.paths {
		if e := x.entries[user]; e != nil && slices.ContainsFunc(e.edges, func(g edge) bool { return g.to == path && slices.Contains(e.file.Merges, g.via) }) {
			out = append(out, user)
		}
	}
	return out
}

// MergedModules returns the directories of the modules of the units that merge a file. "" means a module that is not
// known.
func (x *Index) MergedModules(path string) []string { return x.mergedModules(path, math.MaxInt) }

// mergedModules returns at most limit of the directories that MergedModules returns.
func (x *Index) mergedModules(path string, limit int) (out []string) {
	x.merging(path, func(user string) bool {
		e := x.known(user) // reading thousands of files again would take too long
		if e == nil || !index.IsDefault(user) {
			return true
		}
		dir := e.module
		if dir == "" {
			dir = cmp.Or(x.target(e.file, "terraform"), x.OwnModule(e.file))
		}
		if !slices.Contains(out, dir) {
			out = append(out, dir)
		}
		return len(out) < limit
	})
	return out
}

// severalModules is the number of modules from which on a file's inputs belong to no single module. An estate may have
// thousands of units that merge the file, so that no others are searched.
const severalModules = 2

// readers returns at most severalModules of the directories that MergedModules returns, and keeps them.
func (x *Index) readers(path string) []string {
	x.mu.Lock()
	version := x.version
	if x.read == nil || x.readVersion != version {
		x.read, x.readVersion = map[string][]string{}, version
	}
	out, known := x.read[path]
	x.mu.Unlock()
	if known {
		return out
	}
	out = x.mergedModules(path, severalModules)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.readVersion == version {
		x.read[path] = out
	}
	return out
}

// OwnModule returns the directory of a unit file if the module of the unit is there, or "": the unit and the
// files that it merges have no source.
func (x *Index) OwnModule(f *index.File) string {
	if _, written := f.Paths["terraform"]; written || !index.IsDefault(f.Path) {
		return ""
	}
	if _, p, known := x.inherited(f, "terraform", 0); p != "" || !known {
		return ""
	}
	return filepath.Dir(f.Path)
}

// Find returns the occurrences of a symbol in its own module or file, without the workspace.
func (x *Index) Find(s Symbol) []Place {
	var files []*index.File
	if index.KindOf(s.Scope) != index.Other {
		files = []*index.File{x.File(s.Scope)}
	} else {
		files = x.moduleFiles(s.Scope)
	}
	var out []Place
	for _, f := range files {
		out = append(out, x.in(f, s)...)
	}
	return out
}

// moduleFiles returns the files of a module, and its tests.
func (x *Index) moduleFiles(dir string) []*index.File {
	files := x.Dir(dir)
	for _, f := range x.Dir(filepath.Join(dir, testDir)) {
		if f.Kind == index.Test {
			files = append(files, f)
		}
	}
	return files
}

// loaded returns the files of a module and its tests, as they were read last, sorted by path.
func (x *Index) loaded(dir string) (out []*index.File) {
	x.mu.Lock()
	for _, at := range []string{dir, filepath.Join(dir, testDir)} {
		for _, e := range x.dirs[at] {
			if at == dir || e.file.Kind == index.Test {
				out = append(out, e.file)
			}
		}
	}
	x.mu.Unlock()
	slices.SortFunc(out, func(a, b *index.File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// in returns the occurrences of a symbol in a file.
func (x *Index) in(f *index.File, s Symbol) (out []Place) {
	for i := range f.Names {
		o := &f.Names[i]
		if o.Addr != s.Addr {
			continue
		}
		if got, ok := x.Resolve(f, o); ok && got == s {
			out = append(out, Place{f, o})
		}
	}
	return out
}

// Everywhere returns all occurrences of a symbol in the workspace.
func (x *Index) Everywhere(ctx context.Context, s Symbol) ([]Place, error) {
	out := x.Find(s)
	seen := map[string]bool{}
	for _, p := range out {
		seen[p.File.Path] = true
	}
	queue := []string{s.Scope, filepath.Join(s.Scope, unit.DefaultName), filepath.Join(s.Scope, unit.DefaultJSONName)}
	if strings.HasPrefix(s.Addr, "values.") { // stacks name the directory of the unit
		queue = append(queue, filepath.Dir(s.Scope))
	}
	done := map[string]bool{}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if done[at] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		done[at] = true
		users, err := x.Users(ctx, at)
		if err != nil {
			return nil, err
		}
		for _, path := range users {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			f := x.File(path)
			files := []*index.File{f}
			switch {
			case f.Kind.OfModule(): // other files use the call or the local value
				files = append(files, x.loaded(filepath.Dir(path))...)
			case f.Kind == index.Unit && strings.HasPrefix(s.Addr, "var."): // files that it merges set inputs
				files = append(x.Merged(f), x.variableFiles(f)...)
			}
			for _, f := range files {
				if !seen[f.Path] {
					seen[f.Path] = true
					out = append(out, x.in(f, s)...)
				}
			}
			// The outputs of a unit's module are used by the units that depend on the unit, or that import a file
			// which does. Units that merge a file have its source.
			if f.Kind == index.Unit && (!index.IsDefault(path) || strings.HasPrefix(s.Addr, "output.") && x.passes(f, s)) {
				queue = append(queue, path)
			}
		}
	}
	return out, nil
}

// passes reports whether an output is one of a unit file, or of a dependency or module in the file.
func (x *Index) passes(f *index.File, output Symbol) bool {
	if x.target(f, "terraform") == output.Scope {
		return true
	}
	for via := range f.Paths {
		if kind, _, _ := strings.Cut(via, "."); kind == "dependency" || kind == "module" {
			if s, ok := x.Resolve(f, &index.Occurrence{Addr: output.Addr, Via: via}); ok && s == output {
				return true
			}
		}
	}
	return false
}

// variableFiles returns the variable files of a unit: those that it names, and those in its directory.
func (x *Index) variableFiles(f *index.File) (out []*index.File) {
	for via := range f.Paths {
		if to := ""; strings.HasPrefix(via, "variables.") {
			if to = x.target(f, via); to != "" && index.KindOf(to) == index.Values {
				out = append(out, x.file(to))
			}
		}
	}
	for _, g := range x.loaded(filepath.Dir(f.Path)) {
		if g.Kind == index.Values {
			out = append(out, g)
		}
	}
	return out
}

// Unresolved returns the occurrences of an address, through a module or file that is not known, that
// may mean a symbol.
func (x *Index) Unresolved(ctx context.Context, addr string) ([]Place, error) {
	all, err := x.All(ctx)
	var out []Place
	for _, f := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := range f.Names {
			if o := &f.Names[i]; o.Addr == addr && (o.Via != "" || f.Kind == index.Values) {
				if _, ok := x.Resolve(f, o); !ok {
					out = append(out, Place{f, o})
				}
			}
		}
	}
	return out, err
}
