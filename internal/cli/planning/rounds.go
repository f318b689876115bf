package planning

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/plan"
)

// # Rounds
//
// An apply with -defer carries out what can be planned. With -rounds, it plans again after that,
// because the values for which objects were deferred may be known then. Each round is a plan and
// an apply of its own: it locks and releases the state, and its plan is shown. Nothing is applied
// that was not in a shown plan. The rounds end when nothing is deferred, when a round has nothing
// to apply, or at the given number.

// deferFlag returns -defer.
func deferFlag(o *flags.Request) flag.Flag {
	return flag.Bool(&o.Plan.Defer, "defer", "Defer objects whose count, for_each, enabled argument or provider configuration is not known yet, and everything that depends on them, instead of reporting an error. The plan lists them with what they wait for.")
}

// roundsFlags returns the flags of apply for rounds.
func roundsFlags(o *flags.Request) flag.Flags {
	return flag.Flags{
		deferFlag(o),
		flag.AtLeast(&o.Rounds, 1, "rounds", "n", "Plan and apply at most n times, as long as objects are deferred. Each plan is shown and must be approved. Implies -defer.").Then(func(flag.Setting) { o.Plan.Defer = true }),
		flag.Func(func(text string) error {
			for name := range strings.SplitSeq(text, ",") {
				if !slices.Contains(roundsAllowed, name) {
					return fmt.Errorf("it must be a list of %s", strings.Join(roundsAllowed, ", "))
				}
				o.RoundsAllow = append(o.RoundsAllow, name)
			}
			return nil
		}, "rounds-allow", "actions", "With -auto-approve: what rounds after the first may do without a question, as a list of "+strings.Join(roundsAllowed, ", ")+". Without it, only the first round is approved. Data sources may always be read."),
		flag.Bool(&o.Detailed, "detailed-exitcode", "Exit with status 2 if the plan was applied and objects are still deferred."),
	}
}

// roundsAllowed are the actions in -rounds-allow.
var roundsAllowed = []string{"create", "update", "replace", "destroy", "forget", "import", "outputs"}

// actionsOf returns the actions of a plan in the words of -rounds-allow, each with one object
// that it is about.
func actionsOf(p *plan.Plan) map[string]string {
	out := map[string]string{}
	for _, c := range p.Changes {
		name := ""
		switch {
		case c.Op == plan.Create:
			name = "create"
		case c.Op == plan.Update:
			name = "update"
		case c.Op.IsReplace():
			name = "replace"
		case c.Op == plan.Delete:
			name = "destroy"
		case c.Op == plan.Forget:
			name = "forget"
		}
		if name != "" && out[name] == "" {
			out[name] = c.Addr.String()
		}
		if c.Import != nil && out["import"] == "" {
			out["import"] = c.Addr.String()
		}
	}
	for _, o := range p.Outputs { // a new output changes nothing that exists
		if o.Op == plan.Update || o.Op == plan.Delete {
			out["outputs"] = "output." + o.Name
		}
	}
	return out
}

// mayApply returns an error if -auto-approve does not cover a round after the first.
func mayApply(p *plan.Plan, round int, allowed []string) diag.List {
	did := actionsOf(p)
	for _, name := range slices.Sorted(maps.Keys(did)) {
		if !slices.Contains(allowed, name) {
			return diag.Errorf(diag.CodeCLINotApproved, nil, "Round was not approved", "Round %d would %s %s, which -rounds-allow does not permit, so nothing of this round was applied. The rounds before it are in the state. Run the command again to apply this plan, or add %q to -rounds-allow.", round, verb(name), did[name], name)
		}
	}
	return nil
}

// verb returns an action of -rounds-allow as a verb.
func verb(action string) string {
	if action == "outputs" {
		return "change"
	}
	return action
}

// rounds plans and applies until nothing is deferred, and returns the exit status.
func (r *run) rounds(ctx context.Context, o *applyOptions) int {
	options := r.options
	for round := 1; ; round++ {
		if round > 1 {
			r.Report.Human.Say(fmt.Sprintf("\nRound %d of at most %d: planning what was deferred.\n", round, o.Rounds))
		}
		done, code := r.apply(ctx, o, workdir.Want{Plan: options, Apply: true}, func(ctx context.Context, p *plan.Plan, ds diag.List) (bool, diag.List) {
			return r.round(ctx, o, round, p, ds)
		})
		if !done.Applied {
			return code
		}
		last := round >= o.Rounds || !done.Plan.Changing() || ctx.Err() != nil
		if len(done.Plan.Deferred) == 0 || last {
			return r.left(o, done.Plan)
		}
		options.Replace = stillToReplace(done.Plan)
	}
}

// round shows the plan of a round and decides whether it is applied.
func (r *run) round(ctx context.Context, o *applyOptions, round int, p *plan.Plan, ds diag.List) (bool, diag.List) {
	if r.options.Mode == plan.Destroy && slices.ContainsFunc(ds.Errors(), unlessPrevented) { // do not show an incomplete list of objects to destroy
		p = nil
	}
	ds = slices.Concat(ds, r.showPlan(ctx, p), r.checkRules(ctx, p))
	if ds.HasErrors() || p == nil || !p.Changing() || p.OnlyMoves() {
		return true, ds
	}
	if o.Approved {
		if round > 1 {
			ds = append(ds, mayApply(p, round, o.RoundsAllow)...)
		}
		return !ds.HasErrors(), ds
	}
	r.Report.Tell(ds)
	return r.approve(ctx, o)
}

// stillToReplace returns the instances that the plan would have replaced for a reason that the
// next plan does not find again, and that it deferred.
func stillToReplace(p *plan.Plan) []addr.Instance {
	var out []addr.Instance
	for _, d := range p.Deferred {
		if c := d.Change; c != nil && c.Op.IsReplace() && (c.Reason == plan.ReplaceByRequest || c.Reason == plan.ReplaceByTriggers) {
			out = append(out, c.Addr)
		}
	}
	later := plan.DeferredInstances(p.Deferred)
	for _, a := range p.Replace {
		if later(a) && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// left lists the objects that are still deferred, and returns the exit status.
func (r *run) left(o *applyOptions, p *plan.Plan) int {
	if len(p.Deferred) == 0 {
		return 0
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nStill deferred:\n\n")
	for _, d := range p.Deferred {
		fmt.Fprintf(&b, "  %s.\n", d)
	}
	if p.Changing() {
		fmt.Fprintf(&b, "\nTo plan %s now, run \"%s apply -defer\" again, or use -rounds.\n", pronoun(len(p.Deferred)), view.Program)
	} else {
		fmt.Fprintf(&b, "\nNothing else could be applied, so %s cannot be planned by applying again. What they wait for must come from elsewhere.\n", pronoun(len(p.Deferred)))
	}
	for _, a := range stillToReplace(p) {
		fmt.Fprintf(&b, "\nAdd -replace='%s', because the next plan would not find the reason to replace it again.\n", a)
	}
	r.Report.Human.Say(b.String())
	if o.Detailed {
		return 2
	}
	return 0
}

// pronoun returns the pronoun for n objects.
func pronoun(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}
