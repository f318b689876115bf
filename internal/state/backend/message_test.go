package backend

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/diag"
)

// The message about a request that an interrupt cancelled contains no advice about the service.
func TestMessageOfInterrupt(t *testing.T) {
	err := &Error{Answer: "host: context canceled", Advice: "Check that the address is right.", Err: fmt.Errorf("get: %w", context.Canceled)}
	m := Message(diag.CodeBackendReadFailed, "Failed to read the state", "https://host/state", err)[0]
	if m.Summary != "Failed to read the state" || !strings.Contains(m.Detail, "interrupted") || strings.Contains(m.Detail, "Check") || strings.Contains(m.Detail, "context") {
		t.Errorf("%s: %s", m.Summary, m.Detail)
	}
}
