package builtin

import (
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// The schemas without and with the store block of terraform_data. They are created on first use.
var (
	plainSchema = sync.OnceValue(func() *schema.Provider { return newSchema(false) })
	storeSchema = sync.OnceValue(func() *schema.Provider { return newSchema(true) })
)

// Schema returns the schema of the provider, with or without the store block of terraform_data.
func Schema(store bool) *schema.Provider {
	if store {
		return storeSchema()
	}
	return plainSchema()
}

func newSchema(store bool) *schema.Provider {
	return &schema.Provider{
		Config: &schema.Block{},
		Capabilities: schema.Capabilities{
			SchemaOptional:    true,
			MoveResourceState: true,
		},
		Functions: functions(),
		Types: map[addr.Mode][]string{
			addr.Managed: {dataType},
			addr.Data:    {remoteStateType},
		},
		Decode: func(mode addr.Mode, typ string) *schema.Resource {
			switch {
			case mode == addr.Managed && typ == dataType:
				return &schema.Resource{Block: dataBlock(store)}
			case mode == addr.Data && typ == remoteStateType:
				return &schema.Resource{Block: remoteStateBlock()}
			}
			return nil
		},
	}
}

func dataBlock(store bool) *schema.Block {
	b := &schema.Block{Attributes: map[string]*schema.Attribute{
		"id":               {Type: cty.String, Computed: true},
		"input":            {Type: cty.DynamicPseudoType, Optional: true},
		"output":           {Type: cty.DynamicPseudoType, Computed: true},
		"triggers_replace": {Type: cty.DynamicPseudoType, Optional: true},
	}}
	if store {
		b.Blocks = map[string]*schema.NestedBlock{"store": {Nesting: schema.Single, OmitNull: true, Block: &schema.Block{Attributes: map[string]*schema.Attribute{
			"input":            {Type: cty.DynamicPseudoType, Optional: true, WriteOnly: true},
			"output":           {Type: cty.DynamicPseudoType, Computed: true},
			"replace":          {Type: cty.Bool, Optional: true},
			"sensitive":        {Type: cty.Bool, Optional: true},
			"sensitive_output": {Type: cty.DynamicPseudoType, Computed: true, Sensitive: true},
			"version":          {Type: cty.DynamicPseudoType, Optional: true},
		}}}}
	}
	return b
}

func remoteStateBlock() *schema.Block {
	return &schema.Block{Attributes: map[string]*schema.Attribute{
		"backend": {
			Type: cty.String, Required: true, Markdown: true,
			Description: "The kind of backend that holds the state, for example `local`.",
		},
		"config": {
			Type: cty.DynamicPseudoType, Optional: true, Markdown: true,
			Description: "The configuration of the backend: an object with the arguments that its `backend` block would have.",
		},
		"defaults": {
			Type: cty.DynamicPseudoType, Optional: true, Markdown: true,
			Description: "An object with values for outputs that the state does not have.",
		},
		"outputs": {
			Type: cty.DynamicPseudoType, Computed: true, Markdown: true,
			Description: "An object with every output of the root module in the state.",
		},
		"workspace": {
			Type: cty.String, Optional: true, Markdown: true,
			Description: "The workspace whose state is read, if the backend has workspaces.",
		},
	}}
}
