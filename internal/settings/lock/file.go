package lock

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// Name is the name of the lock file in the directory of the root module.
const Name = ".terraform.lock.hcl"

// maxSize is the maximum size, in bytes, of a lock file that is read. A lock file of a thousand
// providers with the checksums of twenty platforms has about 3 MB.
const maxSize = 64 << 20

// A File is the content of a dependency lock file. The zero value locks nothing.
type File struct {
	Providers map[addr.Provider]*Provider
	Modules   []*Module
}

// A Provider is the selected version of a provider.
type Provider struct {
	Addr        addr.Provider
	Version     versions.Version
	Constraints string       // canonical form of the constraints when the version was selected; may be ""
	Hashes      []Hash       // allowed hashes of packages; may be empty
	At          source.Range // source range of the block; zero for a new entry
}

// A Module is a remote module package pinned by version and content.
type Module struct {
	Source  string // package address without subdirectory
	Version string // version of a registry module, otherwise ""
	Hashes  []Hash
	At      source.Range
}

// Provider returns the entry of a provider, or nil. A nil File has none.
func (f *File) Provider(p addr.Provider) *Provider {
	if f == nil {
		return nil
	}
	return f.Providers[p]
}

// Module returns the entry of a module package, or nil.
func (f *File) Module(source, version string) *Module {
	if f == nil {
		return nil
	}
	for _, m := range f.Modules {
		if m.Source == source && m.Version == version {
			return m
		}
	}
	return nil
}

// SetProvider adds or replaces the entry of a provider. Its hashes are sorted, and duplicates
// removed.
func (f *File) SetProvider(p *Provider) {
	if f.Providers == nil {
		f.Providers = make(map[addr.Provider]*Provider)
	}
	p.Hashes = sortHashes(p.Hashes)
	f.Providers[p.Addr] = p
}

// SetModule adds or replaces the entry of a module package.
func (f *File) SetModule(m *Module) {
	m.Hashes = sortHashes(m.Hashes)
	for i, have := range f.Modules {
		if have.Source == m.Source && have.Version == m.Version {
			f.Modules[i] = m
			return
		}
	}
	f.Modules = append(f.Modules, m)
}

// Clone returns a copy that shares no entry with f. The clone of nil is empty.
func (f *File) Clone() *File {
	out := &File{}
	if f == nil {
		return out
	}
	for _, p := range f.Providers {
		c := *p
		c.Hashes = slices.Clone(p.Hashes)
		out.SetProvider(&c)
	}
	for _, m := range f.Modules {
		c := *m
		c.Hashes = slices.Clone(m.Hashes)
		out.Modules = append(out.Modules, &c)
	}
	return out
}

// Equal reports whether two files have the same entries, whatever their layout.
func (f *File) Equal(g *File) bool { return bytes.Equal(f.Bytes(), g.Bytes()) }

// SameProviders reports whether two files lock the same set of providers,
// whatever the versions.
func (f *File) SameProviders(g *File) bool {
	if len(f.Providers) != len(g.Providers) {
		return false
	}
	for p := range f.Providers {
		if g.Providers[p] == nil {
			return false
		}
	}
	return true
}

// Sorted returns the provider entries in the order in which they are written.
func (f *File) Sorted() []*Provider {
	out := make([]*Provider, 0, len(f.Providers))
	for _, p := range f.Providers {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *Provider) int { return CompareProviders(a.Addr, b.Addr) })
	return out
}

// CompareProviders orders addresses by host, namespace and type.
func CompareProviders(a, b addr.Provider) int {
	return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Type, b.Type))
}

// Bytes returns the file in its canonical layout.
func (f *File) Bytes() []byte {
	var b bytes.Buffer
	b.WriteString("# This file is maintained automatically by \"tofu init\".\n# Manual edits may be lost in future updates.\n")
	if f == nil {
		return b.Bytes()
	}
	for _, p := range f.Sorted() {
		b.WriteString("\nprovider " + quote(p.Addr.String()) + " {\n")
		if p.Constraints == "" {
			b.WriteString("  version = " + quote(p.Version.String()) + "\n")
		} else {
			b.WriteString("  version     = " + quote(p.Version.String()) + "\n")
			b.WriteString("  constraints = " + quote(p.Constraints) + "\n")
		}
		writeHashes(&b, p.Hashes)
		b.WriteString("}\n")
	}
	for _, m := range f.sortedModules() {
		b.WriteString("\nmodule " + quote(m.Source) + " {\n")
		if m.Version != "" {
			b.WriteString("  version = " + quote(m.Version) + "\n")
		}
		writeHashes(&b, m.Hashes)
		b.WriteString("}\n")
	}
	return b.Bytes()
}

func (f *File) sortedModules() []*Module {
	out := slices.Clone(f.Modules)
	slices.SortFunc(out, func(a, b *Module) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Version, b.Version))
	})
	return out
}

func writeHashes(b *bytes.Buffer, hs []Hash) {
	if len(hs) == 0 {
		return
	}
	b.WriteString("  hashes = [\n")
	for _, h := range sortHashes(hs) {
		b.WriteString("    " + quote(string(h)) + ",\n")
	}
	b.WriteString("  ]\n")
}

func quote(s string) string {
	return string(hclwrite.TokensForValue(cty.StringVal(s)).Bytes())
}

// Read reads the lock file at path. files reads it and may be nil. If the file does not exist,
// the result is empty.
func Read(files *readfile.Kept, path string) (*File, diag.List) {
	src, err := readBounded(files, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &File{}, nil
	case err != nil:
		return &File{}, diag.Errorf(diag.CodeFilesRead, nil, "Failed to read dependency lock file", "The dependency lock file could not be read: %s.", err)
	}
	return Parse(src, path)
}

func readBounded(files *readfile.Kept, path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.Size() > maxSize || !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a lock file: it is not a regular file of at most 64 MiB")}
	}
	return files.Whole(path)
}

// Write replaces the lock file at path atomically. It replaces a symbolic link instead of
// following it, as OpenTofu does, since a checkout can contain a link to another file of the
// user. It keeps the permissions of an existing file.
func Write(path string, f *File) error { return atomicfile.WriteUnlinked(path, f.Bytes(), 0o644) }
