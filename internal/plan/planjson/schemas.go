package planjson

import (
	"encoding/json"
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// SchemasVersion is the format version of the ProviderSchemas document.
const SchemasVersion = "1.0"

// ProviderSchemas returns the document of `providers schema -json` with everything that
// providers declare. A resource type with an invalid schema is an error.
func ProviderSchemas(ps map[addr.Provider]*schema.Provider) ([]byte, error) {
	doc := struct {
		Format  string                     `json:"format_version"`
		Schemas map[string]*providerSchema `json:"provider_schemas,omitempty"`
	}{Format: SchemasVersion, Schemas: map[string]*providerSchema{}}
	for a, p := range ps {
		one, err := newProviderSchema(p)
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", a, err)
		}
		if a.IsBuiltIn() {
			one.Provider.Block = nil // the provider has no configuration
		}
		doc.Schemas[a.String()] = one
	}
	return json.Marshal(doc)
}

type providerSchema struct {
	Provider   resourceSchema             `json:"provider"`
	Resources  map[string]*resourceSchema `json:"resource_schemas,omitempty"`
	Data       map[string]*resourceSchema `json:"data_source_schemas,omitempty"`
	Ephemeral  map[string]*resourceSchema `json:"ephemeral_resource_schemas,omitempty"`
	Functions  map[string]*functionSchema `json:"functions,omitempty"`
	Identities map[string]*identitySchema `json:"resource_identity_schemas,omitempty"`
	Lists      map[string]*resourceSchema `json:"list_resource_schemas,omitempty"`
	Actions    map[string]*actionSchema   `json:"action_schemas,omitempty"`
	Stores     map[string]*resourceSchema `json:"state_store_schemas,omitempty"`
}

type actionSchema struct {
	Block *blockSchema `json:"block"`
}

type resourceSchema struct {
	Version int64        `json:"version"`
	Block   *blockSchema `json:"block,omitempty"`
}

type blockSchema struct {
	Attributes  map[string]*attributeSchema `json:"attributes,omitempty"`
	Blocks      map[string]*nestedSchema    `json:"block_types,omitempty"`
	Description string                      `json:"description,omitempty"`
	Kind        string                      `json:"description_kind,omitempty"`
	Deprecated  bool                        `json:"deprecated,omitempty"`
	Message     string                      `json:"deprecation_message,omitempty"`
}

type nestedSchema struct {
	Nesting  string       `json:"nesting_mode"`
	Block    *blockSchema `json:"block"`
	MinItems int          `json:"min_items,omitempty"`
	MaxItems int          `json:"max_items,omitempty"`
}

type attributeSchema struct {
	Type        json.RawMessage `json:"type,omitempty"`
	Nested      *objectSchema   `json:"nested_type,omitempty"`
	Description string          `json:"description,omitempty"`
	Kind        string          `json:"description_kind,omitempty"`
	Deprecated  bool            `json:"deprecated,omitempty"`
	Message     string          `json:"deprecation_message,omitempty"`
	Required    bool            `json:"required,omitempty"`
	Optional    bool            `json:"optional,omitempty"`
	Computed    bool            `json:"computed,omitempty"`
	Sensitive   bool            `json:"sensitive,omitempty"`
	WriteOnly   bool            `json:"write_only,omitempty"`
}

type objectSchema struct {
	Attributes map[string]*attributeSchema `json:"attributes,omitempty"`
	Nesting    string                      `json:"nesting_mode"`
}

type functionSchema struct {
	Description string             `json:"description"`
	Summary     string             `json:"summary"`
	Message     string             `json:"deprecation_message,omitempty"`
	Return      json.RawMessage    `json:"return_type"`
	Params      []*parameterSchema `json:"parameters,omitempty"`
	Variadic    *parameterSchema   `json:"variadic_parameter,omitempty"`
}

type parameterSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Nullable    bool            `json:"is_nullable,omitempty"`
	Type        json.RawMessage `json:"type"`
}

type identitySchema struct {
	Version    int64                         `json:"version"`
	Attributes map[string]*identityAttribute `json:"attributes,omitempty"`
}

type identityAttribute struct {
	Type        json.RawMessage `json:"type"`
	Description string          `json:"description,omitempty"`
	Required    bool            `json:"required_for_import,omitempty"`
	Optional    bool            `json:"optional_for_import,omitempty"`
}

func newProviderSchema(p *schema.Provider) (*providerSchema, error) {
	s := &schemaWriter{}
	out := &providerSchema{Provider: resourceSchema{Block: s.top(p.Config)}, Functions: map[string]*functionSchema{}, Identities: map[string]*identitySchema{}}
	for mode, to := range map[addr.Mode]*map[string]*resourceSchema{addr.Managed: &out.Resources, addr.Data: &out.Data, addr.Ephemeral: &out.Ephemeral, addr.List: &out.Lists} {
		*to = make(map[string]*resourceSchema, len(p.Types[mode]))
		for _, name := range p.Types[mode] {
			r := p.Resource(mode, name)
			if r == nil {
				return nil, fmt.Errorf("the schema of %s cannot be used: %w", name, p.Invalid(mode, name))
			}
			(*to)[name] = &resourceSchema{Version: r.Version, Block: s.block(r.Block)}
			if r.Identity != nil {
				out.Identities[name] = &identitySchema{r.IdentityVersion, s.identity(r.Identity)}
			}
		}
	}
	for name, f := range p.Functions {
		out.Functions[name] = s.function(f)
	}
	if p.Others == nil {
		return out, s.err
	}
	actions, err := p.Others(schema.Actions)
	if err != nil {
		return nil, err
	}
	stores, err := p.Others(schema.StateStores)
	if err != nil {
		return nil, err
	}
	out.Actions, out.Stores = make(map[string]*actionSchema, len(actions)), make(map[string]*resourceSchema, len(stores))
	for name, b := range actions {
		out.Actions[name] = &actionSchema{s.block(b)}
	}
	for name, b := range stores {
		out.Stores[name] = &resourceSchema{Block: s.block(b)}
	}
	return out, s.err
}

// A schemaWriter keeps the first error, so that its methods need not return errors.
type schemaWriter struct{ err error }

// top returns the block of a provider's configuration, or nil if the provider has no schema.
func (s *schemaWriter) top(b *schema.Block) *blockSchema {
	if b == nil {
		return nil
	}
	return s.block(b)
}

func (s *schemaWriter) typ(ty cty.Type) json.RawMessage {
	text, err := ctyjson.MarshalType(ty)
	if err != nil && s.err == nil {
		s.err = err
	}
	return text
}

func (s *schemaWriter) block(b *schema.Block) *blockSchema {
	out := &blockSchema{Attributes: s.attributes(b.Attributes), Blocks: map[string]*nestedSchema{}, Description: b.Description, Kind: textKind(b.Markdown)}
	out.Deprecated, out.Message = deprecation(b.Deprecated)
	for name, nb := range b.Blocks {
		out.Blocks[name] = &nestedSchema{nestingNames[nb.Nesting], s.block(nb.Block), nb.MinItems, nb.MaxItems}
	}
	return out
}

func (s *schemaWriter) attributes(attrs map[string]*schema.Attribute) map[string]*attributeSchema {
	out := make(map[string]*attributeSchema, len(attrs))
	for name, a := range attrs {
		one := &attributeSchema{
			Description: a.Description, Kind: textKind(a.Markdown), Required: a.Required, Optional: a.Optional,
			Computed: a.Computed, Sensitive: a.Sensitive, WriteOnly: a.WriteOnly,
		}
		one.Deprecated, one.Message = deprecation(a.Deprecated)
		if a.Nested != nil {
			one.Nested = &objectSchema{s.attributes(a.Nested.Attributes), nestingNames[a.Nested.Nesting]}
		} else {
			one.Type = s.typ(a.Type)
		}
		out[name] = one
	}
	return out
}

func (s *schemaWriter) function(f *schema.Function) *functionSchema {
	out := &functionSchema{Description: f.Description, Summary: f.Summary, Message: f.Deprecated, Return: s.typ(f.Return)}
	for i := range f.Params {
		out.Params = append(out.Params, s.parameter(&f.Params[i]))
	}
	if f.Variadic != nil {
		out.Variadic = s.parameter(f.Variadic)
	}
	return out
}

func (s *schemaWriter) parameter(p *schema.Parameter) *parameterSchema {
	return &parameterSchema{p.Name, p.Description, p.AllowNull, s.typ(p.Type)}
}

func (s *schemaWriter) identity(o *schema.Object) map[string]*identityAttribute {
	out := make(map[string]*identityAttribute, len(o.Attributes))
	for name, a := range o.Attributes {
		out[name] = &identityAttribute{s.typ(a.Type), a.Description, a.Required, a.Optional}
	}
	return out
}

// nestingNames are the names of nesting modes in the document.
var nestingNames = map[schema.Nesting]string{
	schema.Single: "single", schema.Group: "group", schema.List: "list", schema.Set: "set", schema.Map: "map",
}

func textKind(markdown bool) string {
	if markdown {
		return "markdown"
	}
	return "plain"
}

// deprecation returns whether a schema element is deprecated, and the message. Providers
// without a message only give the word.
func deprecation(text string) (on bool, message string) {
	if text == "deprecated" {
		return true, ""
	}
	return text != "", text
}
