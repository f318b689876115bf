package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/internal/provider/schemacache"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// SchemaCache caches the schemas of provider programs, so that each is requested once,
// however many processes run. It also records which programs need TLS. The zero SchemaCache
// is empty and ready to use. It may be used concurrently.
type SchemaCache struct {
	Files schemacache.Cache // schemas of earlier commands; the zero value has none

	mu      sync.Mutex
	entries map[string]*cacheEntry
	tls     map[string]bool // programs that failed without TLS
}

func (c *SchemaCache) needsTLS(program string) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tls[program]
}

func (c *SchemaCache) setNeedsTLS(program string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tls == nil {
		c.tls = map[string]bool{}
	}
	c.tls[program] = true
}

type cacheEntry struct {
	mu    sync.Mutex // held while the schema is requested
	s     *schemas
	noted bool // the package is in the list of the provider's releases
}

func (c *SchemaCache) entry(key string) *cacheEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = make(map[string]*cacheEntry)
	}
	e := c.entries[key]
	if e == nil {
		e = new(cacheEntry)
		c.entries[key] = e
	}
	return e
}

// cacheKey identifies a program. The key changes if the file is replaced, and includes the
// arguments, because one program can contain several providers.
func cacheKey(path string, args []string, protocol int) string {
	key := fmt.Sprintf("%d\x00%s\x00%s", protocol, path, strings.Join(args, "\x00"))
	if info, err := os.Stat(path); err == nil {
		key += fmt.Sprintf("\x00%d\x00%d", info.Size(), info.ModTime().UnixNano())
	}
	return key
}

// # Schemas of earlier commands
//
// The schemas of a package whose hash was verified are kept in Files. The schema that a process
// would send later cannot differ, because the key contains everything that determines it: the hash
// of the package, the arguments, and the switches in the environment. Some providers have other
// resource types if such a switch is set. The protocol is part of the content: a process with
// another one has its schemas requested and kept again.
//
// Packages without a verified hash, such as development overrides, and attached plugins are not
// kept.

// packageKey returns the key of a package's schemas in Files, or "" if they are not kept.
func packageKey(o Options) string {
	if o.Package == "" || o.Cache == nil || !o.Cache.Files.Enabled() {
		return ""
	}
	parts := append([]string{o.Package}, o.Args...)
	return strings.Join(append(parts, switches(o.Env)...), "\x00")
}

// unread lists variables that select no schema, although their values may look like switches. A
// name that ends with "_" includes all names that begin with it.
var unread = []string{"TF_VAR_", "TF_INPUT", "TF_IN_AUTOMATION", "TG_", "TERRACE_", "XDG_", "SHLVL", "CI", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"}

// switches returns the variables of an environment that a schema can depend on, sorted: those that
// turn something on or off or select one of a few variants. Others, such as credentials, change
// often and select no schema.
func switches(env []string) []string {
	var out []string
	for _, v := range env {
		name, text, _ := strings.Cut(v, "=")
		if strings.Trim(strings.ToUpper(name), "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") != "" {
			continue // shells and other programs add variables such as "=C:", which no provider reads
		}
		switch strings.ToLower(text) {
		case "true", "false", "yes", "no", "on", "off", "enabled", "disabled":
		default:
			if len(text) != 1 {
				continue
			}
		}
		if !slices.ContainsFunc(unread, func(u string) bool { return u == name || strings.HasSuffix(u, "_") && strings.HasPrefix(name, u) }) {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

// Kept returns the schemas of a provider that are known without a process, or nil.
func (c *SchemaCache) Kept(o Options) *schema.Provider {
	o.Cache = c
	if s := c.kept(packageKey(o)); s != nil {
		c.note(o)
		return s.provider
	}
	return nil
}

// # Schemas of packages that are not installed
//
// An editor shows the schema of a provider before init has installed it. So a list of the releases of
// each provider whose schemas are kept, with the keys of their packages, is kept too.

// releaseSection contains the keys of packages, by version.
const releaseSection = "release"

// releasesKey returns the key of the list of a provider's releases in Files.
func releasesKey(a addr.Provider, env []string) string {
	return strings.Join(append([]string{"releases of " + a.String()}, switches(env)...), "\x00")
}

// note adds a package to the list of the releases of its provider.
func (c *SchemaCache) note(o Options) {
	key := packageKey(o)
	if key == "" || o.Release == "" {
		return
	}
	e := c.entry("release\x00" + key)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.noted {
		return
	}
	e.noted = true
	list := releasesKey(o.Addr, o.Env)
	all := map[string][]byte{o.Release: []byte(key)}
	for version, known := range c.releases(list) {
		if version != o.Release {
			all[version] = []byte(known)
		} else if known == key {
			return
		}
	}
	c.Files.Keep(list, schemacache.Sections{releaseSection: all})
}

// releases returns the keys of the packages in a list, by version.
func (c *SchemaCache) releases(list string) map[string]string {
	f := c.Files.Open(list)
	if f == nil {
		return nil
	}
	out := map[string]string{}
	for _, version := range f.Names(releaseSection) {
		if key, err := f.Entry(releaseSection, version); err == nil {
			out[version] = string(key)
		}
	}
	return out
}

// Releases returns the versions of a provider whose schemas an earlier command has kept, on this machine
// and with the same switches in the environment.
func (c *SchemaCache) Releases(a addr.Provider, env []string) []string {
	return slices.Sorted(maps.Keys(c.releases(releasesKey(a, env))))
}

// Release returns the kept schemas of a version of a provider, or nil. The package may be gone.
func (c *SchemaCache) Release(a addr.Provider, env []string, version string) *schema.Provider {
	if s := c.kept(c.releases(releasesKey(a, env))[version]); s != nil {
		return s.provider
	}
	return nil
}

// kept returns the schemas of a package, or nil.
func (c *SchemaCache) kept(key string) *schemas {
	if c == nil || key == "" {
		return nil
	}
	e := c.entry("package\x00" + key)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.s == nil {
		if f := c.Files.Open(key); f != nil {
			e.s, _ = newSchemas(f) // schemas that cannot be decoded are requested again
		}
	}
	return e.s
}

// keep stores the schemas of a package for later commands. It returns schemas that are read from
// the file, so that those that the plugin has sent can be released, or s if there is no file.
func (c *SchemaCache) keep(key string, s *schemas) *schemas {
	if c == nil || key == "" {
		return s
	}
	e := c.entry("package\x00" + key)
	e.mu.Lock()
	defer e.mu.Unlock()
	if sections, ok := s.entries.(schemacache.Sections); ok {
		c.Files.Keep(key, sections)
		if f := c.Files.Open(key); f != nil {
			if again, err := newSchemas(f); err == nil {
				s = again
			}
		}
	}
	e.s = s
	return s
}

// schemas contains everything that a provider declares. A type is decoded on first use.
type schemas struct {
	provider *schema.Provider
	protocol int
	caps     *pb6.ServerCapabilities // may be nil
	entries  entries

	codecs sync.Map // *value.Codec by typed

	mu      sync.Mutex
	invalid map[string]error // by mode and type: the reason why a schema is invalid
}

// entries contains the encoded declarations, by section and name.
type entries interface {
	Names(section string) []string              // sorted
	Entry(section, name string) ([]byte, error) // nil if there is none
}

// The sections with types and functions are named by the protocol's names for these. aboutSection
// contains the entries that occur once.
const (
	aboutSection    = "about"
	functionSection = "function"
	identitySection = "identity"
)

// The entries of aboutSection.
const (
	protocolEntry = "protocol"
	capsEntry     = "capabilities"
	configEntry   = "provider"
	metaEntry     = "provider_meta"
)

// sectionOf returns the section of the types of a mode.
func sectionOf(mode addr.Mode) string { return mode.String() }

// typed is a block or an object; each declaration has exactly one.
type typed interface{ ImpliedType() cty.Type }

// codec returns the codec of a block or an object. It is built once.
func (s *schemas) codec(of typed) *value.Codec {
	if c, ok := s.codecs.Load(of); ok {
		return c.(*value.Codec)
	}
	c, _ := s.codecs.LoadOrStore(of, value.NewCodec(of.ImpliedType()))
	return c.(*value.Codec)
}

// schemas returns the declarations of the plugin, from the cache if possible. A plugin
// without the capability GetProviderSchemaOptional always receives the call.
func (c *Client) schemas(ctx context.Context) (*schemas, diag.List) {
	if s := c.loaded.Load(); s != nil {
		return s, nil
	}
	c.loading.Lock()
	defer c.loading.Unlock()
	if s := c.loaded.Load(); s != nil {
		return s, nil
	}
	e := new(cacheEntry)
	if c.cache != nil && c.key != "" {
		e = c.cache.entry(c.key)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.s == nil {
		if s := c.cache.kept(c.packageKey); s != nil && s.protocol == c.protocol {
			e.s = s
		}
	}
	if e.s == nil {
		s, ds := c.readSchemas(ctx)
		if ds.HasErrors() {
			return nil, ds
		}
		e.s = c.cache.keep(c.packageKey, s)
		if c.kept != nil {
			c.kept()
		}
	} else if !e.s.provider.Capabilities.SchemaOptional {
		if _, ds := c.readProviderSchema(ctx); ds.HasErrors() {
			return nil, ds
		}
	}
	c.loaded.Store(e.s)
	return e.s, nil
}

func (c *Client) readProviderSchema(ctx context.Context) (*pb6.ProviderSchema, diag.List) {
	what := call{what: "tell its schema"}
	resp, err := c.rpc.GetProviderSchema(ctx, &pb6.Empty{})
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	return resp, c.messages(what, resp.Diagnostics)
}

func (c *Client) readSchemas(ctx context.Context) (*schemas, diag.List) {
	resp, ds := c.readProviderSchema(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	about := map[string][]byte{protocolEntry: []byte(strconv.Itoa(c.protocol)), configEntry: resp.Provider}
	if len(resp.ProviderMeta) > 0 {
		about[metaEntry] = resp.ProviderMeta
	}
	all := schemacache.Sections{
		aboutSection: about, functionSection: {}, identitySection: {},
		sectionOf(addr.Managed): resp.ResourceSchemas, sectionOf(addr.Data): resp.DataSourceSchemas, sectionOf(addr.Ephemeral): resp.EphemeralResourceSchemas,
		sectionOf(addr.List): resp.ListResourceSchemas,
		StateStore.String():  resp.StateStoreSchemas, Action.String(): {},
	}
	var e encoder
	if resp.ServerCapabilities != nil {
		about[capsEntry] = e.message(resp.ServerCapabilities)
	}
	for name, f := range resp.Functions {
		all[functionSection][name] = e.message(f)
	}
	for name, a := range resp.ActionSchemas {
		all[Action.String()][name] = a.GetSchema()
	}
	what := call{what: "tell its schema"}
	s, err := newSchemas(all)
	if err != nil {
		return nil, c.nonsense(what, "%s", err)
	}
	identities, ds := c.readIdentities(ctx)
	for name, id := range identities {
		all[identitySection][name] = e.message(id)
	}
	if e.err != nil {
		return nil, c.nonsense(what, "its schema cannot be encoded: %s", e.err)
	}
	return s, ds
}

// An encoder encodes messages and keeps the first error.
type encoder struct{ err error }

func (e *encoder) message(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if e.err == nil {
		e.err = err
	}
	return b
}

// newSchemas decodes all entries that are needed at once. An entry that is nil where there must
// be one is an error.
func newSchemas(all entries) (*schemas, error) {
	s := &schemas{entries: all}
	p := &schema.Provider{Types: make(map[addr.Mode][]string), Decode: s.decode, Why: s.why, Others: s.others, Export: s.export}
	s.provider = p
	about := map[string][]byte{}
	for _, name := range all.Names(aboutSection) {
		b, err := all.Entry(aboutSection, name)
		if err != nil {
			return nil, err
		}
		about[name] = b
	}
	var err error
	if s.protocol, err = strconv.Atoi(string(about[protocolEntry])); err != nil {
		return nil, fmt.Errorf("the version of its protocol is unknown: %w", err)
	}
	if caps, ok := about[capsEntry]; ok {
		s.caps = &pb6.ServerCapabilities{}
		if err := proto.Unmarshal(caps, s.caps); err != nil {
			return nil, err
		}
		p.Capabilities = schema.Capabilities{PlanDestroy: s.caps.PlanDestroy, SchemaOptional: s.caps.GetProviderSchemaOptional, MoveResourceState: s.caps.MoveResourceState, GenerateConfig: s.caps.GenerateResourceConfig}
	}
	for _, mode := range []addr.Mode{addr.Managed, addr.Data, addr.Ephemeral, addr.List} {
		p.Types[mode] = all.Names(sectionOf(mode))
	}
	if p.Config, err = s.block(about[configEntry]); err != nil {
		return nil, fmt.Errorf("the schema of its configuration cannot be used: %w", err)
	}
	if meta, ok := about[metaEntry]; ok {
		if p.Meta, err = s.block(meta); err != nil {
			return nil, fmt.Errorf("the schema of provider_meta cannot be used: %w", err)
		}
	}
	functions := map[string]*pb6.Function{}
	for _, name := range all.Names(functionSection) {
		functions[name] = &pb6.Function{}
		if err := s.message(functionSection, name, functions[name]); err != nil {
			return nil, err
		}
	}
	if p.Functions, err = toFunctions(functions); err != nil {
		return nil, fmt.Errorf("its functions cannot be used: %w", err)
	}
	return s, nil
}

// message decodes an entry.
func (s *schemas) message(section, name string, m proto.Message) error {
	b, err := s.entries.Entry(section, name)
	if err != nil {
		return err
	}
	return proto.Unmarshal(b, m)
}

// readIdentities requests the schemas of identities. Older plugins do not have this call.
func (c *Client) readIdentities(ctx context.Context) (map[string]*pb6.IdentitySchema, diag.List) {
	what := call{what: "tell the schemas of its resource identities"}
	resp, err := c.rpc.GetResourceIdentitySchemas(ctx, &pb6.Empty{})
	if status.Code(err) == codes.Unimplemented {
		return nil, nil
	}
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	return resp.IdentitySchemas, c.messages(what, resp.Diagnostics)
}

// block decodes a schema and returns its block. No schema means an empty block.
func (s *schemas) block(raw []byte) (*schema.Block, error) {
	if len(raw) == 0 {
		return &schema.Block{}, nil
	}
	r, err := decodeSchema(s.protocol, raw)
	if err != nil {
		return nil, err
	}
	return r.Block, nil
}

// decode implements the field Decode of schema.Provider.
func (s *schemas) decode(mode addr.Mode, typ string) *schema.Resource {
	raw, err := s.entries.Entry(sectionOf(mode), typ)
	if raw == nil && err == nil {
		return nil
	}
	var r *schema.Resource
	if err == nil {
		r, err = decodeSchema(s.protocol, raw)
	}
	if err == nil && mode == addr.Managed {
		err = s.addIdentity(r, typ)
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.invalid == nil {
			s.invalid = make(map[string]error)
		}
		s.invalid[mode.Prefix()+typ] = err
		return nil
	}
	return r
}

// addIdentity decodes the identity of a type, if there is one.
func (s *schemas) addIdentity(r *schema.Resource, typ string) error {
	raw, err := s.entries.Entry(identitySection, typ)
	if raw == nil || err != nil {
		return err
	}
	var id pb6.IdentitySchema
	if err := proto.Unmarshal(raw, &id); err != nil {
		return err
	}
	r.IdentityVersion = id.Version
	r.Identity, err = toIdentity(&id)
	return err
}

// others implements the field Others of schema.Provider.
func (s *schemas) others(of schema.OtherKind) (map[string]*schema.Block, error) {
	kind := map[schema.OtherKind]Kind{schema.Actions: Action, schema.StateStores: StateStore}[of]
	out := map[string]*schema.Block{}
	for _, name := range s.entries.Names(kind.String()) {
		raw, err := s.entries.Entry(kind.String(), name)
		if err != nil {
			return nil, err
		}
		if out[name], err = s.block(raw); err != nil {
			return nil, fmt.Errorf("the schema of the %s %s cannot be used: %w", kind, name, err)
		}
	}
	return out, nil
}

// export implements the field Export of schema.Provider.
func (s *schemas) export(types map[addr.Mode][]string) ([]byte, error) {
	out := schemacache.Sections{}
	put := func(section, name string) error {
		b, err := s.entries.Entry(section, name)
		if b == nil || err != nil {
			return err
		}
		if out[section] == nil {
			out[section] = map[string][]byte{}
		}
		out[section][name] = b
		return nil
	}
	for _, name := range s.entries.Names(aboutSection) {
		if err := put(aboutSection, name); err != nil {
			return nil, err
		}
	}
	for mode, names := range types {
		for _, name := range names {
			err := put(sectionOf(mode), name)
			if err == nil && mode == addr.Managed {
				err = put(identitySection, name)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return json.Marshal(out)
}

// ImportSchemas returns the schemas in the result of the function Export of a schema.Provider.
func ImportSchemas(b []byte) (*schema.Provider, error) {
	var all schemacache.Sections
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	s, err := newSchemas(all)
	if err != nil {
		return nil, err
	}
	return s.provider, nil
}

// why implements the field Why of schema.Provider.
func (s *schemas) why(mode addr.Mode, typ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.invalid[mode.Prefix()+typ]
}

// resource returns the schema of a type, or the reason why it has none.
func (s *schemas) resource(mode addr.Mode, typ string) (*schema.Resource, error) {
	if r := s.provider.Resource(mode, typ); r != nil {
		return r, nil
	}
	if err := s.why(mode, typ); err != nil {
		return nil, fmt.Errorf("the schema of %s%s cannot be used: %w", mode.Prefix(), typ, err)
	}
	return nil, fmt.Errorf("it has no type %s%s", mode.Prefix(), typ)
}
