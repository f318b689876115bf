package config

import (
	"maps"
	"slices"

	"github.com/terrace-iac/terrace/diag"
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

// notInOpenTofu warns about arguments of Terraform that OpenTofu rejects, in a module whose language
// block declares that it is compatible with OpenTofu.
func (t *terraformParts) notInOpenTofu(m *Module) (ds diag.List) {
	if len(t.compatible) == 0 {
		return nil
	}
	declared := t.compatible[0].Range
	warn := func(at source.Range, what string) {
		ds = append(ds, warnAt(diag.CodeConfigNotInOpentofu, at, "Not available in OpenTofu",
			"The language block declares that this module is compatible with OpenTofu, which rejects %s. Terraform and Terrace accept it. Remove the argument, or the opentofu constraint in compatible_with.", what).
			Note(&declared, "declared here")...)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Outputs)) {
		if s := m.Outputs[name].Settings["type"]; s != nil {
			warn(s.Range, "the type of an output")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.RequiredProviders)) {
		if rp := m.RequiredProviders[name]; rp.SourceExpr != nil || rp.VersionExpr != nil {
			warn(rp.At, "references in required_providers")
		}
	}
	return ds
}
