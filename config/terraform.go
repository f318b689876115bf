package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/source"
)

// terraformParts collects the settings of all terraform and language blocks. Each setting is
// merged separately. An override file may contain a setting that no base file contains.
type terraformParts struct {
	version    []*Setting // values of required_version in force
	compatible []*Setting // values of language.compatible_with.opentofu
	ours       []*Setting // values of language.compatible_with.terrace
	language   []part     // language blocks
	backend    *part      // a backend or cloud block
	isCloud    bool
	gone       []Overridden // backend and cloud blocks that backend replaced, nearest first
	encryption []part
	required   []part // required_providers, base first
	metas      []meta // provider_meta
}

// meta is a provider_meta block with the header of its terraform block.
type meta struct {
	part
	in source.Range
}

// add adds one terraform block.
func (t *terraformParts) add(p part) diag.List {
	c, ds := kinds().terraform.merge([]part{p})
	if s := c.args["required_version"]; s != nil {
		t.addVersion(s, p)
	}
	again := false // the terraform block already contains a backend or cloud block
	for _, typ := range []string{"backend", "cloud"} {
		for _, b := range c.blocks(typ) {
			ds = append(ds, t.addBackend(b[0], typ == "cloud", again)...)
			again = true
		}
	}
	for _, b := range c.blocks("state_store") {
		ds = append(ds, unsupported(b[0], "Unsupported state_store block", "Terrace does not store states in providers. Use a backend block.")...)
	}
	for i, b := range c.blocks("encryption") {
		ds = append(ds, t.addEncryption(b[0], i > 0)...)
	}
	for _, b := range c.blocks("required_providers") {
		if n := len(t.required); n > 0 && !p.isOverride() {
			first := t.required[0].head
			ds = append(ds, errorAt(diag.CodeConfigDuplicateRequiredProviders, b[0].head, "Duplicate required providers configuration",
				"A module may have only one required_providers block in its base files; the first is at %s. Move the entries there.", first).Note(&first, "first defined here")...)
			continue
		}
		t.required = append(t.required, b[0])
	}
	for _, b := range c.blocks("provider_meta") {
		t.metas = append(t.metas, meta{part: b[0], in: p.head})
	}
	return ds
}

// addVersion adds a version constraint. All constraints in base files are kept. A constraint in an
// override file replaces all earlier constraints.
func (t *terraformParts) addVersion(s *Setting, p part) {
	if p.isOverride() {
		if n := len(t.version); n > 0 {
			s.Replaced = t.version[n-1]
		}
		t.version = nil
	}
	t.version = append(t.version, s)
}

// addBackend adds a backend or cloud block. A block in an override file replaces the earlier backend
// or cloud block as a whole. If several terraform blocks in override files contain one, the last
// one wins, since overrides apply in the order of file names and positions. again means that the
// same terraform block contains another backend or cloud block.
func (t *terraformParts) addBackend(p part, cloud, again bool) diag.List {
	if have := t.backend; have != nil && (!p.isOverride() || again) {
		summary, what := "Duplicate backend configuration", "backend"
		switch {
		case t.isCloud != cloud:
			summary, what = "Both a backend and a cloud configuration are present", "backend or cloud"
		case cloud:
			summary, what = "Duplicate cloud configurations", "cloud"
		}
		return onlyOne(diag.CodeConfigDuplicateBackend, p, *have, summary, what)
	}
	if have := t.backend; have != nil {
		t.gone = append([]Overridden{{have.head, have.layer, true}}, t.gone...)
	}
	t.backend, t.isCloud = &p, cloud
	return nil
}

func (t *terraformParts) addEncryption(p part, again bool) diag.List {
	if n := len(t.encryption); n > 0 && (!p.isOverride() || again) {
		return onlyOne(diag.CodeConfigDuplicateEncryption, p, t.encryption[n-1], "Duplicate encryption configuration", "encryption")
	}
	t.encryption = append(t.encryption, p)
	return nil
}

// onlyOne returns the error for p if a module may contain only one such block. first is the earlier
// block.
func onlyOne(code string, p, first part, summary, what string) diag.List {
	return errorAt(code, p.head, summary, "A module may have only one %s block; the other is at %s.", what, first.head).
		Note(&first.head, "first defined here")
}

// addLanguage adds a language block.
func (t *terraformParts) addLanguage(p part) diag.List {
	if p.isOverride() {
		return errorAt(diag.CodeConfigLanguageInOverride, p.head, "Language selections in override file",
			"A language block is allowed in base files only, since it says how they are to be read.")
	}
	t.language = append(t.language, p)
	c, ds := kinds().language.merge([]part{p})
	if s := c.args["edition"]; s != nil {
		if word := hcl.ExprAsKeyword(s.Expr); word != "tofu2024" {
			ds = append(ds, errorAt(diag.CodeConfigLanguageEdition, s.Expr.Range(), "Unsupported language edition",
				"The only edition of the language so far is tofu2024.")...)
		}
	}
	if s := c.args["experiments"]; s != nil {
		items, more := list(s.Attribute)
		ds = append(ds, more...)
		for _, x := range items {
			ds = append(ds, errorAt(diag.CodeConfigExperiment, x.Range(), "Unknown experiment keyword",
				"There are no experiments in this version of the language. Remove the entry.")...)
		}
	}
	first := map[string]*Setting{}
	for _, b := range c.blocks("compatible_with") {
		inner, more := kinds().compatible.merge(b)
		ds = append(ds, more...)
		for _, name := range []string{"opentofu", "terrace"} {
			s := inner.args[name]
			switch {
			case s == nil:
			case first[name] != nil:
				ds = append(ds, errorAt(diag.CodeConfigDuplicateCompatible, s.Range, "Duplicate version constraint",
					"Only one compatible_with block of a language block may have a constraint for %s.", name).Note(&first[name].Range, "first set here")...)
			case name == "terrace":
				first[name], t.ours = s, append(t.ours, s)
			default:
				first[name], t.compatible = s, append(t.compatible, s)
			}
		}
	}
	return ds
}

// gate checks the module's version constraints, and those of compatible_with.terrace against the
// version of this program. A constraint that excludes the language version
// is an error in .tofu files and in compatible_with blocks. In other files it is a warning, since
// they may use the version numbers of Terraform. If there is such an error, fatal is true and no
// other error is reported, since other errors may be consequences.
// languageVersion "" means LanguageVersion and NewestVersion: a constraint holds if it allows one.
func (t *terraformParts) gate(languageVersion string) (fatal bool, ds diag.List) {
	language := []*version.Version{version.Must(version.NewVersion(LanguageVersion)), version.Must(version.NewVersion(NewestVersion))}
	if languageVersion != "" {
		v, err := version.NewVersion(languageVersion)
		if err != nil {
			return true, diag.List{{Code: diag.CodeConfigLanguageVersion, Summary: "Invalid language version", Detail: quote(languageVersion) + " is not a version number."}}
		}
		language = []*version.Version{v}
	}
	own, err := version.NewVersion(release.Version)
	if err != nil {
		own = version.Must(version.NewVersion("0")) // a build with a version that is not a number
	}
	var errs diag.List
	for _, s := range t.ours {
		excluded, more := s.compare("Terrace", true, own.Core())
		if more = s.explain(more); excluded {
			errs = append(errs, more...)
		}
		ds = append(ds, more...)
	}
	for i, s := range append(t.compatible[:len(t.compatible):len(t.compatible)], t.version...) {
		// Terraform may read a .tf file too, so that a violation there is only a warning.
		hard := i < len(t.compatible) || isTofu(s.Range.Filename)
		excluded, more := s.compare("a language version of", hard, language...)
		if more = s.explain(more); excluded {
			errs = append(errs, more...)
		}
		ds = append(ds, more...)
	}
	for _, s := range t.compatible {
		ds = append(ds, ineffective(s)...)
	}
	if errs != nil {
		return true, errs.Sort()
	}
	return false, ds
}

// compare checks that a constraint allows one of the versions. what names these versions in the
// messages. hard means that a violation is an error. fatal means that there is such an error.
func (s *Setting) compare(what string, hard bool, versions ...*version.Version) (fatal bool, ds diag.List) {
	at := s.Expr.Range()
	text, ds := constString(s.Attribute)
	if ds.HasErrors() {
		return false, soften(ds, hard)
	}
	c, err := version.NewConstraint(text)
	switch {
	case err != nil:
		return false, soften(errorAt(diag.CodeConfigVersionConstraint, at, "Invalid required_version constraint",
			"%q is not a version constraint: write a list of conditions such as \">= 1.6, < 2.0\".", text), hard)
	case hard && hasPrerelease(text):
		return false, errorAt(diag.CodeConfigVersionConstraint, at, "Invalid required_version constraint",
			"A constraint on the language version must not name a prerelease, as %q does.", text)
	case slices.ContainsFunc(versions, c.Check):
		return false, nil
	case hard:
		return true, errorAt(diag.CodeConfigIncompatible, at, "Incompatible module",
			"This module needs %s %s, and this is %s. Use another version of the module, or change the constraint if it is too narrow.", what, text, either(versions))
	default:
		return false, warnAt(diag.CodeConfigIncompatible, at, "Version constraint not met",
			"This module asks for version %s, and this is %s. The constraint is in a .tf file and may have been written with another tool's version numbers in mind, and so this is only a warning.", text, either(versions))
	}
}

// either returns versions as text, such as "1.12.6 or 1.13.1".
func either(versions []*version.Version) string {
	var out []string
	for _, v := range versions {
		out = append(out, v.String())
	}
	return strings.Join(out, " or ")
}

// soften turns errors into warnings unless hard is set.
func soften(ds diag.List, hard bool) diag.List {
	if !hard {
		for _, m := range ds {
			m.Severity = diag.Warning
		}
	}
	return ds
}

// ineffective warns about a constraint in a compatible_with block that allows versions which do
// not read that block.
func ineffective(s *Setting) diag.List {
	text, ds := constString(s.Attribute)
	c, err := version.NewConstraint(text)
	if ds.HasErrors() || err != nil || !c.Check(version.Must(version.NewVersion("1.11.0"))) {
		return nil
	}
	return warnAt(diag.CodeConfigIneffectiveConstraint, s.Range, "Ineffective version constraint",
		"Versions before 1.12.0 do not read compatible_with blocks, and so admitting them here, as %q does, has no effect. Write a constraint that starts at 1.12.0 or later.", text)
}

func hasPrerelease(constraint string) bool { return strings.Contains(constraint, "-") }

// decode decodes the collected settings into the module.
func (t *terraformParts) decode(m *Module) (ds diag.List) {
	ds = append(ds, t.decodeRequired(m)...)
	if b := t.backend; b != nil {
		m.Backend = &Backend{Type: "cloud", Body: b.body, At: b.head, gone: t.gone}
		if !t.isCloud {
			if m.Backend.Type = b.labels[0]; m.Backend.Type == "cloud" {
				ds = append(ds, errorAt(diag.CodeBackendUnknown, b.head, "Unsupported backend type", "There is no backend type named %q. Write a cloud block, which has no label, in place of the backend block.", "cloud")...)
			}
		}
	}
	if len(t.encryption) > 0 {
		m.Encryption = &Block{Body: &merged{kinds().encryption, t.encryption}, At: t.encryption[0].head}
	}
	return append(ds, t.decodeMetas(m)...)
}

// decodeMetas decodes one provider_meta block for each provider. A block in an override file
// replaces the block in the base file.
func (t *terraformParts) decodeMetas(m *Module) (ds diag.List) {
	byProvider := map[addr.Provider]meta{}
	local := map[addr.Provider]string{}
	for _, p := range t.metas {
		name := p.labels[0]
		key := m.Source(name)
		if have, ok := byProvider[key]; ok && (!p.isOverride() || have.in == p.in) {
			ds = append(ds, onlyOne(diag.CodeConfigDuplicateProviderMeta, p.part, have.part, "Duplicate provider_meta block", "provider_meta "+quote(key.Display()))...)
			continue
		}
		delete(m.ProviderMetas, local[key])
		byProvider[key], local[key] = p, name
		_, diags := p.body.JustAttributes()
		ds = append(ds, diag.FromHCL(diags)...)
		m.ProviderMetas[name] = &ProviderMeta{Name: name, Body: p.body, At: p.head}
	}
	return ds
}

// decodeRequired decodes the entries of required_providers. An entry in an override file replaces
// the whole entry in the base file.
func (t *terraformParts) decodeRequired(m *Module) (ds diag.List) {
	for _, p := range t.required {
		attrs, diags := p.body.JustAttributes()
		ds = append(ds, diag.FromHCL(diags)...)
		for _, a := range inOrder(attrs) {
			rp, more := decodeRequiredProvider(a)
			ds = append(ds, more...)
			if rp == nil {
				continue
			}
			rp.Layer = p.layer
			if have := m.RequiredProviders[rp.Name]; have != nil {
				rp.Replaced = have
				ds = append(ds, lostSource(rp, have)...)
			}
			m.RequiredProviders[rp.Name] = rp
		}
	}
	return append(ds, twoNames(m)...)
}

// twoNames warns about a provider that is required under two local names.
func twoNames(m *Module) (ds diag.List) {
	first := map[addr.Provider]*RequiredProvider{}
	for _, name := range slices.Sorted(maps.Keys(m.RequiredProviders)) {
		rp := m.RequiredProviders[name]
		if rp.SourceExpr != nil && rp.Source.IsZero() {
			continue // not evaluated yet
		}
		source := m.Source(name)
		if have := first[source]; have != nil {
			ds = append(ds, warnAt(diag.CodeConfigDuplicateRequiredProvider, rp.At, "Duplicate required provider",
				"The provider %s has two local names here, %q and %q. Use one of them for all.", source.Display(), have.Name, name).
				Note(&have.At, "first required here")...)
			continue
		}
		first[source] = rp
	}
	return ds
}

// lostSource warns if an override of an entry omits the source. The entry is replaced as a
// whole, which is easily overlooked.
func lostSource(rp, have *RequiredProvider) diag.List {
	if have.Source.IsZero() || !rp.Source.IsZero() || rp.SourceExpr != nil || have.Source == addr.DefaultProvider(rp.Name) {
		return nil
	}
	return warnAt(diag.CodeConfigLostProviderSource, rp.At, "Provider source lost by override",
		"An override replaces the whole entry of a provider, and so %q now means %s instead of %s. Repeat the source in the override to keep it.",
		rp.Name, addr.DefaultProvider(rp.Name).Display(), have.Source.Display()).
		Note(&have.At, "overrides this entry")
}
