package cli

import (
	"context"
	"io/fs"
	"os"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/vars"
)

// folder reads files by their names relative to a folder.
type folder struct{ *command.Call }

func (f folder) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(f.Path(name)) }
func (f folder) ReadFile(name string) ([]byte, error)       { return os.ReadFile(f.Path(name)) }

// root loads the root module alone.
func root(c *command.Call) (*config.Module, diag.List) {
	return config.Load(".", config.Options{FS: filesOf(c), Set: c.Report.Set})
}

// filesOf are the files of the folder that is worked in.
func filesOf(c *command.Call) config.FS {
	if c.Unit != nil && c.Unit.Files != nil {
		return c.Unit.Files
	}
	return folder{c}
}

// virtual are the files of a folder that is not on disk; nil for those that are.
func virtual(c *command.Call) config.FS {
	if c.Unit == nil {
		return nil
	}
	return c.Unit.Files
}

// whereState tells where state lives, for commands that read or list state:
// they need neither modules nor providers, and mistakes elsewhere in the
// configuration do not keep them from their work.
func whereState(ctx context.Context, c *command.Call, given []vars.Flag) (*place, diag.List) {
	root, _ := root(c)
	if ds := refuse(c, root); len(ds) > 0 {
		return nil, ds
	}
	if root.Backend == nil {
		cfg, ds := folderOf(c).Current(nil, nil)
		if ds.HasErrors() {
			return nil, ds
		}
		b, more := openBackend(ctx, c, cfg, nil)
		return b, append(ds, more...)
	}
	p, ds := load(ctx, c, loadOptions{vars: given, input: false, partial: true})
	if p == nil {
		return nil, ds
	}
	defer p.close()
	b, more := p.backend(ctx)
	return b, append(ds, more...)
}
