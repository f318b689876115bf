// Package workcopy makes the working directories of units: the folders below
// .terragrunt-cache in which their modules run.
//
// A unit's module is read where it lies, with the unit's own and generated files
// over it in memory (package overlay). The directory is made on disk only where something
// other than the loader looks at it (Dir.Make). What is known of a module before anything
// runs, and without outputs, is a Module.
//
// Main types: Maker, which finds the directories, Dir and Module. The one rule: units with
// the same files share what is parsed of them (Parsed), so nothing in it may change.
package workcopy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/copytree"
	"github.com/terrace-iac/terrace/internal/estate/workcopy/overlay"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// Settings say which command the directories are for, and where they and the modules in
// them come from.
type Settings struct {
	Command     string // that runs there
	DownloadDir string // of --download-dir, absolute; "" leaves it to the units
	Sources     Sources
	// RoleGiven says that the role of units does not come from their files.
	RoleGiven bool
	// CheckedOut is the path in the repository for one in a worktree of another commit.
	CheckedOut func(path string) string
	Backends   *backend.Set
	// Data is the folder of what is installed, relative to the working directory or absolute.
	Data string
	// OnDisk is where the files of a folder lie that would be made of another.
	OnDisk func(path string) string
	// Read reads files that other steps of the process read too; nil: from disk each time.
	Read *readfile.Kept
}

// A Maker finds and makes working directories. Make it with NewMaker; its methods may be
// called concurrently.
type Maker struct {
	s       Settings
	fetcher *Fetcher
	parses  config.Parses
	parsed  parallel.Cache[string, *Parsed]
	modules parallel.Cache[string, *localTree] // of local sources
	overlay parallel.Cache[string, *Module]    // by the ID of the unit
}

// NewMaker makes a Maker.
func NewMaker(s Settings) *Maker { return &Maker{s: s, fetcher: NewFetcher(s.Sources.Fetch)} }

// OnDisk is where the files of a folder lie, which may be the source of a unit that was not
// made of its stack file.
func (m *Maker) OnDisk(dir string) string { return m.s.OnDisk(dir) }

// FilesParsed is how many files of modules were parsed.
func (m *Maker) FilesParsed() int { return m.parses.Parsed() }

// A Dir is the working directory of a unit.
type Dir struct {
	Unit      *unit.Unit
	Path      string // it need not exist
	Files     *overlay.FS
	Terraform *unit.Terraform // nil if there is no such block
	Remote    *unit.RemoteState
	// Waits says in words what of the directory depends on outputs that are not known
	// yet; "" if nothing does. Nothing else is set then. WaitsIn is the part of the unit.
	Waits, WaitsIn string
	// Parsed is the configuration, which other units may share.
	Parsed *Parsed

	roots     []string          // directories that Path may be below of, in which no link leads to it
	data      string            // the folder of what is installed, relative or absolute
	backend   []byte            // the generated file of remote_state, nil if none
	backendAt string            // its name
	outside   map[string][]byte // generated files that lie elsewhere
	hooked    hooked
	read      *readfile.Kept

	made parallel.Cache[struct{}, diag.List] // on disk
}

// modules is the folder of the modules that are installed.
func (d *Dir) modules() string {
	return sys.Join(d.Path, filepath.Join(cmp.Or(d.data, ".terraform"), "modules"))
}

// Parsed is configuration that units with the same files share.
type Parsed struct {
	Sources engine.Sources
	Set     *source.Set

	own    bool       // of one unit alone, since hooks changed its directory
	looked source.Set // of root
	root   parallel.Cache[struct{}, *config.Module]
}

// Dir finds out where a unit's module is. fetch says whether one that is not local may be
// fetched; if not, the result is nil for it.
func (m *Maker) Dir(t *demand.Task, u *unit.Unit, fetch bool) (*Dir, diag.List) {
	tf, ds := u.Terraform(t)
	if ds.HasErrors() {
		return nil, ds
	}
	src, more := m.source(u, tf)
	if ds = append(ds, more...); more.HasErrors() {
		if NotKnownYet(more) {
			return &Dir{Unit: u, Terraform: tf, Waits: "the source of its module", WaitsIn: "terraform"}, nil
		}
		return nil, ds
	}
	if what := lateIn(tf, m.s.Command); what != "" {
		return &Dir{Unit: u, Terraform: tf, Waits: what, WaitsIn: "terraform"}, nil
	}
	if part := m.LateScalar(t, u); part != "" {
		return &Dir{Unit: u, Terraform: tf, Waits: part, WaitsIn: part}, nil
	}
	download := m.DownloadDir(t, u)
	d := &Dir{Unit: u, Terraform: tf, Path: m.runsIn(u, src.text, download), roots: []string{u.Dir, m.s.CheckedOut(u.Dir), download, m.s.CheckedOut(download)}, data: m.s.Data, read: m.s.Read, hooked: hooked{anew: m.s.Command == "init"}}
	d.Files, more = m.files(t.Context(), d, src, fetch)
	if ds = append(ds, more...); d.Files == nil || more.HasErrors() {
		return nil, ds
	}
	if more = m.generate(t, d); more.HasErrors() {
		return nil, append(ds, more...)
	}
	ds = append(ds, more...)
	d.Parsed = m.share(d)
	return d, ds
}

// NotKnownYet reports whether every error says that something has to be known that is
// not known before other units are applied.
func NotKnownYet(ds diag.List) bool {
	return !slices.ContainsFunc(ds.Errors(), func(m *diag.Message) bool { return m.Code != plan.UnknownCode })
}

// Bare is the working directory of a unit without its files, for who only asks where it
// is. ok is false where that is not known.
func (m *Maker) Bare(t *demand.Task, u *unit.Unit) (d *Dir, ok bool) {
	tf, ds := u.Terraform(t)
	rs, more := u.RemoteState(t)
	if ds.HasErrors() || more.HasErrors() || m.LateScalar(t, u) != "" {
		return nil, false
	}
	src, ds := m.source(u, tf)
	if ds.HasErrors() {
		return nil, false
	}
	return &Dir{Unit: u, Terraform: tf, Path: m.runsIn(u, src.text, m.DownloadDir(t, u)), Remote: rs}, true
}

// files are the files of a unit's module and of the unit over it, without generated
// ones; nil if the module would have to be fetched and may not be.
func (m *Maker) files(ctx context.Context, d *Dir, src moduleSource, fetch bool) (*overlay.FS, diag.List) {
	u, tf := d.Unit, d.Terraform
	pkg, sub := m.s.OnDisk(u.Dir), ""
	var ds diag.List
	if src.text != "" {
		if pkg, sub, ds = m.packageOf(ctx, u, src, fetch); ds.HasErrors() || pkg == "" {
			return nil, ds
		}
	}
	var rules copytree.Rules
	if tf != nil {
		rules = copytree.Rules{Include: tf.IncludeInCopy, Exclude: tf.ExcludeFromCopy}
	}
	unitDir := m.s.OnDisk(u.Dir)
	if u.Module != "" {
		unitDir = "" // an environment file's folder is no unit: none of its files are an overlay of the module
	}
	out, err := overlay.New(pkg, sub, unitDir, d.Path, m.s.Data, rules)
	if err != nil {
		ds = append(ds, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read the unit's folder", "The folder cannot be read: %s.", err)...)
	}
	if out != nil {
		out.Parsed = m.parses.Text
	}
	return out, ds
}

// runsIn is the folder that a unit runs in.
func (m *Maker) runsIn(u *unit.Unit, src, download string) string {
	dir := m.s.CheckedOut(u.Dir)
	if dir == u.Dir || u.Module != "" {
		return m.s.CheckedOut(u.RunsIn(src, download))
	}
	return unit.WorkingDir(dir, m.s.CheckedOut(src), m.s.CheckedOut(download))
}

// lateIn names what is not known yet of the hooks and extra arguments for a command.
func lateIn(tf *unit.Terraform, command string) string {
	if tf == nil {
		return ""
	}
	for _, h := range slices.Concat(tf.Before, tf.After, tf.Errors) {
		if h.Late && (len(h.Commands) == 0 || slices.Contains(h.Commands, command)) {
			return fmt.Sprintf("the hook %q", h.Name)
		}
	}
	for _, x := range tf.ExtraArguments {
		if x.Late && (len(x.Commands) == 0 || slices.Contains(x.Commands, command)) {
			return fmt.Sprintf("the extra_arguments block %q", x.Name)
		}
	}
	return ""
}

// LateScalar names what is not known yet of where a unit runs and with whose
// credentials; "" if all is known.
func (m *Maker) LateScalar(t *demand.Task, u *unit.Unit) string {
	sc, ds := u.Scalars(t)
	if ds.HasErrors() || sc == nil {
		return ""
	}
	late := func(s *unit.Setting) bool { return s != nil && !unit.Known(s.Value) }
	switch {
	case m.s.DownloadDir == "" && late(sc.DownloadDir):
		return "download_dir"
	case m.s.RoleGiven:
		return ""
	case late(sc.IAMRole):
		return "iam_role"
	case late(sc.IAMWebIdentityToken):
		return "iam_web_identity_token"
	}
	return ""
}

// DownloadDir is the folder that the unit's directory is made in, as it was written; ""
// means the usual one.
func (m *Maker) DownloadDir(t *demand.Task, u *unit.Unit) string {
	if m.s.DownloadDir != "" {
		return m.s.DownloadDir
	}
	sc, ds := u.Scalars(t)
	if ds.HasErrors() || sc == nil {
		return ""
	}
	return sc.DownloadDir.Text()
}

// share finds what was parsed for units with the same files. Units with files of
// their own among those that are parsed share with those alone whose files are
// the same.
func (m *Maker) share(d *Dir) *Parsed {
	key := d.Files.Package + "\x00" + d.Files.Sub
	for _, g := range slices.Concat(d.Files.Copy.Include, []string{"\x00"}, d.Files.Copy.Exclude) {
		key += "\x00" + g // which files of the package count
	}
	for name := range d.Files.Own {
		info, err := os.Stat(filepath.Join(d.Files.Unit, name))
		if overlay.IsConfig(name) || err == nil && info.IsDir() {
			key += "\x00" + d.Files.Unit
			break
		}
	}
	if _, err := os.Stat(filepath.Join(d.modules(), "modules.json")); err == nil {
		key += "\x00" + d.Path // modules are installed there
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(d.Files.Generated)) {
		b := d.Files.Generated[name]
		fmt.Fprintf(h, "%q %t %d\n", name, b == nil, len(b))
		h.Write(b)
	}
	key += "\x00" + hex.EncodeToString(h.Sum(nil))
	return m.parsed.Pure(key, func() *Parsed {
		return m.parsedIn(d, &source.Set{})
	})
}

func (m *Maker) parsedIn(d *Dir, set *source.Set) *Parsed {
	out := &Parsed{Set: set}
	out.Sources.FS, out.Sources.Parses = d.Files, &m.parses
	for _, name := range d.Files.Secret {
		set.Conceal(name)
	}
	return out
}

// Own makes what is parsed of a directory the unit's own, with the text of files in set.
// The backend block that remote_state generates is part of it then, which is left out of
// what units share.
func (m *Maker) Own(d *Dir, set *source.Set) {
	if d.backend != nil {
		d.Files.Generated[d.backendAt] = d.backend
	}
	d.Parsed = m.parsedIn(d, set)
	d.Parsed.own = true
}

// Share looks again for what other units parsed of the same files, once modules were
// installed in the directory.
func (m *Maker) Share(d *Dir) {
	if !d.Parsed.own {
		d.Parsed = m.share(d)
	}
}

// HasValues reports whether there are files of values of variables that are taken by
// themselves.
func (d *Dir) HasValues() bool {
	entries, err := d.Files.ReadDir(".")
	if err != nil {
		return false
	}
	for _, en := range entries {
		if overlay.IsValues(en.Name()) {
			return true
		}
	}
	return false
}

// Locate is the path of a file that the directory would have by a name: where it is copied
// from, or in the directory itself if there is none.
func (d *Dir) Locate(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	for _, p := range d.Files.Where(name) {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return filepath.Join(d.Path, name)
}

// Origin is where a file of the directory comes from, by its name there, and its layer
// where the unit alone knows that: files that are copied lie where they are copied from.
func (d *Dir) Origin(name string) (path, layer string) {
	if filepath.IsAbs(name) || d.Files == nil {
		return name, ""
	}
	if at := d.Files.Locate(name); at != "" {
		return at, ""
	}
	path = filepath.Join(d.Path, name)
	if _, ok := d.Files.Generated[filepath.ToSlash(filepath.Clean(name))]; ok || name == d.backendAt {
		return path, "generated"
	}
	return path, ""
}

// Configured reports whether the directory holds configuration. The file that remote_state
// generates is one. The backend that is made up for the unit of an environment file is none.
func (d *Dir) Configured(root *config.Module) bool {
	madeUp := ""
	if d.backend != nil {
		if d.Remote != nil {
			return true
		}
		madeUp = d.backendAt
	}
	return slices.ContainsFunc(root.Files, func(f config.FileRole) bool {
		return overlay.IsConfig(filepath.Base(f.Path)) && filepath.ToSlash(filepath.Clean(f.Path)) != madeUp
	})
}

// HasHooks reports whether the unit has hooks of any kind.
func (d *Dir) HasHooks() bool {
	tf := d.Terraform
	return tf != nil && len(tf.Before)+len(tf.After)+len(tf.Errors) > 0
}

// WritesOutside reports whether the unit generates files outside of the directory.
func (d *Dir) WritesOutside() bool { return d.outside != nil }
