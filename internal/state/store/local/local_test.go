package local

import (
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/storetest"
)

func clock() time.Time { return time.Date(2026, 11, 21, 11, 25, 23, 753197909, time.UTC) }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Place {
		dir := t.TempDir()
		return storetest.Place{
			Open: func(ws string) store.Store {
				return Open(Options{Dir: dir, Workspace: ws, Who: "me@here", Now: clock})
			},
			Workspaces: OpenWorkspaces(Options{Dir: dir}),
			Locks:      true,
		}
	})
}
