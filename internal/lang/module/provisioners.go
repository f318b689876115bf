package module

import (
	"maps"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
)

// CheckProvisioners reports provisioners of unknown types. Planning would report them too late,
// when the first provisioner runs and much is already done.
func CheckProvisioners(t *Tree, known func(typ string) bool) diag.List {
	var ds diag.List
	check := func(all []*config.Provisioner) {
		for _, p := range all {
			if !known(p.Type) {
				ds = append(ds, diag.Errorf(diag.CodeApplyProvisioner, &p.At, "Failed to instantiate provisioner", "There is no provisioner %q: those that are built in are file, local-exec and remote-exec.", p.Type)...)
			}
		}
	}
	seen := map[*config.Module]bool{}
	t.Walk(func(n *Node) {
		if seen[n.Config] {
			return
		}
		seen[n.Config] = true
		for _, a := range slices.SortedFunc(maps.Keys(n.Config.Resources), addr.Resource.Compare) {
			check(n.Config.Resources[a].Provisioners)
		}
		for _, r := range n.Config.Removed {
			check(r.Provisioners)
		}
	})
	return ds
}
