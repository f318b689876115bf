package module

import (
	"strings"

	"github.com/hashicorp/go-version"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A Constraint is the version constraint of a module call. The zero Constraint allows every
// released version.
type Constraint struct {
	Text  string           // as written; "" if there is none
	Exact *version.Version // set if the constraint is a single exact version
	all   version.Constraints
}

// ParseConstraint parses the value of a version argument at a source range.
func ParseConstraint(text string, at source.Range) (Constraint, diag.List) {
	all, err := version.NewConstraint(text)
	if err != nil {
		return Constraint{}, diag.Errorf(diag.CodeConfigVersionConstraint, &at, "Invalid version constraint", "%q is not a version constraint: it is a list, separated by commas, of versions with one of the operators =, !=, >, >=, <, <= and ~> before each.", text)
	}
	c := Constraint{Text: text, all: all}
	if !strings.Contains(text, ",") {
		if v, err := version.NewVersion(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "="))); err == nil {
			c.Exact = v
		}
	}
	return c, nil
}

// Allows reports whether a version satisfies the constraint. A prerelease only satisfies it if
// the constraint consists of exactly this version.
func (c Constraint) Allows(text string) bool {
	v, err := version.NewVersion(text)
	if err != nil {
		return false
	}
	if v.Prerelease() != "" {
		return c.Exact != nil && c.Exact.Equal(v)
	}
	return c.all == nil || c.all.Check(v)
}

// CallVersion returns the version constraint of a node's call. given is false if the call has
// none, or its value is null.
func CallVersion(n *Node, o Options) (c Constraint, given bool, ds diag.List) {
	b := &builder{o: o}
	return b.version(n)
}

func (b *builder) version(n *Node) (c Constraint, given bool, ds diag.List) {
	arg := n.Call.Version
	if arg == nil {
		return Constraint{}, false, nil
	}
	v, ds := b.static(n.Parent, arg.Expr, "version", argumentOf(n.Parent, n.Call, "version"))
	if ds.HasErrors() || v.IsNull() {
		return Constraint{}, false, ds
	}
	at := arg.Expr.Range()
	if v.Type() != cty.String {
		return Constraint{}, false, diag.Errorf(diag.CodeConfigVersionConstraint, &at, "Invalid version constraint", "The version of a module must be a string.")
	}
	c, ds = ParseConstraint(v.AsString(), at)
	return c, true, ds
}
