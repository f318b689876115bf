package program

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/internal/temporal/connect"
	"go.temporal.io/sdk/client"
)

// logs prints the output of units of a run so far. No units means all units.
func (p *program) logs(ctx context.Context, s connect.Settings, c client.Client, blobs *remote.Blobs, id string, units []string) error {
	missing := slices.Clone(units)
	f := p.follower(s, c, blobs, func(m remote.Message) error {
		if m.Tasks != nil {
			missing = slices.DeleteFunc(missing, func(u string) bool {
				return slices.ContainsFunc(m.Tasks, func(t schedule.Task) bool { return t.Name == u })
			})
			if len(missing) > 0 {
				return fmt.Errorf("the run %s has no unit %s", id, strings.Join(missing, ", "))
			}
		}
		if m.Ended == nil || len(units) > 0 && !slices.Contains(units, m.Ended.Unit) {
			return nil
		}
		return printLog(p.Stdout, m.Ended)
	})
	f.Once = true
	return f.Follow(ctx, id)
}

func printLog(out io.Writer, e *remote.Ended) error {
	if e.Lost != "" {
		_, err := fmt.Fprintf(out, "[%s] %s\n", e.Unit, e.Lost)
		return err
	}
	var report remote.Report
	if err := json.Unmarshal(e.Report, &report); err != nil {
		return fmt.Errorf("what the unit %s reported cannot be read: %w", e.Unit, err)
	}
	for _, c := range report.Chunks {
		if _, err := io.WriteString(out, c.Text); err != nil {
			return err
		}
	}
	return nil
}
