package server

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/index"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// # Viewpoints
//
// A file that several units read has no values of its own. It is seen from one of these units: the one
// that the user chose, or the nearest. A module that others call is seen from a unit or root module, through the
// calls that lead to it: the one that the user chose, or the nearest. The user can also choose to see it alone.
// The list of viewpoints is kept until the index has another version, since most requests need it.

// A view is a viewpoint of a file. The zero view means that a module is seen alone.
type view struct {
	at    string // path of the unit file, or of the directory of the root module
	calls string // the calls from there to the module of the file, such as "module.app.module.inner"; "" means none
}

// viewOf returns the view that a URI names: a unit or a directory, with the calls as its fragment.
func viewOf(uri string) view {
	at, fragment, _ := strings.Cut(uri, "#")
	calls, err := url.PathUnescape(fragment)
	if err != nil {
		calls = fragment
	}
	return view{document.Path(at), calls}
}

func (v view) uri() string {
	switch {
	case v.at == "":
		return ""
	case v.calls == "":
		return document.URI(v.at)
	}
	return document.URI(v.at) + "#" + (&url.URL{Fragment: v.calls}).EscapedFragment()
}

// dir returns the directory of the unit or root module.
func (v view) dir() string {
	if v.isUnit() {
		return filepath.Dir(v.at)
	}
	return v.at
}

// withoutKeys returns the view with the names of the calls only, without the keys of instances.
func (v view) withoutKeys() view {
	if !strings.Contains(v.calls, "[") {
		return v
	}
	var names []string
	for _, step := range addr.ModuleInstance(v.calls).Steps() {
		names = append(names, "module."+step.Name)
	}
	return view{v.at, strings.Join(names, ".")}
}

// isUnit reports whether the view is from a unit.
func (v view) isUnit() bool { return index.KindOf(v.at) == index.Unit }

// address returns the address, as explain takes it at the view, of an address in the module of the file.
func (v view) address(a string) string {
	if v.calls == "" {
		return a
	}
	return v.calls + "." + a
}

// Limits of the list of viewpoints.
const (
	maxViewpoints = 1000  // viewpoints that are listed
	maxCalls      = 10    // module calls that lead from a unit to a module
	maxChains     = 20000 // chains of calls that are followed
	maxExpanded   = 50    // viewpoints whose module calls are evaluated, because they have count or for_each
)

// moduleOf returns the directory of the module that a file is part of, or "".
func moduleOf(path string) string {
	switch index.KindOf(path) {
	case index.Module, index.JSON, index.Values:
		return filepath.Dir(path)
	}
	return ""
}

// unitsOf returns the paths of the units that read a file, the nearest first. A unit file reads itself.
// For the file of a module, it returns the units of the module.
func (s *Server) unitsOf(ctx context.Context, path string) []string {
	all := s.readersOf(ctx, path)
	slices.SortFunc(all, reader.compare)
	out := make([]string, len(all))
	for i, r := range all {
		out[i] = r.unit
	}
	return slices.Compact(out)
}

// A reader is a unit that reads a file.
type reader struct {
	unit     string // path of the unit file
	distance int    // from the file
}

// compare orders readers by their distance.
func (r reader) compare(other reader) int {
	return cmp.Or(cmp.Compare(r.distance, other.distance), strings.Compare(r.unit, other.unit))
}

// readersOf returns the units of unitsOf in no order. It may contain a unit twice. A file may have
// thousands of readers, and most requests need only the nearest.
func (s *Server) readersOf(ctx context.Context, path string) (out []reader) {
	if index.KindOf(path) == index.UnitValues {
		if at := s.Session.UnitFile(filepath.Dir(path)); s.Session.Files.Exists(at) {
			return []reader{{unit: at}}
		}
		return nil
	}
	if s.Session.IsUnit(path) {
		for i, at := range s.generatedFrom(ctx, path) {
			out = append(out, reader{at, i})
		}
		if len(out) > 0 {
			return out
		}
		return []reader{{unit: path}}
	}
	dir := moduleOf(path)
	path = cmp.Or(dir, path)
	parent, _ := filepath.Split(path)
	add := func(unit string) { out = append(out, reader{unit, distance(parent, unit)}) }
	if dir != "" {
		if own := s.ownUnit(dir); own != "" {
			add(own)
		}
	}
	parts := []string{path} // files whose readers are not known yet
	for i := 0; i < len(parts) && len(out) < maxViewpoints; i++ {
		users, err := s.Session.Index.Users(ctx, parts[i])
		if err != nil {
			return nil
		}
		for _, u := range users {
			switch {
			case index.IsDefault(u):
				add(u)
			case index.KindOf(u) != index.Unit:
			case s.Session.IsUnit(u):
				add(u)
			case !slices.Contains(parts, u):
				parts = append(parts, u)
			}
		}
	}
	return out
}

// distance returns the number of separators in the relative path from a directory, whose path ends with a
// separator, to a file. Both paths are absolute.
func distance(dir, file string) int {
	same := 0 // length of the path of the nearest directory that contains both
	for i := 0; i < len(dir) && i < len(file) && dir[i] == file[i]; i++ {
		if os.IsPathSeparator(dir[i]) {
			same = i + 1
		}
	}
	const separator = string(filepath.Separator)
	return strings.Count(dir[same:], separator) + strings.Count(file[same:], separator)
}

// generatedFrom returns the paths of the units that stacks generate from a unit file, which lacks the
// values that they give.
func (s *Server) generatedFrom(ctx context.Context, path string) (out []string) {
	if s.Session.Files.Exists(filepath.Join(filepath.Dir(path), unit.ValuesName)) {
		return nil
	}
	uses := slices.ContainsFunc(s.Session.Index.File(path).Names, func(o index.Occurrence) bool { return o.Via == "values" })
	if !uses && !s.Session.Index.Ready() {
		return nil // the first answer does not wait; most units are no source of a stack
	}
	users, err := s.Session.Index.Naming(ctx, filepath.Dir(path)) // stacks are not included
	if err != nil {
		return nil
	}
	for _, user := range users {
		if index.KindOf(user) != index.Stack {
			continue
		}
		for _, top := range s.stacksOf(ctx, user) {
			if st := s.Session.Stack(ctx, top); st != nil {
				out = append(out, st.Units[path]...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// stacksOf returns the paths of the stack files from which a stack file is seen: those that generate it,
// or itself.
func (s *Server) stacksOf(ctx context.Context, path string) (out []string) {
	seen := map[string]bool{path: true}
	for queue := []string{path}; len(queue) > 0; queue = queue[1:] {
		users, err := s.Session.Index.Naming(ctx, filepath.Dir(queue[0]))
		if err != nil {
			return nil
		}
		top := true
		for _, u := range users {
			if index.KindOf(u) == index.Stack && filepath.Dir(u) != filepath.Dir(queue[0]) {
				if top = false; !seen[u] {
					seen[u] = true
					queue = append(queue, u)
				}
			}
		}
		if top || s.Session.Files.Exists(filepath.Join(filepath.Dir(queue[0]), unit.ValuesName)) {
			out = append(out, queue[0])
		}
	}
	slices.Sort(out)
	return out
}

// ownUnit returns the path of the unit whose module is its own directory, or "".
func (s *Server) ownUnit(dir string) string {
	own := s.Session.UnitFile(dir)
	if !s.Session.Files.Exists(own) || s.Session.Index.OwnModule(s.Session.Index.File(own)) == "" {
		return ""
	}
	return own
}

// viewOfModule returns the view of a file of a module: the one that the user chose, or the nearest. A chosen view
// that no longer leads to the module does not count. Until the index is ready, the module is seen from the unit of
// its directory, or alone. The calls may lack the keys of instances; see instanceOf.
func (s *Server) viewOfModule(ctx context.Context, path string) view {
	dir := filepath.Dir(path)
	s.mu.Lock()
	chosen := s.viewpoint[dir]
	s.mu.Unlock()
	if chosen == (view{at: dir}) {
		return view{}
	}
	values := index.KindOf(path) == index.Values
	if values && chosen.calls != "" {
		chosen = view{} // callers do not read variable files of the module
	}
	all, ready := s.callersOf(ctx, dir)
	switch {
	case chosen.at == "":
	case !ready && s.Session.Files.Exists(chosen.at):
		return chosen
	case slices.ContainsFunc(all, func(c caller) bool { return c.view == chosen.withoutKeys() && s.exists(ctx, c) }):
		return chosen
	}
	if own := s.ownUnit(dir); own != "" || values {
		return view{at: own}
	}
	return s.nearest(ctx, dir, all)
}

// maxEmpty is the number of calls without instances that are left out in the search for the nearest view.
const maxEmpty = 5

// nearest returns the default view of a module without a unit in its directory: the first of all that has an
// instance of the module. A root module has values of its own, so that it is seen alone.
func (s *Server) nearest(ctx context.Context, dir string, all []caller) view {
	if s.Session.Index.IsRoot(dir) {
		return view{}
	}
	for _, c := range all[:min(len(all), maxEmpty+1)] {
		if s.exists(ctx, c) {
			return c.view
		}
	}
	return view{}
}

// exists reports whether the calls of a view lead to an instance of the module, as far as that is known.
func (s *Server) exists(ctx context.Context, c caller) bool {
	each := s.instancesOf(ctx, c)
	return each == nil || len(each) > 0
}

// A caller is a view of a module without the keys of instances.
type caller struct {
	view
	repeated bool // a call has count or for_each
}

// callersOf returns the views of the module in a directory, the nearest first. ready is false if the index is not
// ready and the views were not computed before.
func (s *Server) callersOf(ctx context.Context, dir string) (all []caller, ready bool) {
	s.mu.Lock()
	kept, ok := s.callers[dir]
	s.mu.Unlock()
	if !s.Session.Index.Ready() { // also while it is read again
		return kept.all, ok
	}
	version, err := s.Session.Index.Version(ctx)
	if err != nil || ok && kept.version == version {
		return kept.all, ok
	}
	all = s.findCallers(ctx, dir)
	if ctx.Err() != nil {
		return kept.all, ok
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.callers) >= maxCallers {
		clear(s.callers)
	}
	s.callers[dir] = callers{version, all}
	return all, true
}

// maxCallers is the number of modules whose views are kept.
const maxCallers = 64

// callers are the views of a module that were computed last.
type callers struct {
	version int // of the index
	all     []caller
}

// findCallers returns the views of a module: from the units whose module it is, and from the units and root modules
// that call it, directly or through other modules. The nearest is the first. A module that only its own examples
// call is a root module too.
func (s *Server) findCallers(ctx context.Context, dir string) []caller {
	type chain struct {
		dir, calls string
		count      int
		repeated   bool
	}
	type found struct {
		caller
		distance int
	}
	const separator = string(filepath.Separator)
	parent := strings.TrimSuffix(dir, separator) + separator
	var out []found
	queue := []chain{{dir: dir}}
	for i := 0; i < len(queue) && ctx.Err() == nil; i++ {
		at := queue[i]
		calls, err := s.Session.Index.Callers(ctx, at.dir)
		if err != nil {
			return nil
		}
		root := true
		for _, c := range calls {
			if rel, err := filepath.Rel(at.dir, c.Dir); err != nil || !filepath.IsLocal(rel) {
				root = false
			}
			next := chain{c.Dir, c.Via, at.count + 1, at.repeated || c.Repeated}
			if at.calls != "" {
				next.calls += "." + at.calls
			}
			if at.count < maxCalls && len(queue) < maxChains {
				queue = append(queue, next)
			}
		}
		for _, r := range s.readersOf(ctx, filepath.Join(at.dir, "main.tf")) {
			out, root = append(out, found{caller{view{r.unit, at.calls}, at.repeated}, distance(parent, r.unit)}), false
		}
		if at.calls != "" && (root || s.Session.Index.IsRoot(at.dir)) {
			out = append(out, found{caller{view{at.dir, at.calls}, at.repeated}, distance(parent, at.dir+separator)})
		}
	}
	slices.SortFunc(out, func(a, b found) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		return cmp.Or(strings.Compare(a.at, b.at), strings.Compare(a.calls, b.calls))
	})
	out = slices.CompactFunc(out, func(a, b found) bool { return a.view == b.view })
	views := make([]caller, min(len(out), maxViewpoints))
	for i := range views {
		views[i] = out[i].caller
	}
	return views
}

// instanceOf returns a view with the keys of the instances of repeated calls: its own keys if there is such an
// instance, otherwise those of the first one. Instances that are not known have no keys.
func (s *Server) instanceOf(ctx context.Context, dir string, v view) view {
	all, _ := s.callersOf(ctx, dir)
	for _, c := range all {
		if c.view == v.withoutKeys() {
			if each := s.instancesOf(ctx, c); len(each) > 0 && !slices.Contains(each, v.calls) {
				v.calls = each[0]
			}
		}
	}
	return v
}

// instancesOf returns the addresses of the instances of the module to which the calls of a view lead. It is nil if
// they are not known, because the view has errors.
func (s *Server) instancesOf(ctx context.Context, c caller) []string {
	if !c.repeated {
		return []string{c.calls}
	}
	if c.isUnit() {
		if u := s.Session.Unit(ctx, c.at); u != nil {
			return u.Instances(ctx, c.calls)
		}
	} else if m := s.Session.Module(ctx, c.at); m != nil {
		return m.Instances(ctx, c.calls)
	}
	return nil
}

// viewsOf returns the views from which the user can choose for a file, the nearest first. The instances of a module
// call with count or for_each are views of their own. Instances that are not known are one view, and a call without
// instances is none.
func (s *Server) viewsOf(ctx context.Context, path string) []view {
	var out []view
	if !index.KindOf(path).OfModule() {
		for _, u := range s.unitsOf(ctx, path) {
			out = append(out, view{at: u})
		}
		return out[:min(len(out), maxViewpoints)]
	}
	if _, err := s.Session.Index.Version(ctx); err != nil { // waits for the index
		return nil
	}
	all, _ := s.callersOf(ctx, filepath.Dir(path))
	limited, cancel := context.WithTimeout(ctx, viewpointTime)
	defer cancel()
	expanded := 0
	for _, c := range all {
		var each []string
		if !c.repeated || expanded < maxExpanded && limited.Err() == nil {
			each = s.instancesOf(limited, c)
		}
		if c.repeated {
			expanded++
		}
		if each == nil {
			each = []string{c.calls}
		}
		for _, calls := range each {
			out = append(out, view{c.at, calls})
		}
	}
	return out[:min(len(out), maxViewpoints)]
}

// seenFrom returns the view of a file. It is zero if there is none, or if a module is seen alone.
func (s *Server) seenFrom(ctx context.Context, path string) view {
	switch {
	case moduleOf(path) != "":
		return s.instanceOf(ctx, filepath.Dir(path), s.viewOfModule(ctx, path))
	case index.KindOf(path) == index.Stack:
		return view{}
	}
	return view{at: s.viewpointOf(ctx, path)}
}

// generatedBy returns the path of the unit file that a block of a stack file generates, or "".
func (s *Server) generatedBy(ctx context.Context, path, address string) string {
	for _, top := range s.stacksOf(ctx, path) {
		st := s.Session.Stack(ctx, top)
		if st == nil {
			return ""
		}
		if dir := st.Dirs[workspace.StackBlock{Path: path, Address: address}]; dir != "" {
			return s.generatedFile(st, dir)
		}
	}
	return ""
}

// generatedFile returns the path of the unit file that a stack generates in a directory.
func (s *Server) generatedFile(st *workspace.Stack, dir string) string {
	for _, all := range st.Units {
		for _, path := range all {
			if filepath.Dir(path) == dir {
				return path
			}
		}
	}
	return filepath.Join(dir, unit.DefaultName)
}

// viewpointOf returns the path of the unit from which a file that is not part of a module is seen, or "".
func (s *Server) viewpointOf(ctx context.Context, path string) string {
	s.mu.Lock()
	chosen := s.viewpoint[path].at
	s.mu.Unlock()
	return s.chosenOrNearest(ctx, path, chosen)
}

// maxSeen is the number of files whose viewpoint is kept.
const maxSeen = 1000

// A seen is the viewpoint of a file that was computed last.
type seen struct {
	version int // of the index
	chosen  string
	unit    string // path; "" means none
}

// chosenOrNearest returns the path of the unit that the user chose for a file, if it reads the file.
// Otherwise it returns that of the nearest unit, or "" if there is none.
func (s *Server) chosenOrNearest(ctx context.Context, path, chosen string) string {
	if kind := index.KindOf(path); kind == index.UnitValues || s.Session.IsUnit(path) {
		return closest(s.readersOf(ctx, path), chosen) // few
	}
	version, err := s.Session.Index.Version(ctx)
	if err != nil {
		return ""
	}
	s.mu.Lock()
	kept, ok := s.seen[path]
	s.mu.Unlock()
	if ok && kept.version == version && kept.chosen == chosen {
		return kept.unit
	}
	out := seen{version, chosen, closest(s.readersOf(ctx, path), chosen)}
	if ctx.Err() != nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) >= maxSeen {
		clear(s.seen)
	}
	s.seen[path] = out
	return out.unit
}

// closest returns the chosen unit if it is a reader, otherwise the nearest reader, or "".
func closest(all []reader, chosen string) string {
	switch {
	case len(all) == 0:
		return ""
	case slices.ContainsFunc(all, func(r reader) bool { return r.unit == chosen }):
		return chosen
	}
	return slices.MinFunc(all, reader.compare).unit
}

// maxValued is the number of units whose values are computed for one request.
const maxValued = 500

// valuesResult is the answer of the request terrace/values.
type valuesResult struct {
	Address string       `json:"address"` // "" if there is no name at the position
	Values  []unitsValue `json:"values"`  // sorted by the number of units, the largest first
	More    bool         `json:"more"`    // there are more units than those that were computed
}

// unitsValue is a value with the units that have it.
type unitsValue struct {
	Value string   `json:"value"` // "" if it is not known
	Units []string `json:"units"` // URIs of the units or root modules, as in viewpointsResult
}

// values returns the values that a name has in all units that read its file.
func (s *Server) values(ctx context.Context, p *protocol.HoverParams) (*valuesResult, error) {
	path, text, f, err := s.open(p.TextDocument)
	if err != nil {
		return nil, err
	}
	out := &valuesResult{Values: []unitsValue{}}
	o := f.At(text.Offset(p.Position, s.encoding))
	if o == nil {
		return out, nil
	}
	out.Address = address(f, o)
	all := s.viewsOf(ctx, path)
	if out.More = len(all) > maxValued; out.More {
		all = all[:maxValued]
	}
	if values, _ := s.valuesIn(ctx, all, path, out.Address); values != nil {
		out.Values = values
	}
	return out, ctx.Err()
}

// unitOf returns the unit from which a file is seen, or nil.
func (s *Server) unitOf(ctx context.Context, path string) *workspace.Unit {
	if at := s.viewpointOf(ctx, path); at != "" {
		return s.Session.Unit(ctx, at)
	}
	return nil
}

// viewpointTime is the time in which the values of all viewpoints are computed for a hover.
const viewpointTime = 3 * time.Second

// maxNamed is the number of units that a list of values names for each value.
const maxNamed = 5

// everywhere returns the values at an address in all units that read a file, or "" if there is one unit
// or the client does not want them.
func (s *Server) everywhere(ctx context.Context, path, address string) string {
	s.mu.Lock()
	on := s.settings.AllViewpoints != nil && *s.settings.AllViewpoints
	s.mu.Unlock()
	if !on {
		return ""
	}
	units := s.viewsOf(ctx, path)
	if len(units) < 2 {
		return ""
	}
	limited, cancel := context.WithTimeout(ctx, viewpointTime)
	defer cancel()
	values, looked := s.valuesIn(limited, units, path, address)
	plural := "s"
	if len(values) == 1 {
		plural = ""
	}
	what := "units"
	if slices.ContainsFunc(units, func(v view) bool { return v.calls != "" }) {
		what = "viewpoints"
	}
	of := ""
	if looked < len(units) {
		of = fmt.Sprintf(" of %d", len(units))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d value%s in %d%s %s:\n", len(values), plural, looked, of, what)
	for _, v := range values[:min(len(values), 20)] {
		var names []string
		for _, u := range v.Units[:min(len(v.Units), maxNamed)] {
			names = append(names, s.viewName(viewOf(u)))
		}
		fmt.Fprintf(&b, "\n%s\n  %s", cmp.Or(v.Value, "(not known)"), strings.Join(names, ", "))
		if n := len(v.Units) - maxNamed; n > 0 {
			fmt.Fprintf(&b, " and %d others", n)
		}
	}
	return fenced(b.String())
}

// valuesIn returns the values that an address of a file has in views, those of most views first, and the
// number of views that were looked at before the context ended.
func (s *Server) valuesIn(ctx context.Context, views []view, path, address string) ([]unitsValue, int) {
	var out []unitsValue
	at := map[string]int{}
	looked := 0
	for len(views) > 0 {
		n := 1 // views from the same unit or root module, which is read once
		for n < len(views) && n < maxTogether && views[n].at == views[0].at {
			n++
		}
		same := views[:n]
		views = views[n:]
		addresses := make([]string, n)
		for i, v := range same {
			addresses[i] = v.address(address)
		}
		var found []*explanation.Explanation
		switch from := same[0]; {
		case index.KindOf(path) == index.Unit:
			found = s.Session.Values(ctx, from.at, path, addresses)
		case from.isUnit():
			found = s.Session.Values(ctx, from.at, "", addresses)
		default:
			found = s.Session.ModuleValues(ctx, from.at, addresses)
		}
		if ctx.Err() != nil {
			break
		}
		looked += n
		for k, x := range found {
			value := ""
			if x != nil {
				value = source.HideCredentials(x.ValueText())
			}
			i, ok := at[value]
			if !ok {
				i = len(out)
				at[value] = i
				out = append(out, unitsValue{Value: value})
			}
			out[i].Units = append(out[i].Units, same[k].uri())
		}
	}
	slices.SortStableFunc(out, func(a, b unitsValue) int { return len(b.Units) - len(a.Units) })
	return out, looked
}

// maxTogether is the number of values that are computed from one unit or root module before the time is checked.
const maxTogether = 20

// viewName returns the directory of a view relative to the root of the workspace, with the calls.
func (s *Server) viewName(v view) string {
	dir, calls := v.dir(), ""
	if v.calls != "" {
		calls = " " + v.calls
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.roots {
		if rel, err := filepath.Rel(r, dir); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel) + calls
		}
	}
	return dir + calls
}

// viewpointsResult is the answer of the request terrace/viewpoints. A viewpoint is the URI of a unit file, or of
// the directory of a root module. Its fragment contains the calls that lead to the module of the file.
type viewpointsResult struct {
	Current string   `json:"current"` // "" if the file has no viewpoint, or if a module is seen alone
	Default string   `json:"default"` // the viewpoint if the user chooses none; "" is as in Current
	All     []string `json:"all"`     // the nearest first
	Alone   string   `json:"alone"`   // the viewpoint from which a module is seen alone; "" if the file is not part of a module
}

func (s *Server) viewpoints(ctx context.Context, p *struct {
	TextDocument protocol.TextDocumentIdentifier `json:"textDocument"`
}) (*viewpointsResult, error) {
	path := s.path(p.TextDocument.URI)
	all := s.viewsOf(ctx, path)
	out := &viewpointsResult{All: []string{}, Current: s.seenFrom(ctx, path).uri()}
	for _, v := range all {
		out.All = append(out.All, v.uri())
	}
	if dir := moduleOf(path); dir != "" {
		out.Alone = view{at: dir}.uri()
		v := view{at: s.ownUnit(dir)}
		if k := index.KindOf(path); v.at == "" && k.OfModule() {
			callers, _ := s.callersOf(ctx, dir)
			v = s.instanceOf(ctx, dir, s.nearest(ctx, dir, callers))
		}
		out.Default = v.uri()
	} else if len(all) > 0 {
		out.Default = all[0].uri()
	}
	return out, ctx.Err()
}
