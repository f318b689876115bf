package view

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/plan"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// header writes the comment lines above a change. drift means that the change was found, not
// planned.
func (v *planView) header(c *plan.Change, drift bool) {
	name := addr.Object{Instance: c.Addr, Deposed: c.Deposed}.String()
	line := func(text string) { v.str("  # ", text, "\n") }
	title := func(s string) {
		v.dressed(bold, "  # "+name)
		v.str(" ", s, "\n")
	}
	switch {
	case drift && c.Op == plan.Update:
		title("has changed")
	case drift && c.Op == plan.Delete:
		title("has been deleted")
	case c.Op == plan.Create:
		title("will be created")
	case c.Op == plan.Read:
		title("will be read during apply")
	case c.Op == plan.Update:
		title("will be updated in-place")
	case c.Op.IsReplace():
		v.replaceTitle(c, name)
	case c.Op == plan.Delete && c.Deposed != "":
		title("will be destroyed")
		line("(left over from a partially-failed replacement of this instance)")
	case c.Op == plan.Delete:
		title("will be destroyed")
	case c.Op == plan.Forget:
		title("will be removed from the " + v.names.Product() + " state but will not be destroyed" + inBrackets(reasonText(c)))
	case c.Moved():
		v.dressed(bold, "  # "+c.Prev.String())
		v.str(" has moved to ")
		v.dressed(bold, name)
		v.str("\n")
	case c.Import != nil:
		title("will be imported")
		if c.Import.GeneratedConfig != "" {
			line("(config will be generated)")
		}
	}
	if !drift && c.Op != plan.Forget {
		if because := reasonText(c); because != "" {
			line("(" + because + ")")
		}
	}
	if c.Moved() && c.Op != plan.NoOp {
		line("(moved from " + c.Prev.String() + ")")
	}
	if c.Import != nil {
		v.imported(c)
	}
}

// inBrackets returns a reason in parentheses, or "" for none.
func inBrackets(because string) string {
	if because == "" {
		return ""
	}
	return " (" + because + ")"
}

func (v *planView) imported(c *plan.Change) {
	if c.Import.ID != "" {
		v.str("  # (imported from ", quoted(c.Import.ID), ")\n")
	} else {
		v.str("  # imported using resource identity: ")
		for i, line := range identityLines(c.Import.Identity) {
			if i > 0 {
				v.str("  # ")
			}
			v.str(line, "\n")
		}
	}
	if c.Op.IsReplace() {
		v.str("  # ")
		v.dressed(yellow, "Warning: this will destroy the imported resource")
		v.str("\n")
	}
}

// identityLines returns an identity as lines of JSON.
func identityLines(v cty.Value) []string {
	src, err := ctyjson.Marshal(v, v.Type())
	var b bytes.Buffer
	if err == nil {
		err = json.Indent(&b, src, "", "  ")
	}
	if err != nil {
		return []string{"{}"} // only in a corrupt plan file
	}
	return strings.Split(b.String(), "\n")
}

func (v *planView) replaceTitle(c *plan.Change, name string) {
	v.dressed(bold, "  # "+name)
	switch c.Reason {
	case plan.ReplaceTainted:
		v.str(" is tainted, so it must be ")
		v.dressed(bold+red, "replaced")
	case plan.ReplaceByRequest:
		v.str(" will be ")
		v.dressed(bold+red, "replaced")
		v.str(", as requested")
	case plan.ReplaceByTriggers:
		v.str(" will be ")
		v.dressed(bold+red, "replaced")
		v.str(" due to changes in replace_triggered_by")
	default:
		v.str(" must be ")
		v.dressed(bold+red, "replaced")
	}
	if c.Op == plan.ForgetThenCreate {
		v.str(" - older instance will not be destroyed (lifecycle.destroy = false)")
	}
	v.str("\n")
}

// reasonText returns the reason for a delete, a read or a forget, or "".
func reasonText(c *plan.Change) string {
	switch {
	case c.Op == plan.Forget && c.Reason == plan.ForgotDestroyConfig && c.Addr.Resource.Mode == addr.Managed:
		return "because lifecycle.destroy = false is set in the configuration"
	case c.Op == plan.Forget && c.Reason == plan.ForgotDestroyState:
		return "because lifecycle.destroy = false was configured before this resource was removed from the configuration"
	case c.Op != plan.Delete && c.Op != plan.Read:
		return ""
	}
	switch c.Reason {
	case plan.DeleteNoResourceConfig:
		return "because " + c.Addr.Resource.String() + " is not in configuration"
	case plan.DeleteNoMoveTarget:
		return "because " + c.Prev.String() + " was moved to " + c.Addr.String() + ", which is not in configuration"
	case plan.DeleteNoModule:
		return "because " + string(c.Addr.Module) + " is not in configuration"
	case plan.DeleteWrongRepetition:
		switch c.Addr.Key.Kind {
		case addr.IntKey:
			return "because resource does not use count"
		case addr.StringKey:
			return "because resource does not use for_each"
		}
		return "because resource uses count or for_each"
	case plan.DeleteCountIndex:
		return "because index " + c.Addr.Key.String() + " is out of range for count"
	case plan.DeleteEachKey:
		return "because key " + c.Addr.Key.String() + " is not in for_each map"
	case plan.DeleteEnabledFalse:
		return "because enabled is false"
	case plan.ReadConfigUnknown:
		return "config refers to values not yet known"
	case plan.ReadDependencyPending:
		return "depends on a resource or a module with changes pending"
	case plan.ReadCheckNested:
		return "config will be reloaded to verify a check block"
	}
	return ""
}

// drift writes the changes made outside of the program that are relevant to the plan. It
// reports whether there were any.
func (v *planView) drift() bool {
	some := false
	for c, n := range v.drifted() {
		if !some {
			v.driftHead()
			some = true
		}
		v.driftChange(c, n)
	}
	if some {
		v.driftFoot()
	}
	return some
}

// drifted returns the changes made outside of the program that are shown: of an instance, those
// of its relevant attributes. A reference to a resource with count or for_each as a whole
// ("x[*].id", "values(x)") names no instance, and shows nothing, as in OpenTofu: every change of
// a tag would be reported for every module with such an output.
func (v *planView) drifted() iter.Seq2[*plan.Change, *node] {
	return func(yield func(*plan.Change, *node) bool) {
		relevant := map[addr.Instance][]cty.Path{}
		if v.plan.Mode != plan.RefreshOnly {
			for _, r := range v.plan.Relevant {
				relevant[r.Resource] = append(relevant[r.Resource], r.Path)
			}
		}
		for _, c := range plan.Shown(v.plan.Drift) {
			var only *value.PathSet
			if v.plan.Mode != plan.RefreshOnly {
				if only = value.NewPathSet(relevant[c.Addr]); only == nil {
					continue
				}
			}
			if c.Op == plan.NoOp && (!c.Moved() || v.plan.Mode != plan.RefreshOnly) {
				continue
			}
			n := v.compare(c, only)
			if n.op == same && c.Op != plan.NoOp {
				continue
			}
			if !yield(c, n) {
				return
			}
		}
	}
}

func (v *planView) driftChange(c *plan.Change, n *node) {
	v.str("\n")
	v.header(c, true)
	v.body(c, n)
}

func (v *planView) driftTitle() {
	v.str("\n")
	v.dressed(bold+cyan, "Note:")
	v.dressed(bold, " Objects have changed outside of "+v.names.Product())
	v.str("\n")
}

func (v *planView) driftHead() {
	v.driftTitle()
	v.sentences(0, "\n", v.names.Product(), " detected the following changes made outside of ", v.names.Product(), " since the\nlast \"", v.names.Program(), " apply\" which may have affected this plan:\n")
}

func (v *planView) driftFoot() {
	if v.plan.Mode == plan.RefreshOnly {
		v.sentences(0, "\n\nThis is a refresh-only plan, so ", v.names.Product(), " will not take any actions to undo\nthese. If you were expecting these changes then you can apply this plan to\nrecord the updated values in the ", v.names.Product(), " state without changing any remote\nobjects.\n")
		return
	}
	v.sentences(0, "\n\nUnless you have made equivalent changes to your configuration, or ignored the\nrelevant attributes using ignore_changes, the following plan may include\nactions to undo or respond to these changes.\n")
}

// Generated returns the text about configuration that was written to a file.
func Generated(names diag.Names, path string) string {
	return "\n" + names.Product() + " has generated configuration and written it to " + path + ". Please review the\nconfiguration and edit it as necessary before adding it to version control."
}
