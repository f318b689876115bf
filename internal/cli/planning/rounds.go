package planning

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/plan/rounds"
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
		flag.Func(func(text string) (err error) {
			o.RoundsAllow, err = rounds.Parse(text)
			return err
		}, "rounds-allow", "actions", "With -auto-approve: what rounds after the first may do without a question, as a list of "+strings.Join(rounds.Actions(), ", ")+". Without it, only the first round is approved. Data sources may always be read."),
		flag.Bool(&o.Detailed, "detailed-exitcode", "Exit with status 2 if the plan was applied and objects are still deferred."),
	}
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
		if !rounds.Continues(done.Plan, round, o.Rounds) || ctx.Err() != nil {
			return r.left(o, done.Plan)
		}
		options.Replace, options.ReplacePatterns = nil, nil // the state contains what is still to be replaced
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
			ds = append(ds, rounds.Check(p, round, o.RoundsAllow)...)
		}
		return !ds.HasErrors(), ds
	}
	r.Report.Tell(ds)
	return r.approve(ctx, o)
}

// left lists the objects that are still deferred, and returns the exit status.
func (r *run) left(o *applyOptions, p *plan.Plan) int {
	if len(p.Deferred) == 0 {
		return 0
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nStill deferred:\n\n")
	for _, d := range p.Deferred {
		var waits []string
		if all := d.Waits(); len(all) > 0 {
			waits = []string{view.ShortList(all)}
		}
		fmt.Fprintf(&b, "  %s.\n", plan.DeferralText(d.Addr, d.Reason.Text(), &d.At, waits))
	}
	if p.Changing() {
		fmt.Fprintf(&b, "\nTo plan %s now, run \"%s apply -defer\" again, or use -rounds.\n", pronoun(len(p.Deferred)), view.Program)
	} else {
		fmt.Fprintf(&b, "\nNothing else could be applied, so %s cannot be planned by applying again. What they wait for must come from elsewhere.\n", pronoun(len(p.Deferred)))
	}
	var replaced []string
	later := plan.DeferredInstances(p.Deferred)
	for o, obj := range p.Prior.Objects() {
		if obj.Replace != "" && o.Deposed == "" && later(o.Instance) {
			replaced = append(replaced, o.Instance.String())
		}
	}
	if len(replaced) > 0 {
		slices.Sort(replaced)
		fmt.Fprintf(&b, "\nThe next plan replaces these objects, because the state contains the reason: %s. To keep an object, run \"%s untaint ADDRESS\".\n", view.ShortList(replaced), view.Program)
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
