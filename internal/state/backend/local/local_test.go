package local

import (
	"testing"

	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
)

func TestSuite(t *testing.T) {
	backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place {
		return backendtest.Place{Services: backendtest.Services(t), Locks: true, Workspaces: true}
	})
}
