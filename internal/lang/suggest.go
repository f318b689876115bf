package lang

import (
	"fmt"
	"maps"

	"github.com/terrace-iac/terrace/internal/base/similar"
)

// Suggest returns ` Did you mean "x"?` for the name that is most similar to a wrong one, or ""
// if none is similar.
func Suggest[V any](name string, among map[string]V) string {
	best := Nearest(name, among)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" Did you mean %q?", best)
}

// Nearest returns the key that is most similar to a name, or "" if none is similar.
func Nearest[V any](name string, among map[string]V) string {
	return similar.Nearest(name, maps.Keys(among))
}
