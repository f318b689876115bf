package schedule_test

import (
	"slices"
	"testing"

	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/internal/estate/schedule/scheduletest"
)

func TestLocal(t *testing.T) {
	scheduletest.Run(t, func(*testing.T) schedule.Scheduler { return schedule.Local{Places: 1} })
}

func TestOrderOfCycles(t *testing.T) {
	tasks := []schedule.Task{{Name: "x", Needs: []int{1}}, {Name: "y", Needs: []int{0}}, {Name: "z"}, {Name: "w", Needs: []int{2}}}
	if got := schedule.Order(tasks); !slices.Equal(got, []int{2, 3, 0, 1}) {
		t.Errorf("got %v", got)
	}
}
