package config

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/source"
)

// Blocks of Terraform's language that Terrace recognizes and rejects, and arguments of Terraform that
// OpenTofu rejects. Source: Terraform's changelogs 1.14 to 1.17.

const noAction = "Terrace does not run the actions of providers, which Terraform has since version 1.14. To run a program when an object changes, use a provisioner, or a terraform_data resource with triggers_replace and a provisioner."

// unsupported returns the error that a block is not supported. The detail contains what to use
// instead.
func unsupported(p part, summary, detail string) diag.List {
	return errorAt(diag.CodeConfigUnsupportedBlock, p.head, summary, "%s", detail)
}

// NotInOpenTofu returns the error that the module contains something that OpenTofu rejects, if its
// language block declares that it is compatible with OpenTofu and not with Terrace. at is the range
// of what, a noun phrase such as "the type of an output". It returns nil for all other modules.
func (m *Module) NotInOpenTofu(at source.Range, what string) diag.List {
	if m.onlyOpenTofu == nil {
		return nil
	}
	return errorAt(diag.CodeConfigNotInOpentofu, at, "Not available in OpenTofu",
		"OpenTofu rejects %s, and the language block declares that this module is compatible with OpenTofu. To enable what only Terrace and Terraform accept, add the argument terrace = %q to the compatible_with block. Otherwise, remove %s.",
		what, ">= "+release.Version, what).Note(m.onlyOpenTofu, "declared here")
}

// notInOpenTofu returns the errors about everything in the module itself that OpenTofu rejects.
func (t *terraformParts) notInOpenTofu(m *Module) (ds diag.List) {
	if len(t.compatible) == 0 || len(t.ours) > 0 {
		return nil
	}
	m.onlyOpenTofu = &t.compatible[0].Range
	for _, name := range slices.Sorted(maps.Keys(m.Outputs)) {
		if s := m.Outputs[name].Settings["type"]; s != nil {
			ds = append(ds, m.NotInOpenTofu(s.Range, "the type of an output")...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.RequiredProviders)) {
		if rp := m.RequiredProviders[name]; rp.SourceExpr != nil || rp.VersionExpr != nil {
			ds = append(ds, m.NotInOpenTofu(rp.At, "a reference in required_providers")...)
		}
	}
	for a, r := range m.Resources {
		if a.Mode != addr.Managed || a.Type != "terraform_data" {
			continue
		}
		blocks := &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "store"}, {Type: "dynamic", LabelNames: []string{"type"}}}}
		c, _, _ := r.Body.PartialContent(blocks) // the provider's schema decides about errors
		for _, b := range c.Blocks {
			if b.Type == "store" || len(b.Labels) == 1 && b.Labels[0] == "store" {
				ds = append(ds, m.NotInOpenTofu(b.DefRange, "the store block of terraform_data")...)
			}
		}
	}
	return ds
}
