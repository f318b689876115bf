package origin

import (
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// terraformParts contains the parts of terraform blocks that can be explained.
var terraformParts = []string{"required_version", "required_providers", "backend", "cloud"}

// terraform resolves terraform.required_version, terraform.required_providers.NAME and
// terraform.backend.ARGUMENT.
func (r finder) terraform(m *eval.Module, path []step) (begin, diag.List) {
	cfg := m.Node.Config
	part, rest := "", []step(nil)
	if len(path) > 1 {
		part, rest = path[1].name(), path[2:]
	}
	switch part {
	case "required_version":
		if len(cfg.RequiredVersion) == 0 {
			return nil, bad("No terraform block in %s sets required_version.", where(m))
		}
		return func(r *replay) cursor {
			for _, s := range cfg.RequiredVersion {
				r.define(Argument, named(m, "terraform.required_version"), s, cursor{moduleFrame(m), s.Expr, nil})
			}
			return cursor{}
		}, nil
	case "required_providers":
		return r.requiredProvider(m, rest)
	case "backend", "cloud":
		return r.backend(m, part, rest)
	}
	return nil, bad("An address of a terraform block names one of %s.%s", strings.Join(terraformParts, ", "), lang.Suggest(part, setOf(terraformParts)))
}

func setOf(names []string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}

// requiredProvider resolves an entry of required_providers, or one of its arguments.
func (r finder) requiredProvider(m *eval.Module, path []step) (begin, diag.List) {
	all := m.Node.Config.RequiredProviders
	if len(path) == 0 {
		return nil, bad("The address needs the local name of a provider, as in terraform.required_providers.aws.")
	}
	rp := all[path[0].name()]
	if rp == nil {
		return nil, missing(m, "entry of required_providers", path[0].name(), all)
	}
	var versions []string
	for _, c := range rp.Version {
		versions = append(versions, c.Text)
	}
	parts := map[string]cty.Value{}
	if !rp.Source.IsZero() {
		parts["source"] = cty.StringVal(rp.Source.Display())
	}
	if len(versions) > 0 {
		parts["version"] = cty.StringVal(strings.Join(versions, ", "))
	}
	text, v, part := named(m, "terraform.required_providers."+rp.Name), cty.ObjectVal(parts), ""
	if len(path) > 1 {
		name := path[1].name()
		if _, ok := parts[name]; !ok {
			return nil, bad("%s has no %q.%s", text, name, lang.Suggest(name, parts))
		}
		text, v, part = text+"."+name, parts[name], name
	}
	return func(r *replay) cursor {
		step := &Step{Kind: Argument, Text: text, At: r.lines.layered(r.lines.place(entryAt(rp, part), nil), rp.Layer)}
		for u := rp.Replaced; u != nil; u = u.Replaced {
			step.Replaces = append(step.Replaces, *r.lines.layered(r.lines.place(entryAt(u, part), nil), u.Layer))
		}
		r.add(step)
		r.learn(v)
		return cursor{}
	}, nil
}

// entryAt returns the range of an argument of an entry. It returns the range of the entry if argument is
// "" or not set.
func entryAt(rp *config.RequiredProvider, argument string) source.Range {
	switch {
	case argument == "source" && !rp.Source.IsZero():
		return rp.SourceAt
	case argument == "version" && len(rp.Version) > 0:
		return rp.Version[0].At
	}
	return rp.At
}

// backend resolves an argument of the backend or cloud block.
func (r finder) backend(m *eval.Module, part string, path []step) (begin, diag.List) {
	b := m.Node.Config.Backend
	if b == nil && part == "backend" && m.Parent() == nil && r.in.e.Unit != nil && len(path) > 0 { // the remote_state block of the unit generates the backend block
		config := append([]step{nameStep("remote_state"), nameStep("config")}, path...)
		if way, ok, ds := r.in.e.Unit.Part(traversal(config)); ok && !ds.HasErrors() {
			return func(r *replay) cursor {
				r.weigh(evidence{guard: guard{byName: true}, argument: path})
				return r.take(way)
			}, nil
		}
	}
	if b == nil || (b.Type == "cloud") != (part == "cloud") {
		return nil, bad("There is no %s block in %s.", part, where(m))
	}
	what := named(m, "terraform."+part)
	f := moduleFrame(m)
	f.guard = guard{byName: true}
	if len(path) > 0 && path[0].name() == b.Type { // terraform.backend.s3.key
		path = path[1:]
	}
	if len(path) == 0 {
		return wholeBlock(whole{text: what, at: b.At, f: f, body: b.Body}), nil
	}
	return inBody(f, b.Body, path, what), nil
}
