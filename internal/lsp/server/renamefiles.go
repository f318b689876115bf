package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/unit"
)

// # Renaming and moving files
//
// Before the client renames files or directories, the server returns the edits that keep every path in
// the workspace: a path is evaluated where its file is now, and where its file will be. If the second
// result is not the new path of the first, the constant part of the expression is replaced. What cannot
// be expressed this way is reported as a warning, and the client renames the files anyway.

// maxWarnings is the number of warnings that are shown for one renaming.
const maxWarnings = 5

// renameFilter selects the files and directories whose renaming the client reports.
var renameFilter = map[string]any{"filters": []any{map[string]any{"scheme": "file", "pattern": map[string]any{"glob": "**"}}}}

// A move is one renamed file or directory.
type move struct{ from, to string }

// moves are the renamed files and directories of one request.
type moves []move

// to returns the new path of a file or directory.
func (ms moves) to(path string) string {
	best, out := -1, path
	for _, m := range ms {
		if rest, ok := below(path, m.from); ok && len(m.from) > best {
			best, out = len(m.from), filepath.Join(m.to, rest)
		}
	}
	return out
}

// below returns the part of path below dir. ok is false if path is neither dir nor below it.
func below(path, dir string) (rest string, ok bool) {
	if path == dir {
		return "", true
	}
	return strings.CutPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator)) // a root ends with a separator
}

// renaming computes the edits of one request.
type renaming struct {
	s        *Server
	moves    moves
	calls    map[string][]string // the directories of the modules that a module calls, by its directory
	changes  map[string][]protocol.TextEdit
	warnings []string
}

func (s *Server) willRenameFiles(ctx context.Context, p *protocol.RenameFilesParams) (*protocol.WorkspaceEdit, error) {
	before := s.Session.Files.Changes()
	r := &renaming{s: s, calls: map[string][]string{}, changes: map[string][]protocol.TextEdit{}}
	var words [][]byte // each file that refers to a renamed path contains one of them
	for _, f := range p.Files {
		from, to := document.Path(f.OldURI), document.Path(f.NewURI)
		if from == "" || to == "" || from == to {
			continue
		}
		r.moves = append(r.moves, move{from, to})
		words = append(words, []byte(filepath.Base(from)), []byte(filepath.Base(to)))
		if filepath.Base(from) == unit.DefaultName {
			words = append(words, []byte(filepath.Base(filepath.Dir(from))), []byte("find_in_parent_folders()"))
		}
	}
	if len(r.moves) == 0 {
		return nil, nil
	}
	s.Session.Index.Invalidate() // a file that changed a moment ago counts too
	all, err := s.Session.Index.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !s.inWorkspace(f.Path) {
			continue
		}
		text := s.Session.Files.Text(f.Path)
		if r.moves.to(f.Path) == f.Path && !slices.ContainsFunc(words, func(w []byte) bool { return bytes.Contains(text.Bytes, w) }) && !r.leaves(f) {
			continue
		}
		r.file(f, text)
		r.override(f, all)
		if to := r.moves.to(f.Path); to != f.Path && s.Session.IsUnit(f.Path) && filepath.Dir(to) != filepath.Dir(f.Path) {
			r.warn("%s is a unit. If its state is stored under the path of the unit, move the state too.", r.name(filepath.Dir(f.Path)))
		}
	}
	r.show()
	if len(r.changes) == 0 {
		return nil, nil
	}
	return s.workspaceEdit(r.changes, before)
}

// didRenameFiles makes the next request read the workspace again.
func (s *Server) didRenameFiles(_ context.Context, p *protocol.RenameFilesParams) {
	s.Session.Index.Invalidate()
	for _, f := range p.Files {
		s.outdated(s.path(f.NewURI))
	}
}

func (r *renaming) warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// show sends the warnings to the user.
func (r *renaming) show() {
	slices.Sort(r.warnings)
	r.warnings = slices.Compact(r.warnings)
	if n := len(r.warnings); n > maxWarnings {
		r.warnings = append(r.warnings[:maxWarnings], fmt.Sprintf("There are %d more warnings.", n-maxWarnings))
	}
	if len(r.warnings) > 0 {
		_ = r.s.rpc.Notify(r.s.ctx, "window/showMessage", &protocol.ShowMessageParams{Type: protocol.MessageTypeWarning, Message: strings.Join(r.warnings, "\n")}) // fails only if the client is gone
	}
}

// leaves reports whether a module that is part of a package in the file moves: the package of the module that
// the file names may have to grow, although that module itself does not move.
func (r *renaming) leaves(f *index.File) bool {
	if f.Kind != index.Unit && f.Kind != index.Stack {
		return false
	}
	for via, source := range f.Paths {
		if _, sub := unit.SplitSource(source); sub == "" || !unit.LocalSource(source) {
			continue
		}
		target := r.s.Session.Index.Target(f, via)
		if slices.ContainsFunc(r.called(target), func(d string) bool { return r.moves.to(d) != d }) {
			return true
		}
	}
	return false
}

// file adds the edits of one file.
func (r *renaming) file(f *index.File, text *document.Text) {
	switch {
	case f.Kind.OfModule(), f.Kind == index.Test, f.Kind == index.Unit, f.Kind == index.Stack:
	case index.IsJSON(f.Path):
		for _, m := range r.moves {
			if bytes.Contains(text.Bytes, []byte("/"+filepath.Base(m.from))) {
				r.warn("%s may contain the path of %s, and is not updated.", r.name(f.Path), r.name(m.from))
			}
		}
		return
	default:
		return // without paths
	}
	body, broken := index.Parse(f.Path, text.Bytes)
	if body == nil || broken {
		r.warn("%s has a syntax error, so that its paths are not updated.", r.name(f.Path))
		return
	}
	e := &fileRenaming{renaming: r, file: f, body: body, text: text, done: map[int]bool{}}
	e.oldDir, e.newDir = filepath.Dir(f.Path), filepath.Dir(r.moves.to(f.Path))
	e.old = index.Paths{Dir: e.oldDir, Find: r.found, Module: f.Kind.OfModule() || f.Kind == index.Test}
	e.new = index.Paths{Dir: e.newDir, Find: e.findAfter, Module: e.old.Module, Local: e.localAfter}
	if !e.old.Module {
		e.finds()
	}
	for _, p := range index.PathRefs(f.Kind, body) {
		e.path(p)
	}
}

// name returns a path as warnings show it.
func (r *renaming) name(path string) string {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	for _, root := range r.s.roots {
		if rest, ok := below(path, root); ok && rest != "" {
			return filepath.ToSlash(rest)
		}
	}
	return path
}

// found returns the path of a file in the parents of a directory, or "".
func (r *renaming) found(dir, name string) string {
	for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
		if path := filepath.Join(at, name); r.s.Session.Files.Exists(path) {
			return path
		}
		if filepath.Dir(at) == at {
			return ""
		}
	}
}

// existsAfter reports whether a file exists after the renaming.
func (r *renaming) existsAfter(path string) bool {
	for _, m := range r.moves {
		if rest, ok := below(path, m.to); ok && r.s.Session.Files.Exists(filepath.Join(m.from, rest)) {
			return true
		}
	}
	return r.moves.to(path) == path && r.s.Session.Files.Exists(path)
}

// fileRenaming computes the edits of one file.
type fileRenaming struct {
	*renaming
	file           *index.File
	body           *hclsyntax.Body
	text           *document.Text
	oldDir, newDir string
	old, new       index.Paths
	done           map[int]bool // offsets of the edits
}

func (e *fileRenaming) edit(start, end int, text string) {
	if e.done[start] {
		return
	}
	e.done[start] = true
	if index.IsJSON(e.file.Path) {
		text = inJSON(text)
	}
	uri := document.URI(e.file.Path)
	e.changes[uri] = append(e.changes[uri], protocol.TextEdit{Range: e.text.Range(start, end, e.s.encoding), NewText: text})
}

// findAfter returns the file that find_in_parent_folders finds after the renaming and the edits.
func (e *fileRenaming) findAfter(dir, name string) string {
	if target := e.found(e.oldDir, name); target != "" {
		if to := e.moves.to(target); e.reachable(to) {
			return to
		}
	}
	for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
		if path := filepath.Join(at, name); e.existsAfter(path) {
			return path
		}
		if filepath.Dir(at) == at {
			return ""
		}
	}
}

// reachable reports whether find_in_parent_folders finds a file by its name after the renaming.
func (e *fileRenaming) reachable(path string) bool {
	for at := filepath.Dir(e.newDir); ; at = filepath.Dir(at) {
		if at == filepath.Dir(path) {
			return true
		}
		if filepath.Dir(at) == at || e.existsAfter(filepath.Join(at, filepath.Base(path))) {
			return false
		}
	}
}

// localAfter returns the new value of a local value whose own text is edited.
func (e *fileRenaming) localAfter(name, value string) (string, bool) {
	for _, b := range e.body.Blocks {
		if a := b.Body.Attributes[name]; b.Type == "locals" && a != nil {
			if old := e.old.Value(a.Expr, e.body); filepath.IsAbs(old) && e.moves.to(filepath.Clean(old)) != filepath.Clean(old) {
				if _, _, ok := index.Literal(a.Expr); ok {
					return e.moves.to(filepath.Clean(old)), true
				}
			}
		}
	}
	return value, false
}

// finds edits the names of files in calls of find_in_parent_folders.
func (e *fileRenaming) finds() {
	calls, names := index.FindCalls(e.body)
	for i, call := range calls {
		if names[i] == "" {
			continue
		}
		target := e.found(e.oldDir, names[i])
		if target == "" {
			continue
		}
		to := e.moves.to(target)
		rel, base := names[i], filepath.Base(to)
		switch {
		case to == target && e.newDir == e.oldDir, !e.reachable(to) || strings.Contains(rel, "/"):
			continue // path handles the second, if the call is the whole path
		case base == rel:
		case len(call.Args) == 0:
			e.edit(call.OpenParenRange.End.Byte, call.OpenParenRange.End.Byte, `"`+escape(base)+`"`)
		default:
			r := call.Args[0].Range()
			e.edit(r.Start.Byte, r.End.Byte, `"`+escape(base)+`"`)
		}
	}
}

// path edits one path.
func (e *fileRenaming) path(p index.PathRef) {
	if wrap, ok := p.Expr.(*hclsyntax.TemplateWrapExpr); ok { // in JSON syntax
		p.Expr = wrap.Wrapped
	}
	value := e.old.Value(p.Expr, e.body)
	if value == "" {
		e.unknown(p)
		return
	}
	if e.perUnit(p, value) {
		return
	}
	base := e.oldDir
	if e.file.Kind == index.Test && filepath.Base(base) == "tests" {
		base = filepath.Dir(base)
	}
	at := func(s string) string {
		if filepath.IsAbs(s) {
			return filepath.Clean(s)
		}
		return filepath.Join(base, s)
	}
	path, query, sub := value, "", ""
	switch p.Role {
	case index.ModuleSource:
		if !module.IsLocal(value) {
			return
		}
	case index.UnitSource:
		if !unit.LocalSource(value) {
			return
		}
		if i := strings.IndexByte(path, '?'); i >= 0 {
			path, query = path[:i], path[i:]
		}
		path, sub = unit.SplitSource(path)
	case index.FilePath, index.LocalPath:
		if e.old.Module && !filepath.IsAbs(value) {
			return // relative to the working directory
		}
		if p.Role == index.LocalPath && !filepath.IsAbs(value) {
			return // the path that uses it is edited
		}
	}
	root := at(path)
	target := filepath.Join(root, sub)
	want := e.target(target, p.Role)
	wantRoot := e.moves.to(root)
	if sub != "" { // the package must contain what the module calls
		for _, d := range append([]string{target}, e.called(target)...) {
			_, before := below(d, root)
			if _, after := below(e.moves.to(d), wantRoot); before && !after {
				wantRoot = common(wantRoot, e.moves.to(d))
			}
		}
	}
	newBase := e.moves.to(base)
	if e.file.Kind != index.Test {
		newBase = e.newDir
	}
	now := func(s string) string {
		if filepath.IsAbs(s) {
			return filepath.Clean(s)
		}
		return filepath.Join(newBase, s)
	}
	if after := e.new.Value(p.Expr, e.body); after != "" {
		if i := strings.IndexByte(after, '?'); p.Role == index.UnitSource && i >= 0 {
			after = after[:i]
		}
		r, s := after, ""
		if p.Role == index.UnitSource {
			r, s = unit.SplitSource(after)
		}
		if _, contains := below(wantRoot, now(r)); filepath.Join(now(r), s) == want && (sub == "" || contains) {
			return
		}
	}
	text, before, ok := index.Literal(p.Expr)
	if !ok {
		if call, is := p.Expr.(*hclsyntax.FunctionCallExpr); is && call.Name == "find_in_parent_folders" {
			r := call.Range()
			e.edit(r.Start.Byte, r.End.Byte, `"`+escape(relative(newBase, want, false))+`"`)
			return
		}
		if want != target || newBase != base {
			e.warn("%s, line %d: the path to %s cannot be updated.", e.name(e.file.Path), p.Expr.Range().Start.Line, e.name(target))
		}
		return
	}
	from, dot := newBase, p.Role == index.ModuleSource || p.Role == index.UnitSource || strings.HasPrefix(value, "./")
	lead := ""
	if before != nil {
		from, dot, lead = e.new.Value(before, e.body), false, "/"
		if from == "" {
			e.warn("%s, line %d: the path to %s cannot be updated.", e.name(e.file.Path), p.Expr.Range().Start.Line, e.name(target))
			return
		}
		from = now(from)
	}
	var to string
	switch {
	case before == nil && filepath.IsAbs(path):
		to = filepath.ToSlash(wantRoot)
	default:
		to = lead + relative(from, wantRoot, dot)
		if to == "/." {
			to = ""
		}
	}
	if sub != "" {
		to += "//"
		if rest := relative(wantRoot, want, false); rest != "." {
			to += rest
		}
	}
	if before != nil && bytes.HasPrefix(e.text.Bytes[text.Start.Byte:text.End.Byte], []byte("//")) { // the package is the expression before
		if _, contains := below(wantRoot, from); !contains {
			to = "/" + relative(from, wantRoot, false) + "//" + relative(wantRoot, want, false)
		} else {
			to = "//" + relative(from, want, false)
		}
	}
	e.edit(text.Start.Byte, text.End.Byte, e.literal(to+query, p.Expr))
}

// perUnit reports whether a path is relative to each unit that includes the file. It is not edited, because the new
// path may be right for some units only. It warns if the path leads to another directory than before.
func (e *fileRenaming) perUnit(p index.PathRef, value string) bool {
	toUnit := !filepath.IsAbs(value) && (p.Role == index.UnitPath || p.Role == index.UnitSource && unit.LocalSource(value))
	if e.file.Kind != index.Unit || index.IsDefault(e.file.Path) || !toUnit {
		return false
	}
	units := e.s.Session.Index.Including(e.file.Path)
	for _, path := range units {
		source, _, _ := strings.Cut(value, "?")
		root, sub := unit.SplitSource(source)
		dir, rest := filepath.Dir(path), filepath.Join(root, sub)
		if target := filepath.Join(dir, rest); e.moves.to(target) != filepath.Join(filepath.Dir(e.moves.to(path)), rest) {
			e.warn("%s, line %d: the path is relative to each unit that includes the file, such as %s, and is not updated.", e.name(e.file.Path), p.Expr.Range().Start.Line, e.name(path))
			break
		}
	}
	return len(units) > 0
}

// target returns the path that a reference must name after the renaming.
func (e *fileRenaming) target(path string, role index.PathRole) string {
	to := e.moves.to(path)
	if role != index.UnitPath || e.moves.to(filepath.Join(path, unit.DefaultName)) == filepath.Join(to, unit.DefaultName) {
		return to
	}
	// The unit file itself is renamed. A directory means its default name.
	file := e.moves.to(filepath.Join(path, unit.DefaultName))
	if filepath.Base(file) == unit.DefaultName {
		return filepath.Dir(file)
	}
	return file
}

// called returns the directories of the local modules that a module calls, also through others.
func (r *renaming) called(dir string) []string {
	if known, ok := r.calls[dir]; ok {
		return known
	}
	var out []string
	seen := map[string]bool{dir: true}
	for queue := []string{dir}; len(queue) > 0; queue = queue[1:] {
		for _, f := range r.s.Session.Index.Dir(queue[0]) {
			for via, source := range f.Paths {
				if to := r.s.Session.Index.Target(f, via); f.Kind.OfModule() && module.IsLocal(source) && !seen[to] {
					seen[to] = true
					out, queue = append(out, to), append(queue, to)
				}
			}
		}
	}
	r.calls[dir] = out
	return out
}

// unknown warns about a path that cannot be computed, if its text may name a renamed path.
func (e *fileRenaming) unknown(p index.PathRef) {
	if p.Role == index.LocalPath {
		return
	}
	r := p.Expr.Range()
	for _, m := range e.moves {
		if bytes.Contains(e.text.Bytes[r.Start.Byte:r.End.Byte], []byte("/"+filepath.Base(m.from))) {
			e.warn("%s, line %d: the path may lead to %s. It is not known from the files, and is not updated.", e.name(e.file.Path), r.Start.Line, e.name(m.from))
		}
	}
}

// common returns the directory that contains two paths.
func common(a, b string) string {
	for {
		if _, ok := below(b, a); ok || filepath.Dir(a) == a {
			return a
		}
		a = filepath.Dir(a)
	}
}

// relative returns the path from a directory, with slashes. dot makes it begin with ./ or ../.
func relative(from, to string, dot bool) string {
	rel, err := filepath.Rel(from, to)
	if err != nil {
		return filepath.ToSlash(to) // on another drive
	}
	rel = filepath.ToSlash(rel)
	if dot && rel != "." && rel != ".." && !strings.HasPrefix(rel, "../") {
		return "./" + rel
	}
	if dot && (rel == "." || rel == "..") {
		return rel + "/"
	}
	return rel
}

// literal returns a path as the text of the template x.
func (e *fileRenaming) literal(path string, x hclsyntax.Expression) string {
	inside := bytes.HasPrefix(e.text.Bytes[x.Range().Start.Byte:], []byte(`\"`)) // a quoted template in the string of a JSON file
	if inside || !index.IsJSON(e.file.Path) {
		return escape(path)
	}
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(path)
}

// inJSON returns a text as the inner part of a string in JSON.
func inJSON(text string) string {
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	_ = out.Encode(text) // a strings.Builder returns no error
	quoted := strings.TrimSuffix(b.String(), "\n")
	return quoted[1 : len(quoted)-1]
}

// escape returns a path as the text of a quoted template.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "${", "$${", "%{", "%%{").Replace(path)
}

// override warns if the renaming of a file changes the order in which the files of its module are
// merged.
func (r *renaming) override(f *index.File, all []*index.File) {
	to := r.moves.to(f.Path)
	if to == f.Path || !f.Kind.OfModule() {
		return
	}
	after := index.Of(to, nil, nil)
	switch {
	case !after.Kind.OfModule():
		r.warn("%s is no longer part of its module.", r.name(f.Path))
	case f.Override && !after.Override:
		r.warn("%s is no longer an override file: blocks that it has in common with other files become errors.", r.name(f.Path))
	case !f.Override && after.Override:
		r.warn("%s becomes an override file: its blocks change those of other files, and a block that is in no other file is an error.", r.name(f.Path))
	case f.Override:
		if slices.ContainsFunc(r.moves, func(m move) bool { return m.from == f.Path }) && filepath.Dir(to) != filepath.Dir(f.Path) {
			r.warn("%s is an override file, and no longer overrides the files of its directory.", r.name(f.Path))
			return
		}
		for _, g := range all {
			if !g.Override || g.Path == f.Path || filepath.Dir(g.Path) != filepath.Dir(f.Path) || filepath.Dir(r.moves.to(g.Path)) != filepath.Dir(to) {
				continue
			}
			if r.moves.to(g.Path) != g.Path && g.Path < f.Path {
				continue // reported for g
			}
			if (f.Path < g.Path) != (to < r.moves.to(g.Path)) && sameArgument(f, g) {
				r.warn("%s and %s set the same argument. After the renaming, the other one counts.", r.name(f.Path), r.name(g.Path))
			}
		}
	}
}

// sameArgument reports whether two files set the same argument of a block, or the same local value.
func sameArgument(a, b *index.File) bool {
	set := map[string]bool{}
	for _, x := range a.Arguments {
		set[x.Addr+" "+x.Name] = !x.Inner
	}
	local := func(o index.Occurrence) bool { return o.Role == index.Declares && strings.HasPrefix(o.Addr, "local.") }
	for _, o := range a.Names {
		set[o.Addr] = set[o.Addr] || local(o)
	}
	return slices.ContainsFunc(b.Arguments, func(x index.Argument) bool { return !x.Inner && set[x.Addr+" "+x.Name] }) ||
		slices.ContainsFunc(b.Names, func(o index.Occurrence) bool { return local(o) && set[o.Addr] })
}
