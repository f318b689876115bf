package testprovider

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// A server is one process of the test provider.
type server struct {
	pb6.UnimplementedProviderServer
	protocol int
	*catalog
	*generatedTypes
	asked func() // called for each schema request; may be nil

	mu     sync.Mutex
	config settings
	folder string        // of the state store
	stop   chan struct{} // closed when the caller asks to stop
}

// settings is the provider's configuration.
type settings struct {
	prefix, recordPath, dumpPath, world, misbehave string
	delay, answeredDelay                           time.Duration
}

func newServer(protocol int) *server {
	return &server{protocol: protocol, catalog: catalogs[protocol](), generatedTypes: typesFromEnv(), stop: make(chan struct{})}
}

func (s *server) settings() settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config
}

const objectVersion = 2

func (s *server) GetMetadata(context.Context, *pb6.Empty) (*pb6.Metadata, error) {
	out := &pb6.Metadata{
		ServerCapabilities: s.capabilities(), Resources: []*pb6.Named{{Name: "test_object"}, {Name: "test_record"}, {Name: "test_old"}, {Name: "test_group"}},
		DataSources: []*pb6.Named{{Name: "test_data"}}, EphemeralResources: []*pb6.Named{{Name: "test_secret"}},
	}
	for name := range s.resources {
		out.Resources = append(out.Resources, &pb6.Named{Name: name})
	}
	for name := range s.datas {
		out.DataSources = append(out.DataSources, &pb6.Named{Name: name})
	}
	return out, nil
}

func (s *server) capabilities() *pb6.ServerCapabilities {
	six := s.protocol == 6
	return &pb6.ServerCapabilities{PlanDestroy: six, GetProviderSchemaOptional: six, MoveResourceState: true, GenerateResourceConfig: true}
}

func (s *server) GetProviderSchema(context.Context, *pb6.Empty) (*pb6.ProviderSchema, error) {
	if s.asked != nil {
		s.asked()
	}
	out := &pb6.ProviderSchema{
		Provider:           encodeSchema(s.protocol, 0, s.provider),
		ServerCapabilities: s.capabilities(), Functions: functionList(),
		ResourceSchemas: map[string][]byte{
			"test_object": encodeSchema(s.protocol, objectVersion, s.object), "test_record": encodeSchema(s.protocol, 0, s.record),
			"test_old": encodeSchema(s.protocol, 0, s.old), "test_group": encodeSchema(s.protocol, 0, s.group),
		},
		DataSourceSchemas:        map[string][]byte{"test_data": encodeSchema(s.protocol, 0, s.data)},
		EphemeralResourceSchemas: map[string][]byte{"test_secret": encodeSchema(s.protocol, 0, s.secret)},
		ListResourceSchemas:      map[string][]byte{"test_object": encodeSchema(s.protocol, 0, s.list)},
		ActionSchemas:            map[string]*pb6.ActionSchema{"test_action": {Schema: encodeSchema(s.protocol, 0, s.action)}},
	}
	for name, b := range s.resources {
		out.ResourceSchemas[name] = encodeSchema(s.protocol, 0, b)
	}
	for name, b := range s.datas {
		out.DataSourceSchemas[name] = encodeSchema(s.protocol, 0, b)
	}
	if s.protocol == 6 {
		out.StateStoreSchemas = map[string][]byte{"test_store": encodeSchema(s.protocol, 0, s.store)}
	}
	return schemaMischief(os.Getenv("TEST_MISBEHAVE"), out)
}

func (s *server) GetResourceIdentitySchemas(context.Context, *pb6.Empty) (*pb6.IdentitySchemas, error) {
	id := &pb6.IdentitySchema{Version: 1}
	for name, a := range s.identity.Attributes {
		id.IdentityAttributes = append(id.IdentityAttributes, &pb6.IdentityAttribute{
			Name: name, Type: typeJSON(a.Type), RequiredForImport: a.Required, OptionalForImport: a.Optional,
		})
	}
	return &pb6.IdentitySchemas{IdentitySchemas: map[string]*pb6.IdentitySchema{"test_object": id}}, nil
}

func (s *server) ValidateProviderConfig(_ context.Context, req *pb6.ValidateProviderRequest) (*pb6.ValidateProviderResponse, error) {
	v, err := decodeValue(req.Config, s.codec(s.provider))
	if err != nil {
		return nil, err
	}
	out := &pb6.ValidateProviderResponse{}
	if s.protocol == 5 {
		out.PreparedConfig = req.Config
	}
	m := misbehavior(text(v, "misbehave"), "validate")
	out.Diagnostics = m.diagnostics()
	if text(v, "prefix") == "invalid" {
		out.Diagnostics = append(out.Diagnostics, problem("Invalid prefix", "The prefix must not be \"invalid\".", "prefix")...)
	}
	return out, m.before()
}

func (s *server) ConfigureProvider(ctx context.Context, req *pb6.ConfigureRequest) (*pb6.Diagnostics, error) {
	v, err := decodeValue(req.Config, s.codec(s.provider))
	if err != nil {
		return nil, err
	}
	m := misbehavior(text(v, "misbehave")+","+os.Getenv("TEST_MISBEHAVE"), "configure") // the variable is for configurations without a block
	if m == mDeferrable {
		if m = ""; !req.ClientCapabilities.GetDeferralAllowed() {
			m = mError
		}
	}
	if err := m.before(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = settings{
		prefix: text(v, "prefix"), recordPath: text(v, "record_path"), dumpPath: text(v, "dump_path"), world: text(v, "world"), misbehave: text(v, "misbehave"),
		delay:         time.Duration(number(v, "delay_ms")) * time.Millisecond,
		answeredDelay: time.Duration(number(v, "answered_delay_ms")) * time.Millisecond,
	}
	return &pb6.Diagnostics{Diagnostics: m.diagnostics()}, nil
}

// StopProvider ends calls that are sleeping.
func (s *server) StopProvider(context.Context, *pb6.Empty) (*pb6.StopResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	return &pb6.StopResponse{}, nil
}

// sleep waits for the delays of the object and of the provider. It returns false if it was
// stopped.
func (s *server) sleep(ctx context.Context, obj cty.Value) bool {
	d := s.settings().delay + time.Duration(number(obj, "sleep_ms"))*time.Millisecond
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.stop:
		return false
	case <-ctx.Done():
		return false
	}
}

// block returns the schema of a managed type, or nil.
func (s *server) block(typ string) *schema.Block {
	switch typ {
	case "test_object":
		return s.object
	case "test_record":
		return s.record
	case "test_old":
		return s.old
	case "test_group":
		return s.group
	}
	return s.resources[typ]
}

// dataBlock returns the schema of a data source.
func (s *server) dataBlock(typ string) *schema.Block {
	if b := s.datas[typ]; b != nil {
		return b
	}
	return s.data
}

// codec returns the codec of a schema.
func (s *server) codec(of typed) *value.Codec {
	if c := s.catalog.codecs[of]; c != nil {
		return c
	}
	return s.generatedTypes.codec(of.(*schema.Block))
}

// validate is the common part of all validations of a typed configuration.
func (s *server) validate(req *pb6.ValidateRequest, b *schema.Block) (*pb6.Diagnostics, error) {
	v, err := decodeValue(req.Config, s.codec(b))
	if err != nil {
		return nil, err
	}
	m := misbehavior(text(v, "misbehave"), "validate")
	if err := m.before(); err != nil {
		return nil, err
	}
	out := &pb6.Diagnostics{Diagnostics: m.diagnostics()}
	if b.Attributes["name"] != nil && text(v, "name") == "invalid" {
		out.Diagnostics = append(out.Diagnostics, problem("Invalid name", "The name must not be \"invalid\".", "name")...)
	}
	if !req.ClientCapabilities.GetWriteOnlyAttributesAllowed() && b == s.object && len(b.WriteOnlyPaths(v)) > 0 && text(v, "wo") != "" {
		out.Diagnostics = append(out.Diagnostics, problem("Write-only attribute not allowed", "The caller does not know write-only attributes.", "wo")...)
	}
	return out, nil
}

func (s *server) ValidateResourceConfig(_ context.Context, req *pb6.ValidateRequest) (*pb6.Diagnostics, error) {
	b := s.block(req.TypeName)
	if b == nil {
		return &pb6.Diagnostics{Diagnostics: unknownType(req.TypeName)}, nil
	}
	return s.validate(req, b)
}

func unknownType(typ string) []*pb6.Diagnostic {
	return problem("Unknown type", "There is no type "+typ+".")
}

func (s *server) ValidateDataResourceConfig(_ context.Context, req *pb6.ValidateRequest) (*pb6.Diagnostics, error) {
	return s.validate(req, s.dataBlock(req.TypeName))
}

func (s *server) ValidateEphemeralResourceConfig(_ context.Context, req *pb6.ValidateRequest) (*pb6.Diagnostics, error) {
	return s.validate(req, s.secret)
}

func (s *server) ValidateListResourceConfig(_ context.Context, req *pb6.ValidateListRequest) (*pb6.Diagnostics, error) {
	return s.validate(&pb6.ValidateRequest{TypeName: req.TypeName, Config: req.Config}, s.list)
}

func (s *server) ValidateActionConfig(_ context.Context, req *pb6.ValidateRequest) (*pb6.Diagnostics, error) {
	return s.validate(req, s.action)
}

func (s *server) ValidateStateStoreConfig(_ context.Context, req *pb6.ValidateRequest) (*pb6.Diagnostics, error) {
	return s.validate(req, s.store)
}
