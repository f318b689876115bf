// Package planfile writes plans to files and reads them.
//
// Main types: File, with Write and Read. The one rule: only the version of the program that
// wrote a plan file can read it. For any other content, Read returns an error: it never panics,
// and its memory use is bounded.
//
// # Layout
//
// A plan file is a zip archive with these members, in this order:
//
//	format               "terrace plan", the format's number and the program's version, one per line
//	plan                 the plan, as encoded in encode.go
//	tfstate              the state from which apply starts, in the format of state files
//	tfstate-prev         the state after the previous run; missing if it is the same
//	tfconfig/PATH        the configuration files, by their path from the root module's directory
//	.terraform.lock.hcl  the dependency lock file; missing if there was none
//	schemas/PROVIDER     the schemas of a provider that showing the plan needs
//
// Configuration paths outside the root module's directory begin with "../", which zip does not
// allow. They are stored as "tfconfig/^/", with one "^/" for each step up. Equal Files result
// in equal bytes.
package planfile

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
	"github.com/zclconf/go-cty/cty"
)

// A File is a saved plan with everything that is needed to apply it.
type File struct {
	Plan    *plan.Plan
	Config  map[string][]byte // files of all modules, by slash-separated path from the root module's directory
	Lock    []byte            // nil if there was none
	Backend Backend
	Schemas map[addr.Provider][]byte // in the encoding of schema.Provider.Export
}

// A Backend describes the backend of the state that the plan was made from.
type Backend struct {
	Type      string
	Config    cty.Value // wholly known, without marks; cty.NilVal if there is none
	Workspace string
}

const (
	magic  = "terrace plan"
	format = "9"

	maxMember = 1 << 30 // maximum size of one member in bytes, uncompressed
	maxFiles  = 100_000
)

// The errors that callers distinguish.
var (
	ErrNotPlan = errors.New("it is not a saved plan")
	ErrVersion = errors.New("the plan was saved by another version")
	ErrBundle  = errors.New("it is the plan of an estate")
	ErrFolder  = errors.New("it is the plan of one directory")
	ErrSealed  = errors.New("it is encrypted")
)

// IsPlan reports whether a file that begins with head may be a saved plan.
func IsPlan(head []byte) bool { return bytes.HasPrefix(head, []byte("PK\x03\x04")) }

// Write writes a plan. version is the version of the program.
func Write(w io.Writer, f *File, version string) error {
	var k Packer
	z := zip.NewWriter(w)
	member := func(name string, body []byte) error {
		m, err := k.pack(name, body)
		if err == nil {
			err = m.write(z, name)
		}
		return err
	}
	if err := member("format", head(magic, version)); err != nil {
		return err
	}
	body, err := encodePlan(f.Plan, f.Backend)
	if err != nil {
		return err
	}
	if err := member("plan", body); err != nil {
		return err
	}
	if err := writeStates(member, f.Plan); err != nil {
		return err
	}
	for _, name := range sortedKeys(f.Config) {
		stored := name
		for strings.HasPrefix(strings.TrimLeft(stored, "^/"), "../") {
			stored = strings.Replace(stored, "../", "^/", 1)
		}
		if err := member("tfconfig/"+stored, f.Config[name]); err != nil {
			return err
		}
	}
	if f.Lock != nil {
		if err := member(".terraform.lock.hcl", f.Lock); err != nil {
			return err
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(f.Schemas), func(a, b addr.Provider) int { return strings.Compare(a.String(), b.String()) }) {
		if err := member(schemaPrefix+a.String(), f.Schemas[a]); err != nil {
			return err
		}
	}
	return z.Close()
}

// schemaPrefix begins the names of the members with schemas.
const schemaPrefix = "schemas/"

// head returns the content of a file's first member.
func head(magic, version string) []byte { return []byte(magic + "\n" + format + "\n" + version + "\n") }

func writeStates(member func(string, []byte) error, p *plan.Plan) error {
	write := func(name string, s *state.State) error {
		var b bytes.Buffer
		if err := statefile.Write(&b, s, false); err != nil {
			return err
		}
		return member(name, b.Bytes())
	}
	if p.Prior != nil {
		if err := write("tfstate", p.Prior); err != nil {
			return err
		}
	}
	if p.PrevRun == nil || p.PrevRun == p.Prior {
		return nil
	}
	return write("tfstate-prev", p.PrevRun)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Read reads a saved plan of size bytes. version is the version of the program. The error wraps
// ErrNotPlan or ErrVersion where these apply.
func Read(r io.ReaderAt, size int64, version string) (*File, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		if errors.Is(err, zip.ErrFormat) {
			return nil, fmt.Errorf("%w: it is not a zip archive", ErrNotPlan)
		}
		return nil, fmt.Errorf("%w: %w", ErrNotPlan, err)
	}
	if len(z.File) > maxFiles {
		return nil, fmt.Errorf("%w: it has %d members", ErrNotPlan, len(z.File))
	}
	if !begins(z) {
		return nil, fmt.Errorf("%w of this program: it does not begin as one", ErrNotPlan)
	}
	head, err := unpack(z.File[0], 1<<10)
	if err != nil {
		return nil, err
	}
	if err := checkHead(magic, string(head), version); err != nil {
		return nil, err
	}
	return readMembers(z.File[1:])
}

// begins reports whether an archive begins with the member "format". A truncated bundle may end
// with the plan of a unit, which zip accepts as an archive with other data before it.
func begins(z *zip.Reader) bool {
	const header = 30 // size of a member's header without its name
	if len(z.File) == 0 || z.File[0].Name != "format" {
		return false
	}
	at, err := z.File[0].DataOffset()
	return err == nil && at == int64(header+len("format")+len(z.File[0].Extra))
}

func checkHead(magic, head, version string) error {
	parts := strings.Split(head, "\n")
	switch {
	case parts[0] == bundleMagic && magic != bundleMagic:
		return ErrBundle
	case len(parts) != 4 || parts[0] != magic:
		return fmt.Errorf("%w: it does not begin as one", ErrNotPlan)
	case parts[2] != version:
		return fmt.Errorf("%w: %q, while this is %q; plan again", ErrVersion, parts[2], version)
	case parts[1] != format:
		return fmt.Errorf("%w: its format is %q; plan again", ErrVersion, parts[1])
	}
	return nil
}

func readMembers(members []*zip.File) (*File, error) {
	f := &File{Config: make(map[string][]byte)}
	bodies := make(map[string][]byte)
	var total int64
	for _, m := range members {
		body, err := unpack(m, maxMember)
		if err != nil {
			return nil, err
		}
		if total += int64(len(body)); total > 2*maxMember {
			return nil, fmt.Errorf("the plan file holds more than %d bytes", int64(2*maxMember))
		}
		if name, ok := strings.CutPrefix(m.Name, "tfconfig/"); ok {
			for strings.HasPrefix(strings.TrimLeft(name, "./"), "^/") {
				name = strings.Replace(name, "^/", "../", 1)
			}
			f.Config[name] = body
			continue
		}
		if name, ok := strings.CutPrefix(m.Name, schemaPrefix); ok {
			a, err := addr.ParseProvider(name)
			if err != nil {
				return nil, fmt.Errorf("%w: the member %q is not named after a provider", ErrNotPlan, m.Name)
			}
			if f.Schemas == nil {
				f.Schemas = map[addr.Provider][]byte{}
			}
			f.Schemas[a] = body
			continue
		}
		bodies[m.Name] = body
	}
	f.Lock = bodies[".terraform.lock.hcl"]
	body, ok := bodies["plan"]
	if !ok {
		return nil, fmt.Errorf("%w: the member \"plan\" is missing", ErrNotPlan)
	}
	var err error
	if f.Plan, f.Backend, err = decodePlan(body); err != nil {
		return nil, err
	}
	if f.Plan.Prior, err = readState("tfstate", bodies); err != nil {
		return nil, err
	}
	if _, ok := bodies["tfstate-prev"]; !ok {
		f.Plan.PrevRun = f.Plan.Prior
		return f, nil
	}
	f.Plan.PrevRun, err = readState("tfstate-prev", bodies)
	return f, err
}

func readState(name string, bodies map[string][]byte) (*state.State, error) {
	body, ok := bodies[name]
	if !ok {
		return nil, nil
	}
	s, ds := statefile.Parse(name, body)
	return s, ds.Err()
}

func unpack(m *zip.File, limit int64) ([]byte, error) {
	r, err := m.Open()
	if err != nil {
		return nil, fmt.Errorf("the member %q cannot be read: %w", m.Name, err)
	}
	defer r.Close()
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("the member %q cannot be read: %w", m.Name, err)
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("the member %q holds more than %d bytes", m.Name, limit)
	}
	return body, nil
}
