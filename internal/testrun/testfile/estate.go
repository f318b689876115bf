package testfile

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// EstateSuffix is the suffix of files with tests of an estate.
const EstateSuffix = ".estatetest.hcl"

// An Estate is a file with tests of the units below its directory.
type Estate struct {
	Name      string
	Runs      []*EstateRun
	Providers map[string]*Provider // by name or name.alias; all are mocks
	Overrides []*Override          // overrides of resources and data sources in every unit
}

// An EstateRun plans or applies units.
type EstateRun struct {
	Name     string
	At       source.Range
	Command  Command
	Filters  []string
	Asserts  []*config.Rule
	Snapshot bool // the plan is compared with a stored snapshot
}

var (
	estateSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "run", LabelNames: []string{"name"}}, {Type: "mock_provider", LabelNames: []string{"name"}},
		{Type: "override_resource"}, {Type: "override_data"},
	}}
	estateRunSchema = &hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "command"}, {Name: "filter"}, {Name: "snapshot"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "assert"}},
	}
)

// ParseEstate parses a file with tests of an estate.
func ParseEstate(name string, text []byte, set *source.Set) (*Estate, diag.List) {
	layer := &source.Layer{Kind: source.Base, Name: name}
	set.Add(&source.File{Path: name, Bytes: text, Layer: layer})
	p := &parser{layer: layer}
	out := &Estate{Name: name, Providers: map[string]*Provider{}}
	body := p.parse(name, text)
	if body == nil {
		return out, p.ds
	}
	for _, b := range p.content(body, estateSchema).Blocks {
		switch b.Type {
		case "run":
			r := p.estateRun(b)
			if slices.ContainsFunc(out.Runs, func(o *EstateRun) bool { return o.Name == r.Name }) {
				p.errorf(diag.CodeTestFile, b.DefRange, "Duplicate \"run\" block names", "This test file already has a run block named %s.", r.Name)
				continue
			}
			out.Runs = append(out.Runs, r)
		case "mock_provider":
			pr := p.provider(b)
			if have := out.Providers[pr.Key()]; have != nil {
				p.errorf(diag.CodeTestFile, b.DefRange, "Duplicate provider block", "A provider for %q is already defined at %s.", pr.Key(), have.At)
				continue
			}
			out.Providers[pr.Key()] = pr
		default:
			out.Overrides = p.single(out.Overrides, b)
		}
	}
	return out, p.ds.Sort()
}

func (p *parser) estateRun(b *hcl.Block) *EstateRun {
	c := p.content(b.Body, estateRunSchema)
	r := &EstateRun{Name: b.Labels[0], At: b.DefRange}
	r.Command = Plan
	if c.Attributes["command"] != nil {
		r.Command = Command(p.keyword(c, "command", "apply or plan.", "apply", "plan"))
	}
	if v := p.flag(c, "snapshot"); v != nil {
		r.Snapshot = *v
	}
	if a := c.Attributes["filter"]; a != nil {
		v, diags := a.Expr.Value(nil)
		p.hcl(diags)
		switch {
		case diags.HasErrors():
		case v.IsNull() || !v.CanIterateElements():
			p.errorf(diag.CodeConfigUnsuitableValue, a.Expr.Range(), "Unsuitable value type", "The argument \"filter\" must be a list of queries, as --filter takes them.")
		default:
			for it := v.ElementIterator(); it.Next(); {
				_, q := it.Element()
				if q.IsNull() || q.Type() != cty.String {
					p.errorf(diag.CodeConfigUnsuitableValue, a.Expr.Range(), "Unsuitable value type", "The argument \"filter\" must be a list of queries, as --filter takes them.")
					break
				}
				r.Filters = append(r.Filters, q.AsString())
			}
		}
	}
	for _, b := range c.Blocks {
		if a := p.assert(b); a != nil {
			r.Asserts = append(r.Asserts, a)
		}
	}
	return r
}
