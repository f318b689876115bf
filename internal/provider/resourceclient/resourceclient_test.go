package resourceclient_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/internal/provider/resourceclient"
	"github.com/terrace-iac/terrace/schema"
)

// broken is a provider without a schema.
type broken struct {
	plantest.Providers
	asked atomic.Int32
}

func (b *broken) Schema(context.Context, addr.Provider) (*schema.Provider, diag.List) {
	b.asked.Add(1)
	return nil, diag.Errorf("", nil, "Told to fail", "Nothing to say.")
}

// The schema of a provider is requested once, whatever the number of callers. If that
// fails, one caller gets the message, with the provider's name.
func TestSchemaFails(t *testing.T) {
	b := &broken{Providers: plantest.New()}
	sh := resourceclient.New(context.Background(), resourceclient.Options{Providers: b})
	a := addr.DefaultProvider("x")
	var calls atomic.Int32
	parallel.Each(8, 100, func(int) {
		_, ds := sh.Schema(a)
		if !ds.HasErrors() {
			t.Error("no error")
		}
		for _, m := range ds {
			if m.Summary == "Told to fail" && len(m.Notes) == 1 && strings.Contains(m.Notes[0].Text, a.Display()) {
				calls.Add(1)
			}
		}
	})
	if calls.Load() != 1 || b.asked.Load() != 1 {
		t.Errorf("called %d times, asked %d times", calls.Load(), b.asked.Load())
	}
}
