package retry_test

import (
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/estate/retry"
	"github.com/terrace-iac/terrace/unit"
)

// Without an errors block the default list decides; a block decides alone, and its ignore blocks
// come first.
func TestDecide(t *testing.T) {
	block := &unit.Errors{
		Retry:  []unit.Retry{{Name: "flaky", RetryableErrors: []string{"flaky"}, MaxAttempts: 2, SleepSeconds: 3}},
		Ignore: []unit.Ignore{{Name: "known", IgnorableErrors: []string{"known"}}},
	}
	const reset = "Error installing provider: read tcp 10.0.0.1: connection reset by peer"
	for _, c := range []struct {
		name   string
		block  *unit.Errors
		text   string
		try    int
		again  bool
		rule   string
		ignore bool
	}{
		{"default list", nil, reset, 1, true, "default list of temporary errors", false},
		{"last attempt", nil, reset, unit.DefaultMaxAttempts, false, "default list of temporary errors", false},
		{"other error", nil, "Invalid index", 1, false, "", false},
		{"a block replaces the list", block, reset, 1, false, "", false},
		{"a block", block, "a flaky thing", 1, true, "retry block flaky", false},
		{"ignored", block, "known and flaky", 1, false, "", true},
	} {
		d, ds := retry.Decide(c.block, c.text, c.try, false)
		if ds.HasErrors() || d.Again != c.again || (d.Ignore != nil) != c.ignore || c.rule != "" && d.Rule() != c.rule {
			t.Errorf("%s: %+v, %q, %v", c.name, d, d.Rule(), ds)
		}
		if c.again && c.block != nil && d.Sleep != 3*time.Second {
			t.Errorf("%s: sleeps %s", c.name, d.Sleep)
		}
	}
}
