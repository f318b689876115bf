package unit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A featuresNode is the effective feature flags of a file.
type featuresNode struct {
	e   *evaluation
	raw node
}

// features returns the feature flags of a file. As in Terragrunt, an included file sees
// only its own flags, and the including file sees those of both.
func (c *evaluator) features(e *evaluation) node {
	if e.role == includeRole {
		return &featuresNode{e, ownFields(e).member("feature")}
	}
	b := e.base()
	return &featuresNode{b, c.merged(b).member("feature")}
}

func (n *featuresNode) open(*evaluator) node { return n }

func (n *featuresNode) value(c *evaluator) cty.Value { return objectOf(c, n) }

func (n *featuresNode) where() (*evaluation, *source.Range) { return n.e, nil }

func (n *featuresNode) listed() {}

func (n *featuresNode) lacks(key string) string {
	return fmt.Sprintf("There is no feature flag named %q in this file.", key)
}

func (n *featuresNode) keys(c *evaluator) ([]string, bool) {
	if n.raw == nil {
		return nil, true
	}
	names, _ := n.raw.keys(c)
	return names, true
}

func (n *featuresNode) child(c *evaluator, key string) node {
	if n.raw == nil {
		return nil
	}
	in := n.raw.child(c, key)
	if in == nil {
		return nil
	}
	g := newGroup(in.where())
	g.put("value", c.feature(key, in))
	return g
}

// feature returns the value of a flag: from the command line, or else its default.
func (c *evaluator) feature(label string, raw node) node {
	def := raw.child(c, "default")
	e, at := raw.where()
	text, given := c.l.env.Request.Features[label]
	if def == nil {
		if given {
			return valueNode{cty.StringVal(text), e, at}
		}
		c.errorf(at, diag.CodeUnitMissingArgument, "Missing required argument", "The argument \"default\" of feature %q is required, but no definition was found.", label)
		return valueNode{cty.DynamicVal, e, at}
	}
	if !given {
		return def
	}
	return &converted{def, func(c *evaluator, v cty.Value) cty.Value {
		if v.Type() != cty.Bool {
			return cty.StringVal(text)
		}
		b, err := strconv.ParseBool(strings.TrimSpace(text))
		if err != nil {
			return c.errorf(at, diag.CodeUnitFeatureValue, "Invalid feature value", "The default of the feature flag %q is true or false, so the value given for it must be too.", label)
		}
		return cty.BoolVal(b)
	}}
}
