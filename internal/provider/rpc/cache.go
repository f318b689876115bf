package rpc

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// SchemaCache caches the schemas of provider programs, so that each is requested once,
// however many processes run. It also records which programs need TLS. The zero SchemaCache
// is empty and ready to use. It may be used concurrently.
type SchemaCache struct {
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
	mu sync.Mutex // held while the schema is requested
	s  *schemas
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

// schemas contains everything that a provider declares. A type is decoded on first use.
type schemas struct {
	provider *schema.Provider
	protocol int
	raw      map[addr.Mode]map[string][]byte
	identity map[string]*pb6.IdentitySchema
	rest     *pb6.ProviderSchema // list resources, state stores and actions

	codecs sync.Map // *value.Codec by typed

	mu      sync.Mutex
	invalid map[string]error // by mode and type: the reason why a schema is invalid
}

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
		s, ds := c.readSchemas(ctx)
		if ds.HasErrors() {
			return nil, ds
		}
		e.s = s
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
	s := &schemas{protocol: c.protocol, rest: resp, raw: map[addr.Mode]map[string][]byte{
		addr.Managed: resp.ResourceSchemas, addr.Data: resp.DataSourceSchemas, addr.Ephemeral: resp.EphemeralResourceSchemas,
	}}
	what := call{what: "tell its schema"}
	p := &schema.Provider{Types: make(map[addr.Mode][]string), Decode: s.decode, Why: s.why}
	if caps := resp.ServerCapabilities; caps != nil {
		p.Capabilities = schema.Capabilities{PlanDestroy: caps.PlanDestroy, SchemaOptional: caps.GetProviderSchemaOptional, MoveResourceState: caps.MoveResourceState}
	}
	for mode, types := range s.raw {
		p.Types[mode] = slices.Sorted(maps.Keys(types))
	}
	var err error
	if p.Config, err = s.block(resp.Provider); err != nil {
		return nil, c.nonsense(what, "the schema of its configuration cannot be used: %s", err)
	}
	if len(resp.ProviderMeta) > 0 {
		if p.Meta, err = s.block(resp.ProviderMeta); err != nil {
			return nil, c.nonsense(what, "the schema of provider_meta cannot be used: %s", err)
		}
	}
	if p.Functions, err = toFunctions(resp.Functions); err != nil {
		return nil, c.nonsense(what, "its functions cannot be used: %s", err)
	}
	s.provider = p
	s.identity, ds = c.readIdentities(ctx)
	return s, ds
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
	raw, ok := s.raw[mode][typ]
	if !ok {
		return nil
	}
	r, err := decodeSchema(s.protocol, raw)
	if id := s.identity[typ]; err == nil && mode == addr.Managed && id != nil {
		r.Identity, err = toIdentity(id)
		r.IdentityVersion = id.Version
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
