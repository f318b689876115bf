package planning

import (
	"path/filepath"
	"time"

	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/project"
	"github.com/terrace-iac/terrace/internal/readlog"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

// readFlags say what a plan does not read.
type readFlags struct {
	Minimal     bool          // objects that do not change
	MinimalData bool          // data sources with the arguments of the last time
	MaxAge      time.Duration // what an earlier command read since then
}

func (o *readFlags) flags() command.Flags {
	return command.Flags{
		command.Bool(&o.Minimal, "minimal-refresh", "Check for external changes only of those objects that the plan changes, going by configuration and state; -refresh=config is the same. What differs outside of the others is not found."),
		command.Bool(&o.MinimalData, "minimal-data", "Read a data source only where its arguments are new or something that it depends on changes."),
		command.Duration(&o.MaxAge, "refresh-max-age", "duration", "Do not read again what a command here has read so lately, such as 10m, if the plan does not change it."),
	}
}

// apply sets the options of a plan from a state.
func (o *readFlags) apply(out *engine.PlanOptions, c *command.Call, from *state.State) {
	out.MinimalRefresh, out.MinimalData, out.Readings.Note = o.Minimal, o.MinimalData, true
	if o.MaxAge <= 0 && !o.MinimalData {
		return
	}
	log, now := readlog.Open(ReadLogs(c), from), c.Now()
	if o.MaxAge > 0 {
		out.Readings.Recent = log.Recent(now.Add(-o.MaxAge))
	}
	if o.MinimalData {
		out.Readings.Args = log.Args()
	}
}

// ReadLogs is the folder for what is known of reads, "" for none.
func ReadLogs(c *command.Call) string {
	if base := project.CacheDir(c); base != "" {
		return filepath.Join(base, "reads")
	}
	return ""
}

// noteReads keeps what a plan has read, and what an apply of it left, if there was one.
func (r *run) noteReads(p *plan.Plan, final *state.State) {
	if p == nil || len(p.Readings) == 0 && final == nil {
		return
	}
	now := r.Now()
	log := readlog.Open(ReadLogs(r.Call), p.PrevRun)
	log.Read(p.Readings, now)
	at := p.Prior
	if final != nil {
		at = final
		log.Applied(p, final, now)
	}
	if err := log.Save(at); err != nil { // a help and no more
		r.Report.Stream.Log("The times of reads were not kept: " + err.Error())
	}
}
