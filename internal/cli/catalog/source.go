package catalog

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/scaffold"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/estate/catalog"
	"github.com/terrace-iac/terrace/internal/estate/modules"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	hidden "github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
)

// A source provides components.
type source struct {
	given string
	done  chan struct{} // closed when found and ds are set
	found []catalog.Component
	ds    diag.List
}

// components waits for the components of a source.
func (s *source) components() ([]catalog.Component, diag.List) {
	<-s.done
	return s.found, s.ds
}

// find determines the sources and starts to read them, a few at a time.
func find(ctx context.Context, c *command.Call, f *unitflags.Flags, o *options) ([]source, diag.List) {
	r := &reader{Call: c}
	if o.ignoreFile != "" {
		rules, err := catalog.ReadRules(c.Path(o.ignoreFile))
		if err != nil {
			return nil, diag.Errorf(diag.CodeConfigReadFile, nil, "Failed to read file", "The file of --ignore-file cannot be read: %s.", err)
		}
		r.extra = rules
	}
	given, ds := named(ctx, c, f, o)
	if ds.HasErrors() {
		return nil, ds
	}
	cfg, more := c.Directory.Settings()
	if c.Arg(0) == "" {
		more = more.Errors() // the catalog block has reported its warnings
	}
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	r.cfg, r.fetch = cfg, modules.Fetch(c.Directory, cfg, false)
	out := make([]source, len(given))
	for i := range out {
		out[i] = source{given: given[i], done: make(chan struct{})}
	}
	queue := parallel.NewQueue(8)
	for i := range out {
		queue.Add(func() {
			defer close(out[i].done)
			out[i].found, out[i].ds = r.read(ctx, out[i].given)
		})
	}
	return out, ds
}

// named returns the sources on the command line or in the nearest catalog block. Directories
// are absolute paths.
func named(ctx context.Context, c *command.Call, f *unitflags.Flags, o *options) ([]string, diag.List) {
	absolute := func(dir, src string) string {
		root, sub := unit.SplitSource(src)
		if !unit.LocalSource(unit.Getter(root)) {
			return src
		}
		root = sys.Join(dir, strings.TrimPrefix(root, "file://"))
		if sub != "" {
			root += "//" + sub
		}
		return root
	}
	if src := c.Arg(0); src != "" {
		return []string{absolute(c.Dir, src)}, nil
	}
	eo, ds := units.LookOptions(c, f, "catalog", nil)
	if ds.HasErrors() {
		return nil, ds
	}
	c.Report.Units = true
	loader := unit.NewLoader(eo.UnitEnv(c.Dir))
	c.Report.Set = loader.Sources()
	task := loader.Task(ctx)
	for dir := c.Dir; ; dir = filepath.Dir(dir) {
		for _, name := range []string{unit.DefaultName, o.root} {
			file := filepath.Join(dir, name)
			if info, err := os.Stat(file); err != nil || info.IsDir() {
				continue
			}
			all, more := loader.Load(task, file)
			if more.HasErrors() {
				return nil, append(ds, more...)
			}
			if len(all) == 0 {
				continue
			}
			block, more := all[0].Catalog(task)
			if more.HasErrors() {
				return nil, append(ds, more...)
			}
			if block == nil {
				continue
			}
			var out []string
			for _, src := range block.URLs {
				out = append(out, absolute(dir, src))
			}
			return out, ds
		}
		if filepath.Dir(dir) == dir {
			return []string{c.Dir}, ds
		}
	}
}

// A reader reads sources.
type reader struct {
	*command.Call
	cfg   *cliconfig.Config
	fetch func(context.Context, string) (string, diag.List)
	extra catalog.Rules
}

// read returns the components of a source.
func (r *reader) read(ctx context.Context, given string) ([]catalog.Component, diag.List) {
	root, below := unit.SplitSource(unit.Getter(given))
	local := unit.LocalSource(root)
	dir, version := root, ""
	var ds diag.List
	switch {
	case local:
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			return nil, diag.Errorf(diag.CodeEstateModuleNotFound, nil, "Module not found", "The source %q of the catalog is not a directory.", root)
		}
	case strings.HasPrefix(root, "tfr://"):
		v, err := modules.NewestVersion(ctx, r.Call.Directory, r.cfg, root)
		if err != nil {
			return nil, diag.Errorf(diag.CodeModuleFetch, nil, "Failed to fetch the module", "The source %q of the catalog cannot be fetched: %s.", hidden.HideCredentials(given), err)
		}
		head, _, _ := strings.Cut(root, "?")
		root, version = head+"?version="+url.QueryEscape(v), v
		fallthrough
	default:
		if dir, ds = r.fetch(ctx, root); ds.HasErrors() {
			return nil, ds
		}
	}
	rules, err := catalog.Committed(dir)
	if err != nil {
		return nil, append(ds, diag.Errorf(diag.CodeConfigReadFile, nil, "Failed to read file", "%s.", err)...)
	}
	head, query, asked := strings.Cut(root, "?")
	if asked {
		query = "?" + query
	}
	name := strings.TrimSuffix(path.Base(filepath.ToSlash(head)), ".git")
	found, err := catalog.Discover(dir, path.Clean("/" + filepath.ToSlash(below))[1:], name, append(rules[:len(rules):len(rules)], r.extra...))
	if err != nil {
		return nil, append(ds, diag.Errorf(diag.CodeConfigReadDir, nil, "Failed to read module directory", "The source %q of the catalog cannot be read: %s.", hidden.HideCredentials(given), err)...)
	}
	page, shown := "", ""
	if local {
		page = r.pageOf(ctx, dir)
	} else {
		shown = strings.TrimPrefix(hidden.HideCredentials(head), "git::")
		for _, scheme := range []string{"https://", "ssh://git@"} {
			shown = strings.TrimPrefix(shown, scheme)
		}
		if strings.HasPrefix(shown, "github.com/") || strings.HasPrefix(shown, "gitlab.com/") || strings.HasPrefix(shown, "bitbucket.org/") {
			shown = strings.TrimSuffix(shown, ".git")
		}
		if strings.HasPrefix(root, "git::") {
			version = scaffold.NewestTag(ctx, r.Call, strings.TrimPrefix(head, "git::"))
			q, _ := url.ParseQuery(strings.TrimPrefix(query, "?"))
			page = webPage(strings.TrimPrefix(head, "git::"), cmp.Or(q.Get("ref"), version, "HEAD"))
		}
	}
	for i := range found {
		e := &found[i]
		e.Source, e.Version = shown, version
		e.ComponentSource = head + query
		if e.Dir != "" {
			e.ComponentSource = head + "//" + e.Dir + query
		}
		if page != "" {
			e.URL = strings.TrimSuffix(page+"/"+e.Dir, "/")
		}
	}
	return found, ds
}

// git runs git and returns its output, or "" if git fails.
func (r *reader) git(ctx context.Context, words ...string) string {
	var out strings.Builder
	err := r.Run(ctx, sys.Command{Path: "git", Args: words, Dir: r.Dir, Env: r.Env.With("GIT_TERMINAL_PROMPT=0"), Stdout: &out})
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out.String())
}

// pageOf returns the web page of the repository in a directory, or "" if unknown.
func (r *reader) pageOf(ctx context.Context, dir string) string {
	if _, err := os.Stat(filepath.Join(dir, ".git")); err != nil {
		return ""
	}
	remote := r.git(ctx, "-C", dir, "config", "--get", "remote.origin.url")
	return webPage(strings.TrimPrefix(unit.Getter(remote), "git::"), cmp.Or(r.git(ctx, "-C", dir, "symbolic-ref", "--short", "HEAD"), "HEAD"))
}

// webPage returns the web page of a repository, if the host is known.
func webPage(repo, ref string) string {
	u, err := url.Parse(repo)
	if err != nil || ref == "" {
		return ""
	}
	middle := map[string]string{"github.com": "/tree/", "gitlab.com": "/-/tree/", "bitbucket.org": "/src/"}[u.Hostname()]
	if middle == "" {
		return ""
	}
	return "https://" + u.Hostname() + "/" + strings.Trim(strings.TrimSuffix(u.Path, ".git"), "/") + middle + ref
}
