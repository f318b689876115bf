package cli

import (
	"context"
	"io/fs"
	"os"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/vars"
)

// folder reads files by their names relative to a folder.
type folder struct{ *session }

func (f folder) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(f.Path(name)) }
func (f folder) ReadFile(name string) ([]byte, error)       { return os.ReadFile(f.Path(name)) }

// root loads the root module alone.
func (s *session) root() (*config.Module, diag.List) {
	return config.Load(".", config.Options{FS: folder{s}, Set: s.set})
}

// whereState tells where state lives, for commands that read or list state:
// they need neither modules nor providers, and mistakes elsewhere in the
// configuration do not keep them from their work.
func (s *session) whereState(ctx context.Context, flags []vars.Flag) (*place, diag.List) {
	root, _ := s.root()
	if ds := s.refuse(root); len(ds) > 0 {
		return nil, ds
	}
	if root.Backend == nil {
		c, ds := s.workdir().Current(nil, nil)
		if ds.HasErrors() {
			return nil, ds
		}
		b, more := s.openBackend(ctx, c, nil)
		return b, append(ds, more...)
	}
	p, ds := s.load(ctx, loadOptions{vars: flags, input: false, partial: true})
	if p == nil {
		return nil, ds
	}
	defer p.close()
	b, more := p.backend(ctx)
	return b, append(ds, more...)
}
