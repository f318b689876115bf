package discovery

import (
	"context"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
)

// Beyond returns errors about dependencies of units that are outside of root, the directory that
// is copied to other machines: modules, other units and files in the unit language. Paths in
// worktrees count as paths in the repository's own directory.
func (f *Found) Beyond(ctx context.Context, root string) diag.List {
	var ds diag.List
	inside := func(path string) bool {
		path = f.Checkouts.CheckedOut(path)
		rel, err := filepath.Rel(root, path)
		return err == nil && filepath.IsLocal(rel)
	}
	t := f.modules.static.Task(ctx)
	for _, u := range f.Units {
		if u.unread() || u.Excluded != "" {
			continue
		}
		say := func(at *source.Range, what, path string) {
			if at == nil {
				at = &source.Range{Filename: u.Path, Start: hcl.InitialPos, End: hcl.InitialPos}
			}
			ds = append(ds, diag.Errorf(diag.CodeRemoteFiles, at, "Directory outside of the run's files", "The unit %s needs %s %s, which workers do not get: the files of a run with --on are those below %s, the root of the repository, or without one the directory that the command is started in. Start the command in a directory above both, make that a repository, or use --in-place where workers see the same files.", u.Called(), what, path, root)...)
		}
		said := len(ds)
		for _, edge := range u.edges {
			if !inside(edge.ID) {
				say(edge.At, "the unit", edge.ID)
			}
		}
		for _, dir := range f.modules.dirs(ctx, u) {
			if inside(dir) {
				continue
			}
			var at *source.Range
			if tf, more := u.In(f.modules.static).Terraform(t); !more.HasErrors() && tf != nil && tf.Source != nil {
				at = tf.Source.At
			}
			say(at, "the module", dir)
			break // one error per unit suffices; the other modules are called by this one
		}
		if len(ds) > said {
			continue
		}
		files, _ := u.In(f.modules.static).Files(t)
		for _, path := range files {
			if filepath.Ext(path) == ".hcl" && !inside(path) {
				say(nil, "the file", path)
			}
		}
	}
	return ds
}
