package config

import (
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A Setting is one argument after merging, with the settings that it replaced.
type Setting struct {
	*hcl.Attribute
	Layer    *source.Layer // role of the file that contains it
	Replaced *Setting      // the setting that it replaced; nil if there is none
}

// A Module is the configuration of one directory after merging override files. It is immutable
// after Load has returned it.
type Module struct {
	Dir   string      // as passed to Load
	Files []FileRole  // every file of the directory that Load examined, in load order
	Set   *source.Set // the text of the files, for snippets

	RequiredVersion   []*Setting                   // the constraints in force after merging
	RequiredProviders map[string]*RequiredProvider // by local name
	ProviderMetas     map[string]*ProviderMeta     // by local name
	Backend           *Backend                     // backend or cloud block; nil if there is none
	Encryption        *Block                       // the encryption block in terraform; nil if there is none

	Providers map[string]*Provider // by local name, or local name.alias
	Variables map[string]*Variable
	Locals    map[string]*Local
	Outputs   map[string]*Output
	Calls     map[string]*Call
	Resources map[addr.Resource]*Resource // of all modes, including those in check blocks
	Checks    map[string]*Check
	Moved     []*Moved
	Removed   []*Removed
	Imports   []*ImportBlock

	// onlyOpenTofu is the range of the declaration that the module is compatible with OpenTofu. nil
	// means that the module may contain what OpenTofu rejects.
	onlyOpenTofu *source.Range

	again *sync.Map // *reparsed by path: files that Origin parsed, since many messages refer to one file
}

// Source returns the provider to which a local name in this module refers.
func (m *Module) Source(local string) addr.Provider {
	if rp, ok := m.RequiredProviders[local]; ok && !rp.Source.IsZero() {
		return rp.Source
	}
	return addr.DefaultProvider(local)
}

func (m *Module) init() {
	m.again = new(sync.Map)
	m.RequiredProviders = map[string]*RequiredProvider{}
	m.ProviderMetas = map[string]*ProviderMeta{}
	m.Providers = map[string]*Provider{}
	m.Variables = map[string]*Variable{}
	m.Locals = map[string]*Local{}
	m.Outputs = map[string]*Output{}
	m.Calls = map[string]*Call{}
	m.Resources = map[addr.Resource]*Resource{}
	m.Checks = map[string]*Check{}
}

// A Role is the role of a file in the module.
type Role uint8

// The roles of files.
const (
	RoleBase     Role = iota // loaded and appended
	RoleOverride             // loaded and merged; see FileRole.N
	RoleShadowed             // not loaded, because FileRole.By is loaded instead
	RoleIgnored              // not loaded; FileRole.Why is the reason
	RoleTest                 // a test file
	RoleQuery                // a query file; see LoadQueries
)

// String returns "base", "override", "shadowed", "ignored", "test" or "query".
func (r Role) String() string {
	switch r {
	case RoleOverride:
		return "override"
	case RoleShadowed:
		return "shadowed"
	case RoleIgnored:
		return "ignored"
	case RoleTest:
		return "test"
	case RoleQuery:
		return "query"
	default:
		return "base"
	}
}

// A FileRole is one file of the directory with its role in the module.
type FileRole struct {
	Path string // as in ranges
	Role Role
	N    int    // for RoleOverride: position in load order, from 1
	By   string // for RoleShadowed: the file that is loaded instead
	Why  string // for RoleIgnored: the reason

	name string
}

// A Block is a block's body with the range of its header. The body is merged with those of
// override files.
type Block struct {
	Body hcl.Body
	At   source.Range
}

// A RequiredProvider is one entry of required_providers.
type RequiredProvider struct {
	Name     string
	Source   addr.Provider // zero if not given
	SourceAt source.Range  // of Source
	Version  []Constraint  // empty if not given
	Aliases  []ProviderRef // configuration_aliases
	// SourceExpr and VersionExpr are arguments with references, such as var.aws_version. Source and
	// Version are empty until Module.ResolveProviders evaluates them. They are nil for constants.
	SourceExpr, VersionExpr hcl.Expression
	At                      source.Range
	Layer                   *source.Layer     // role of the file that contains the entry
	Replaced                *RequiredProvider // the entry that this one replaced; nil if there is none
}

// A Constraint is a version constraint as written.
type Constraint struct {
	Text string
	At   source.Range
}

// ProviderMeta is a provider_meta block.
type ProviderMeta struct {
	Name string
	Body hcl.Body
	At   source.Range
}

// A Backend is a backend block, or a cloud block with Type "cloud".
type Backend struct {
	Type string
	Body hcl.Body
	At   source.Range

	gone []Overridden // the blocks that it replaced
}

// A Provider is a provider configuration.
type Provider struct {
	Name    string // local name
	Alias   string // "" for the default configuration
	ForEach *Setting
	Version []Constraint // values of the deprecated argument version
	Body    hcl.Body     // the provider's own arguments
	Empty   bool         // the block contains only meta-arguments
	At      source.Range
	Merged  []Overridden // the blocks that were merged, base first; nil if there is only one
}

// Key returns the key of the configuration in its module: name or name.alias.
func (p *Provider) Key() string { return ProviderRef{Name: p.Name, Alias: p.Alias}.String() }

// A ProviderRef is a reference to a provider configuration: name, name.alias, name.alias[key].
type ProviderRef struct {
	Name  string
	Alias string
	Key   hcl.Expression // nil if there is none
	At    source.Range
}

// String returns the reference without its key.
func (r ProviderRef) String() string {
	if r.Alias == "" {
		return r.Name
	}
	return r.Name + "." + r.Alias
}

// A Variable is an input variable.
type Variable struct {
	Name        string
	Type        cty.Type           // with optional attributes marked; cty.DynamicPseudoType if not given
	Defaults    *typeexpr.Defaults // defaults of optional attributes; nil if there are none
	Literal     bool               // text from the command line or environment is the value itself (primitive or untyped), not an expression
	Default     cty.Value          // converted to Type; cty.NilVal if the variable is required
	Description string
	Sensitive   bool
	Ephemeral   bool
	Nullable    bool
	Const       *bool // nil if not given
	Deprecated  string
	Validations []*Rule
	Settings    map[string]*Setting // every argument, for explanations
	At          source.Range
	Merged      []Overridden // the blocks that were merged, base first; nil if there is only one
}

// Required reports whether the variable has no default.
func (v *Variable) Required() bool { return v.Default == cty.NilVal }

// A Local is one local value.
type Local struct {
	Name  string
	Value *Setting
	At    source.Range // range of the name
}

// An Output is an output value.
type Output struct {
	Name          string
	Value         *Setting
	Type          cty.Type           // constraint, possibly with optional attributes; any without a type argument
	Defaults      *typeexpr.Defaults // defaults of optional attributes in Type; nil means none
	Description   string
	Sensitive     bool
	Ephemeral     bool
	Deprecated    string
	DependsOn     []hcl.Traversal
	Preconditions []*Rule
	Settings      map[string]*Setting
	At            source.Range
	Merged        []Overridden // the blocks that were merged, base first; nil if there is only one
}

// A Rule is a validation, precondition, postcondition or assertion.
type Rule struct {
	Condition    hcl.Expression
	ErrorMessage hcl.Expression
	At           source.Range
}

// Repeat contains the arguments that determine the instances of a block. At most one of the
// three is set.
type Repeat struct {
	Count   *Setting
	ForEach *Setting
	Enabled *Setting // lifecycle.enabled
}

// A Call is a module block.
type Call struct {
	Name      string
	Source    *Setting
	Version   *Setting // nil if not given
	Repeat    Repeat
	Providers []PassedProvider // nil means that default configurations are inherited
	DependsOn []hcl.Traversal
	Body      hcl.Body // arguments for the module's variables
	At        source.Range
	Merged    []Overridden // the blocks that were merged, base first; nil if there is only one
}

// A PassedProvider is one element of a call's providers argument.
type PassedProvider struct {
	Child  ProviderRef // the configuration in the called module
	Parent ProviderRef // the configuration in the calling module
}

// A Resource is a resource, data, ephemeral or list block.
type Resource struct {
	Addr      addr.Resource
	Repeat    Repeat
	Provider  *ProviderRef // nil means the default configuration of the type's provider
	DependsOn []hcl.Traversal
	Body      hcl.Body // the provider's own arguments
	Listing   *Listing // arguments of a list block; nil for other blocks
	Lifecycle Lifecycle
	Pre, Post []*Rule

	Connection   *Block // nil if there is none
	Provisioners []*Provisioner

	Check  string // name of the check block that contains the data source, or ""
	At     source.Range
	Merged []Overridden // the blocks that were merged, base first; nil if there is only one
}

// TypeAt returns the range of the resource's type if the header is formatted in the usual
// style. Otherwise it returns the range of the whole header.
func (r *Resource) TypeAt() source.Range {
	at := r.At
	labels := len(r.Addr.Type) + len(r.Addr.Name) + len(`"" ""`)
	skip := at.End.Byte - at.Start.Byte - labels
	word := map[addr.Mode]string{addr.Managed: "resource ", addr.Data: "data ", addr.Ephemeral: "ephemeral ", addr.List: "list "}[r.Addr.Mode]
	if skip != len(word) || at.Start.Line != at.End.Line {
		return at
	}
	at.Start.Byte += skip
	at.Start.Column += skip
	at.End.Byte = at.Start.Byte + len(r.Addr.Type) + 2
	at.End.Column = at.Start.Column + len(r.Addr.Type) + 2
	return at
}

// LocalProvider returns the local name of the resource's provider.
func (r *Resource) LocalProvider() string {
	if r.Provider != nil {
		return r.Provider.Name
	}
	return ImpliedProvider(r.Addr.Type)
}

// Lifecycle contains the arguments of a managed resource's lifecycle block, except conditions
// and enabled.
type Lifecycle struct {
	CreateBeforeDestroy *bool    // nil if not given
	Destroy             *bool    // nil if not given
	PreventDestroy      *Setting // expression
	IgnoreChanges       []hcl.Traversal
	IgnoreAll           bool
	Ignore              *Ignore // ignore_changes, if it must be evaluated; nil: IgnoreChanges and IgnoreAll
	ReplaceTriggeredBy  []hcl.Expression
	Settings            map[string]*Setting
}

// A Provisioner is a provisioner block.
type Provisioner struct {
	Type       string
	OnDestroy  bool // when = destroy
	Continue   bool // on_failure = continue
	Body       hcl.Body
	Connection *Block // nil means that of the resource
	At         source.Range
}

// A Check is a check block.
type Check struct {
	Name    string
	Data    *addr.Resource // the scoped data source; nil if there is none
	Asserts []*Rule
	At      source.Range
}

// A Moved is a moved block. If ForEach is set, there is one statement for each element, and
// from and to may use each.key and each.value in their indexes.
type Moved struct {
	From, To hcl.Expression
	ForEach  *Setting
	At       source.Range
}

// A Removed is a removed block.
type Removed struct {
	From         hcl.Expression
	ForEach      *Setting
	Destroy      *bool // lifecycle.destroy; nil if not given
	Provisioners []*Provisioner
	Connection   *Block
	At           source.Range
}

// An ImportBlock is an import block.
type ImportBlock struct {
	To       hcl.Expression
	ID       *Setting
	Identity *Setting
	ForEach  *Setting
	Provider *ProviderRef
	At       source.Range
}

// ImpliedProvider returns the local name of the provider that a resource type implies: the type
// up to the first underscore.
func ImpliedProvider(typ string) string {
	for i := range len(typ) {
		if typ[i] == '_' {
			return typ[:i]
		}
	}
	return typ
}
