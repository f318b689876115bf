package estate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/parallel"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// A place is where a unit's module is, and where it would run.
type place struct {
	unit      *Unit
	dir       string // the working folder, which need not exist
	files     *files
	terraform *unit.Terraform // nil if there is no such block
	remote    *unit.RemoteState
	backend   []byte // the generated file of remote_state, nil if none
	backendAt string // its name
	outside   map[string][]byte
	waits     string // what the place hangs on that is not known yet, in words
	waitsIn   string // the part of the unit that it is in

	shared *parsed
	own    bool // that is of this unit alone, since hooks changed its folder
	around      // what hooks see and change

	disk   sync.Once
	diskDs diag.List
}

// parsed is configuration that units with the same files share.
type parsed struct {
	sources engine.Sources
	set     source.Set

	summing sync.Once
	sum     string // see digest

	loading sync.Once
	looked  source.Set // of root
	root    *config.Module

	examining sync.Once
	wrong     diag.List // what examine found
}

// sharing is what units of an estate share.
type sharing struct {
	parsed  parallel.Cache[string, *parsed]
	modules parallel.Cache[string, *localTree]  // of local sources
	laid    parallel.Cache[string, *laidModule] // by the ID of the unit
	parses  config.Parses
	states  atomic.Int64 // how often a state was read
	fetch   parallel.Cache[string, fetched]
	signed  parallel.Cache[string, signedIn] // by folder
	roles   parallel.Cache[string, *assumed] // by role, and who asks for it

	examiner sync.Once
	examines *engine.Examiner

	below    parallel.Cache[string, []string] // folders of local modules, by that of the first
	listings parallel.Cache[string, []string] // configuration files below a folder
}

type fetched struct {
	dir string
	ds  diag.List
}

// placeOf finds out where a unit's module is. fetch says whether one that is not
// local may be fetched; if not, the place is nil for it.
func (e *Estate) placeOf(t *demand.Task, u *Unit, fetch bool) (*place, diag.List) {
	tf, ds := u.Terraform(t)
	if ds.HasErrors() {
		return nil, ds
	}
	src, more := e.sourceOf(u, tf)
	if ds = append(ds, more...); more.HasErrors() {
		if unplannable(more) {
			return &place{unit: u, terraform: tf, waits: "the source of its module", waitsIn: "terraform"}, nil
		}
		return nil, ds
	}
	if what := lateIn(tf, e.o.Request.Command); what != "" {
		return &place{unit: u, terraform: tf, waits: what, waitsIn: "terraform"}, nil
	}
	if part := e.lateScalar(t, u); part != "" {
		return &place{unit: u, terraform: tf, waits: part, waitsIn: part}, nil
	}
	p := &place{unit: u, terraform: tf, dir: e.runsIn(u, src.text, e.downloadDir(t, u)), around: around{anew: e.o.Request.Command == hookInit}}
	p.files, more = e.filesOf(t.Context(), p, src, fetch)
	if ds = append(ds, more...); p.files == nil || more.HasErrors() {
		return nil, ds
	}
	if more = e.generate(t, p); more.HasErrors() {
		return nil, append(ds, more...)
	}
	ds = append(ds, more...)
	p.shared = e.share(p)
	return p, ds
}

// filesOf are the files of a unit's module and of the unit over it, without generated
// ones; nil if the module would have to be fetched and may not be.
func (e *Estate) filesOf(ctx context.Context, p *place, src moduleSource, fetch bool) (*files, diag.List) {
	u, tf := p.unit, p.terraform
	pkg, sub := u.Dir, ""
	var ds diag.List
	if src.text != "" {
		if pkg, sub, ds = e.packageOf(ctx, u, src, fetch); ds.HasErrors() || pkg == "" {
			return nil, ds
		}
	}
	var rules copyRules
	if tf != nil {
		rules = copyRules{include: tf.IncludeInCopy, exclude: tf.ExcludeFromCopy}
	}
	unitDir := u.Dir
	if u.Module != "" {
		unitDir = pkg // an environment file's folder is no unit: nothing of it is laid over the module
	}
	out, err := newFiles(pkg, sub, unitDir, p.dir, rules)
	if err != nil {
		ds = append(ds, diag.Errorf(nil, "Failed to read the unit's folder", "The folder cannot be read: %s.", err)...)
	}
	return out, ds
}

// runsIn is the folder that a unit runs in.
func (e *Estate) runsIn(u *Unit, src, download string) string {
	dir := e.history.checkedOut(u.Dir)
	if dir == u.Dir || u.Module != "" {
		return e.history.checkedOut(u.RunsIn(src, download))
	}
	return unit.WorkingDir(dir, e.history.checkedOut(src), e.history.checkedOut(download))
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

// lateScalar names what is not known yet of where a unit runs and with whose
// credentials.
func (e *Estate) lateScalar(t *demand.Task, u *Unit) string {
	sc, ds := u.Scalars(t)
	if ds.HasErrors() || sc == nil {
		return ""
	}
	late := func(s *unit.Setting) bool { return s != nil && !unit.Known(s.Value) }
	switch {
	case e.o.Request.DownloadDir == "" && late(sc.DownloadDir):
		return "download_dir"
	case e.o.SignIn.Role.ARN != "":
		return ""
	case late(sc.IAMRole):
		return "iam_role"
	case late(sc.IAMWebIdentityToken):
		return "iam_web_identity_token"
	}
	return ""
}

// idBelow is what an environment unit's ID adds to its folder.
func (e *Estate) idBelow(u *Unit) string {
	rel, err := filepath.Rel(u.Dir, u.ID)
	if err != nil {
		return u.ID
	}
	return filepath.ToSlash(rel)
}

func (e *Estate) downloadDir(t *demand.Task, u *Unit) string {
	if e.o.Request.DownloadDir != "" {
		return e.o.Request.DownloadDir
	}
	sc, ds := u.Scalars(t)
	if ds.HasErrors() || sc == nil {
		return ""
	}
	return settingText(sc.DownloadDir)
}

// A moduleSource is where a unit says that its module is.
type moduleSource struct {
	text string        // "" if the unit's own folder holds the module
	at   *source.Range // nil if the unit does not say
}

// sourceOf is the source of a unit's module, as flags change it.
func (e *Estate) sourceOf(u *Unit, tf *unit.Terraform) (src moduleSource, ds diag.List) {
	if tf != nil && tf.Source != nil {
		src.at = tf.Source.At
		v, _ := tf.Source.Value.UnmarkDeep()
		switch {
		case !v.IsKnown():
			ds := diag.Errorf(src.at, "Module source is not known", "The source of the module must be known before anything runs.")
			ds[0].Code = plan.UnknownCode
			return src, ds
		case v.IsNull():
		case v.Type() != cty.String:
			return src, diag.Errorf(src.at, "Invalid module source", "The source of the module must be a string.")
		default:
			src.text = v.AsString()
		}
	}
	src.text = e.overridden(u, replaceSource(src.text, e.o.Sources.Map))
	return src, nil
}

// packageOf finds the folder of a module's package.
func (e *Estate) packageOf(ctx context.Context, u *Unit, src moduleSource, fetch bool) (pkg, sub string, ds diag.List) {
	root, sub := unit.SplitSource(unit.Getter(src.text))
	if unit.LocalSource(root) {
		pkg = filepath.Clean(strings.TrimPrefix(root, "file://"))
		if !filepath.IsAbs(pkg) {
			pkg = filepath.Join(u.Dir, pkg)
		}
		if info, err := os.Stat(filepath.Join(pkg, sub)); pkg != os.DevNull && (err != nil || !info.IsDir()) {
			return "", "", diag.Errorf(src.at, "Module not found", "The source of the module, %q, leads to %s, which is no folder.", src.text, filepath.Join(pkg, sub))
		}
		return pkg, sub, nil
	}
	switch {
	case !fetch:
		return "", "", nil
	case e.o.Host.Fetch == nil:
		return "", "", diag.Errorf(src.at, "Module cannot be fetched", "The source %q is not local, and this program fetches no modules.", src.text)
	}
	got := e.shared.fetch.Do(root, func() fetched {
		dir, ds := e.o.Host.Fetch(ctx, root)
		return fetched{dir, ds}
	})
	if got.ds.HasErrors() {
		return "", "", slices.Clone(got.ds).Under(src.at)
	}
	if info, err := os.Stat(filepath.Join(got.dir, sub)); err != nil || !info.IsDir() {
		return "", "", diag.Errorf(src.at, "Module not found", "The package %q has no folder %q.", root, sub)
	}
	return got.dir, sub, nil
}

// share finds what was parsed for units with the same files. Units with files of
// their own among those that are parsed share with those alone whose files are
// the same.
func (e *Estate) share(p *place) *parsed {
	key := p.files.pkg + "\x00" + p.files.sub
	for name := range p.files.own {
		info, err := os.Stat(filepath.Join(p.files.unit, name))
		if isConfig(name) || err == nil && info.IsDir() {
			key += "\x00" + p.files.unit
			break
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, ".terraform", "modules", "modules.json")); err == nil {
		key += "\x00" + p.dir // modules are installed there
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(p.files.generated)) {
		b := p.files.generated[name]
		fmt.Fprintf(h, "%q %t %d\n", name, b == nil, len(b))
		h.Write(b)
	}
	key += "\x00" + hex.EncodeToString(h.Sum(nil))
	return e.shared.parsed.Do(key, func() *parsed {
		out := &parsed{}
		out.sources.FS, out.sources.Parses = p.files, &e.shared.parses
		for _, name := range p.files.secret {
			out.set.Conceal(name)
		}
		return out
	})
}

// textOf is a value as the argument of a backend.
func textOf(v cty.Value) (string, bool) {
	v, _ = v.Unmark()
	s, err := convert.Convert(v, cty.String)
	if err != nil || !s.IsKnown() {
		return "", false
	}
	if s.IsNull() {
		return "", true
	}
	return s.AsString(), true
}
