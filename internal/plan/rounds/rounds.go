// Package rounds decides what happens between the rounds of an apply: plans and applies that
// follow one another as long as objects are deferred.
//
// Main functions: Check and Continues. The one rule: a round after the first does
// without a question only what the user has allowed.
package rounds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/plan"
)

// Actions returns the names of the actions that -rounds-allow accepts.
func Actions() []string {
	return []string{"create", "update", "replace", "destroy", "forget", "import", "outputs"}
}

// Parse returns the actions in a list that is separated by commas.
func Parse(text string) ([]string, error) {
	out := strings.Split(text, ",")
	for _, name := range out {
		if !slices.Contains(Actions(), name) {
			return nil, fmt.Errorf("it must be a list of %s", strings.Join(Actions(), ", "))
		}
	}
	return out, nil
}

// CheckFlags returns an error about -rounds-allow, whose value is allowed, if it has no effect
// with the values of -rounds and -auto-approve.
func CheckFlags(most int, allowed []string, approved bool) diag.List {
	switch {
	case len(allowed) > 0 && most < 2:
		return diag.Errorf(diag.CodeCLIFlags, nil, "Incompatible options for rounds", "The -rounds-allow option limits the rounds after the first, so it needs -rounds with a number from 2 on.")
	case len(allowed) > 0 && !approved:
		return diag.Errorf(diag.CodeCLIFlags, nil, "Incompatible options for rounds", "The -rounds-allow option limits what is approved by -auto-approve. Without -auto-approve, each round is approved on its own.")
	}
	return nil
}

// Continues reports whether another round follows the one that applied p, of at most most.
func Continues(p *plan.Plan, round, most int) bool {
	return round < most && len(p.Deferred) > 0 && p.Changing()
}

// Check returns an error if p, the plan of a round after the first, contains actions that are
// not allowed. Data sources may always be read, and new outputs may always be stored.
func Check(p *plan.Plan, round int, allowed []string) diag.List {
	did := actionsOf(p)
	var would, missing []string
	for _, name := range slices.Sorted(maps.Keys(did)) {
		if slices.Contains(allowed, name) {
			continue
		}
		verb := name
		if name == "outputs" {
			verb = "change"
		}
		would, missing = append(would, verb+" "+did[name]), append(missing, name)
	}
	if len(missing) == 0 {
		return nil
	}
	return diag.Errorf(diag.CodeCLINotApproved, nil, "Round was not approved", "Round %d would %s, which -rounds-allow does not permit, so nothing of this round was applied. The rounds before it are in the state. Run the command again to apply this plan, or add %q to -rounds-allow.", round, strings.Join(would, " and "), strings.Join(missing, ","))
}

// actionsOf returns the names of the actions in a plan, each with one object that it is about.
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
	for _, o := range p.Outputs {
		if o.Op == plan.Update || o.Op == plan.Delete {
			out["outputs"] = "output." + o.Name
		}
	}
	return out
}
