// Package workcopy creates the working directories of units: the directories below
// .terragrunt-cache in which their modules run.
//
// A unit's module is read from its source, with the unit's own files and generated files over it
// in memory (package overlay). The directory is only created on disk if anything but the loader
// reads it (Dir.Make). A Module contains the parts of a module that are known before the run and
// without outputs.
//
// Main types: Maker, which finds the directories, Dir and Module. The one rule: units with the
// same files share the parsed files (Parsed), so these must not be changed.
package workcopy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
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

// Settings configures a Maker.
type Settings struct {
	Command     string // name of the command that runs in the directories
	DownloadDir string // value of --download-dir, absolute; "" means that units decide
	Sources     Sources
	// RoleGiven means that the role of units does not come from their files.
	RoleGiven bool
	// CheckedOut returns the path in the repository's own directory for a path in a worktree.
	CheckedOut func(path string) string
	Backends   *backend.Set
	// Data is the directory for installed modules and providers, relative to the working
	// directory or absolute.
	Data string
	// OnDisk returns the directory that contains the files of dir on disk. It differs from dir
	// for generated units that exist only in memory.
	OnDisk func(path string) string
	// Read reads files that other parts of the process read too. nil means that files are always
	// read from disk.
	Read *readfile.Kept
}

// A Maker finds and creates working directories. Create it with NewMaker. Its methods may be
// called concurrently.
type Maker struct {
	s       Settings
	fetcher *Fetcher
	parses  config.Parses
	parsed  parallel.Cache[string, *Parsed]
	modules parallel.Cache[string, *localTree] // by directory of the local source
	overlay parallel.Cache[string, *Module]    // by the ID of the unit
}

// NewMaker returns a Maker.
func NewMaker(s Settings) *Maker { return &Maker{s: s, fetcher: NewFetcher(s.Sources.Fetch)} }

// OnDisk returns the directory that contains the files of dir on disk; see Settings.OnDisk.
func (m *Maker) OnDisk(dir string) string { return m.s.OnDisk(dir) }

// Forget discards the module of a unit, which Module computes again on demand.
func (m *Maker) Forget(id string) { m.overlay.Forget(id) }

// Adopt makes Module return a module of another Maker for a unit, unless it has computed the module already.
func (m *Maker) Adopt(id string, out *Module) {
	m.overlay.Pure(id, func() *Module { return out })
}

// Disk returns the reader of the files; see Settings.Read.
func (m *Maker) Disk() *readfile.Kept { return m.s.Read }

// FilesParsed returns the number of module files that were parsed.
func (m *Maker) FilesParsed() int { return m.parses.Parsed() }

// A UnitDirectory is the working directory of a unit.
type UnitDirectory struct {
	Unit      *unit.Unit
	Path      string // the directory may not exist
	Files     *overlay.FS
	Terraform *unit.Terraform // nil if the unit has no terraform block
	Remote    *unit.RemoteState
	// Waits describes the part of the directory that depends on unknown outputs, and WaitsIn is
	// the name of the block or attribute in the unit. "" means that there is none. If Waits is
	// set, most other fields are not.
	Waits, WaitsIn string
	// Parsed contains the parsed configuration, which other units may share.
	Parsed *Parsed

	roots     []string          // directories that may contain Path; no symbolic link below them may lead to it
	data      string            // directory for installed modules and providers, relative or absolute
	backend   func() []byte     // returns the content of the file that remote_state generates; nil if none
	backendAt string            // name of that file
	outside   map[string][]byte // generated files outside of the directory
	hooked    hooked
	read      *readfile.Kept

	made parallel.Cache[struct{}, diag.List] // result of Make
}

// modules returns the directory of installed modules.
func (d *UnitDirectory) modules() string {
	return sys.Join(d.Path, filepath.Join(cmp.Or(d.data, ".terraform"), "modules"))
}

// Parsed is the parsed configuration that units with the same files share.
type Parsed struct {
	Sources engine.Sources
	Set     *source.Set

	own    bool       // not shared, for example because hooks changed the directory
	looked source.Set // source text of root
	root   parallel.Cache[struct{}, loadedRoot]
}

// Dir returns the working directory of a unit. If the module is remote and fetch is false, Dir
// returns nil.
func (m *Maker) Dir(t *demand.Task, u *unit.Unit, fetch bool) (*UnitDirectory, diag.List) {
	tf, ds := u.Terraform(t)
	if ds.HasErrors() {
		return nil, ds
	}
	src, more := m.source(u, tf)
	if ds = append(ds, more...); more.HasErrors() {
		if NotKnownYet(more) {
			return &UnitDirectory{Unit: u, Terraform: tf, Waits: "the source of its module", WaitsIn: "terraform"}, nil
		}
		return nil, ds
	}
	if what := lateIn(tf, m.s.Command); what != "" {
		return &UnitDirectory{Unit: u, Terraform: tf, Waits: what, WaitsIn: "terraform"}, nil
	}
	if part := m.LateScalar(t, u); part != "" {
		return &UnitDirectory{Unit: u, Terraform: tf, Waits: part, WaitsIn: part}, nil
	}
	download := m.DownloadDir(t, u)
	d := &UnitDirectory{Unit: u, Terraform: tf, Path: m.runsIn(u, src.text, download), roots: []string{u.Dir, m.s.CheckedOut(u.Dir), download, m.s.CheckedOut(download)}, data: m.s.Data, read: m.s.Read, hooked: hooked{anew: m.s.Command == "init"}}
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

// NotKnownYet reports whether all errors are about values that are unknown until other units are
// applied.
func NotKnownYet(ds diag.List) bool {
	return !slices.ContainsFunc(ds.Errors(), func(m *diag.Message) bool { return m.Code != plan.UnknownCode })
}

// Bare returns the working directory of a unit without its files, for callers that only need its
// path and remote_state block. ok is false if these are unknown.
func (m *Maker) Bare(t *demand.Task, u *unit.Unit) (d *UnitDirectory, ok bool) {
	tf, ds := u.Terraform(t)
	rs, more := u.RemoteState(t)
	if ds.HasErrors() || more.HasErrors() || m.LateScalar(t, u) != "" {
		return nil, false
	}
	src, ds := m.source(u, tf)
	if ds.HasErrors() {
		return nil, false
	}
	return &UnitDirectory{Unit: u, Terraform: tf, Path: m.runsIn(u, src.text, m.DownloadDir(t, u)), Remote: rs}, true
}

// files returns the files of a unit's module with the unit's files over it, without generated
// files. It returns nil if the module would have to be fetched and fetch is false.
func (m *Maker) files(ctx context.Context, d *UnitDirectory, src moduleSource, fetch bool) (*overlay.FS, diag.List) {
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
		unitDir = "" // the directory of an environment file is no unit, so its files are not copied over the module
	}
	out, err := overlay.New(m.s.Read, pkg, sub, unitDir, d.Path, m.s.Data, rules)
	if err != nil {
		ds = append(ds, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read the unit's directory", "The directory cannot be read: %s.", err)...)
	}
	if out != nil {
		out.Parsed = m.parses.Text
	}
	return out, ds
}

// runsIn returns the directory that a unit runs in.
func (m *Maker) runsIn(u *unit.Unit, src, download string) string {
	dir := m.s.CheckedOut(u.Dir)
	if dir == u.Dir || u.Module != "" {
		return m.s.CheckedOut(u.RunsIn(src, download))
	}
	return unit.WorkingDir(dir, m.s.CheckedOut(src), m.s.CheckedOut(download))
}

// lateIn describes the first hook or extra_arguments block for a command that depends on unknown
// outputs. "" means that there is none.
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

// LateScalar returns the name of the attribute with an unknown value that determines where a unit
// runs or which credentials it uses. "" means that there is none.
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

// DownloadDir returns the directory in which the working directory of the unit is created, as it
// is written. "" means the default.
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

// share returns the parsed files of units with the same files. Units whose own files are parsed
// too only share with units whose files are the same.
func (m *Maker) share(d *UnitDirectory) *Parsed {
	key := d.Files.Package + "\x00" + d.Files.Sub
	for _, g := range slices.Concat(d.Files.Copy.Include, []string{"\x00"}, d.Files.Copy.Exclude) {
		key += "\x00" + g // these select the files of the package
	}
	for name := range d.Files.Own {
		info, err := m.s.Read.Stat(filepath.Join(d.Files.Unit, name))
		if overlay.IsConfig(name) || err == nil && info.IsDir() {
			key += "\x00" + d.Files.Unit
			break
		}
	}
	if _, err := m.s.Read.Stat(filepath.Join(d.modules(), "modules.json")); err == nil {
		key += "\x00" + d.Path // the installed modules belong to this directory
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

func (m *Maker) parsedIn(d *UnitDirectory, set *source.Set) *Parsed {
	out := &Parsed{Set: set}
	out.Sources.FS, out.Sources.Parses = d.Files, &m.parses
	for _, name := range d.Files.Secret {
		set.Conceal(name)
	}
	return out
}

// Own gives a directory its own parsed files, with their source text in set. They then include
// the backend block that remote_state generates, which shared files do not contain.
func (m *Maker) Own(d *UnitDirectory, set *source.Set) {
	if d.backend != nil {
		d.Files.Generated[d.backendAt] = d.backend()
	}
	d.Parsed = m.parsedIn(d, set)
	d.Parsed.own = true
}

// Share looks up the shared parsed files again after modules were installed in the directory.
func (m *Maker) Share(d *UnitDirectory) {
	if !d.Parsed.own {
		d.Parsed = m.share(d)
	}
}

// HasValues reports whether the directory contains variable files that are loaded automatically.
func (d *UnitDirectory) HasValues() bool { return d.Files.HasValues() }

// Locate returns the path of the file that has a name in the directory: the path that it is
// copied from or, if there is none, the path in the directory itself.
func (d *UnitDirectory) Locate(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	for _, p := range d.Files.Where(name) {
		if _, err := d.Files.Disk.Stat(p); err == nil {
			return p
		}
	}
	return filepath.Join(d.Path, name)
}

// Origin returns the path from which a file of the directory is copied, given its name in the
// directory. For a generated file it returns the path in the directory and the layer "generated".
func (d *UnitDirectory) Origin(name string) (path, layer string) {
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

// Configured reports whether the directory contains configuration. The file that remote_state
// generates counts, but not the backend that is added for the unit of an environment file.
func (d *UnitDirectory) Configured(root *config.Module) bool {
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
func (d *UnitDirectory) HasHooks() bool {
	tf := d.Terraform
	return tf != nil && len(tf.Before)+len(tf.After)+len(tf.Errors) > 0
}

// WritesOutside reports whether the unit generates files outside of the directory.
func (d *UnitDirectory) WritesOutside() bool { return d.outside != nil }
