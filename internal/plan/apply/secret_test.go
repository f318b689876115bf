package apply_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/plan"
)

// The name that identifies an object for users is never a sensitive value, whether the
// configuration or the schema marks it.
func TestSecretNamesAreNotShown(t *testing.T) {
	w := newWorld(t)
	w.providers.Managed["x_thing"].Schema.Block.Attributes["id"].Sensitive = true
	w.providers.Data["x_thing"].Schema.Block.Attributes["id"].Sensitive = true
	var mu sync.Mutex
	var names []string
	kinds := map[event.Kind]bool{}
	w.observe = func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.IDKey == "id" || strings.Contains(e.IDValue, "hush") {
			t.Errorf("%s: %s is shown: %q", e.Object.Instance, e.IDKey, e.IDValue)
		}
		kinds[e.Kind] = true
		names = append(names, e.IDValue)
	}
	secret := `
variable "s" {
  default   = "hush"
  sensitive = true
}
resource "x_thing" "a" {
  name = var.s
  tags = { v = "%" }
}
resource "x_thing" "b" { name = "plain" }
data "x_thing" "a" { name = var.s }
`
	for _, step := range []struct {
		text string
		mode plan.Mode
	}{{strings.Replace(secret, "%", "1", 1), plan.Normal}, {strings.Replace(secret, "%", "2", 1), plan.Normal}, {secret, plan.Destroy}} {
		if _, _, ds := w.do(step.text, step.mode); ds.HasErrors() {
			t.Fatal(ds.Err())
		}
	}
	for _, k := range []event.Kind{event.RefreshStart, event.ReadDone, event.ApplyStart, event.ApplyDone} {
		if !kinds[k] {
			t.Errorf("there was no event of kind %v", k)
		}
	}
	if !slices.Contains(names, "plain") {
		t.Error("a name that may be shown is not")
	}
}
