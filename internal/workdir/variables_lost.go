package workdir

import (
	"slices"

	"github.com/terrace-iac/terrace/engine"
)

// Lost returns the values of a name that are overridden by another source, those with the highest
// precedence first.
func (g *GivenVariables) Lost(name string) []engine.InputValue {
	var out []engine.InputValue
	for _, i := range slices.Backward(g.items) {
		if i.name == name {
			out = append(out, i.value)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out[1:] // the first one is in effect
}
