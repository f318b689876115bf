package config

import (
	"sync"

	"github.com/hashicorp/hcl/v2"
)

// A rule is the effect of an override file on one argument or nested block in a block with the
// same header. The table below contains the rule for each name. Other names belong to a
// provider or a child module and are replaced (body.go). Source: the language documentation of
// override files. docs/override-rules.md lists the rules with an example each.
type rule uint8

const (
	replaces  rule = iota // the override replaces everything with that name
	merges                // at most one such block, merged argument by argument
	byHeader              // blocks with the same labels are merged, others are added
	forbidden             // an error in an override file
	reserved              // an error everywhere
	escape                // the block named _, whose names are never meta-arguments
)

// blockRule is the rule for a nested block.
type blockRule struct {
	rule   rule
	labels []string
	inner  *kind // for merges and byHeader
}

// A kind is one kind of block: its own arguments and nested blocks.
type kind struct {
	name   string // as written in configuration
	attrs  map[string]rule
	blocks map[string]blockRule
	open   bool // other names are allowed and not checked
	schema hcl.BodySchema
}

func newKind(name string, attrs map[string]rule, blocks map[string]blockRule) *kind {
	k := &kind{name: name, attrs: attrs, blocks: blocks}
	for a := range attrs {
		k.schema.Attributes = append(k.schema.Attributes, hcl.AttributeSchema{Name: a})
	}
	for b, r := range blocks {
		k.schema.Blocks = append(k.schema.Blocks, hcl.BlockHeaderSchema{Type: b, LabelNames: r.labels})
	}
	return k
}

func openKind(name string, attrs map[string]rule, blocks map[string]blockRule) *kind {
	k := newKind(name, attrs, blocks)
	k.open = true
	return k
}

// kindTable contains every kind of block that has arguments of its own.
type kindTable struct {
	resource, data, ephemeral, list    *kind
	module, provider, variable, output *kind
	provisioner, rule                  *kind
	moved, removed, imports, check     *kind
	terraform, language, compatible    *kind
	encryption                         *kind
	resourceLife, callLife, remLife    *kind
}

// kinds is created on first use and immutable.
var kinds = sync.OnceValue(func() *kindTable {
	type A = map[string]rule
	type B = map[string]blockRule
	t := &kindTable{}
	conditions := func(b B) B {
		b["precondition"] = blockRule{rule: forbidden}
		b["postcondition"] = blockRule{rule: forbidden}
		return b
	}
	t.rule = newKind("condition", A{"condition": replaces, "error_message": replaces}, nil)
	t.resourceLife = newKind("lifecycle", A{
		"create_before_destroy": replaces, "prevent_destroy": replaces, "destroy": replaces,
		"ignore_changes": replaces, "replace_triggered_by": replaces, "enabled": replaces,
	}, conditions(B{"action_trigger": {rule: replaces}}))
	t.callLife = newKind("lifecycle", A{"enabled": replaces}, nil)
	t.remLife = newKind("lifecycle", A{"destroy": replaces}, nil)

	repeat := func() A {
		return A{"count": replaces, "for_each": replaces, "provider": replaces, "depends_on": forbidden}
	}
	t.resource = openKind("resource", repeat(), B{
		"lifecycle":   {rule: merges, inner: t.resourceLife},
		"connection":  {rule: replaces},
		"provisioner": {rule: replaces, labels: []string{"type"}},
		"locals":      {rule: reserved},
		"_":           {rule: escape},
	})
	t.data = openKind("data", repeat(), B{
		"lifecycle": {rule: merges, inner: t.resourceLife},
		"locals":    {rule: reserved},
		"_":         {rule: escape},
	})
	t.ephemeral = openKind("ephemeral", repeat(), B{
		"lifecycle":   {rule: merges, inner: t.resourceLife},
		"connection":  {rule: reserved},
		"provisioner": {rule: reserved, labels: []string{"type"}},
		"locals":      {rule: reserved},
		"_":           {rule: escape},
	})
	t.list = newKind("list", A{
		"count": replaces, "for_each": replaces, "provider": replaces, "include_resource": replaces, "limit": replaces,
	}, B{"config": {rule: merges}})
	t.module = openKind("module", A{
		"source": replaces, "version": replaces, "count": replaces, "for_each": replaces,
		"providers": replaces, "depends_on": forbidden,
	}, B{
		"lifecycle": {rule: merges, inner: t.callLife},
		"locals":    {rule: reserved},
		"provider":  {rule: reserved, labels: []string{"type"}},
		"_":         {rule: escape},
	})
	t.provider = openKind("provider", A{
		"alias": replaces, "version": replaces, "for_each": replaces,
		"count": reserved, "depends_on": reserved, "source": reserved,
	}, B{"lifecycle": {rule: reserved}, "locals": {rule: reserved}, "_": {rule: escape}})
	t.variable = newKind("variable", A{
		"description": replaces, "type": replaces, "default": replaces, "sensitive": replaces,
		"ephemeral": replaces, "nullable": replaces, "const": replaces, "deprecated": replaces,
	}, B{"validation": {rule: forbidden}})
	t.output = newKind("output", A{
		"description": replaces, "type": replaces, "value": replaces, "sensitive": replaces,
		"ephemeral": replaces, "deprecated": replaces, "depends_on": forbidden,
	}, conditions(B{}))
	t.provisioner = openKind("provisioner", A{"when": replaces, "on_failure": replaces},
		B{"connection": {rule: replaces}, "lifecycle": {rule: reserved}, "_": {rule: escape}})
	t.moved = newKind("moved", A{"from": replaces, "to": replaces, "for_each": replaces}, nil)
	t.removed = newKind("removed", A{"from": replaces, "for_each": replaces}, B{
		"lifecycle":   {rule: merges, inner: t.remLife},
		"connection":  {rule: replaces},
		"provisioner": {rule: replaces, labels: []string{"type"}},
	})
	t.imports = newKind("import", A{
		"to": replaces, "id": replaces, "identity": replaces, "for_each": replaces, "provider": replaces,
	}, nil)
	t.check = newKind("check", nil, B{
		"data":   {rule: replaces, labels: []string{"type", "name"}},
		"assert": {rule: replaces},
	})
	t.terraform = newKind("terraform", A{
		"required_version": replaces, "experiments": replaces, "language": replaces,
	}, B{
		"backend":            {rule: replaces, labels: []string{"type"}},
		"cloud":              {rule: replaces},
		"state_store":        {rule: replaces, labels: []string{"type"}},
		"required_providers": {rule: replaces},
		"provider_meta":      {rule: replaces, labels: []string{"provider"}},
		"encryption":         {rule: replaces},
	})
	t.language = newKind("language", A{"edition": forbidden, "experiments": forbidden},
		B{"compatible_with": {rule: forbidden}})
	t.compatible = openKind("compatible_with", A{"opentofu": forbidden, "terrace": forbidden}, nil)
	t.encryption = encryptionKind()
	return t
})

// encryptionKind returns the kind of the block that configures the encryption of state and plan
// files. Its nested blocks are identified by header and merged argument by argument. A fallback
// is replaced as a whole, like any nested block.
func encryptionKind() *kind {
	type A = map[string]rule
	type B = map[string]blockRule
	target := func(name string) *kind {
		return openKind(name, A{"method": replaces, "enforced": replaces}, B{"fallback": {rule: replaces}})
	}
	method := openKind("method", nil, nil)
	key := openKind("key_provider", nil, nil)
	remote := openKind("remote_state_data_sources", nil, B{
		"default":                  {rule: merges, inner: target("default")},
		"remote_state_data_source": {rule: byHeader, labels: []string{"name"}, inner: target("remote_state_data_source")},
	})
	return newKind("encryption", nil, B{
		"key_provider":              {rule: byHeader, labels: []string{"type", "name"}, inner: key},
		"method":                    {rule: byHeader, labels: []string{"type", "name"}, inner: method},
		"state":                     {rule: merges, inner: target("state")},
		"plan":                      {rule: merges, inner: target("plan")},
		"remote_state_data_sources": {rule: merges, inner: remote},
	})
}

// atTop is the kind of a configuration file or query file, with the blocks that are recognized at the
// top. The collector rejects those that the file cannot contain.
var atTop = sync.OnceValue(func() *kind {
	one, two := []string{"name"}, []string{"type", "name"}
	return newKind("file", nil, map[string]blockRule{
		"terraform": {}, "language": {}, "required_providers": {}, "locals": {},
		"moved": {}, "import": {}, "removed": {}, "symbols": {labels: one},
		"provider": {labels: one}, "variable": {labels: one}, "output": {labels: one},
		"module": {labels: one}, "check": {labels: one},
		"resource": {labels: two}, "data": {labels: two}, "ephemeral": {labels: two}, "action": {labels: two}, "list": {labels: two},
	})
})
