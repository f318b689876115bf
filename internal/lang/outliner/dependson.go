package outliner

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/outline"
	"github.com/terrace-iac/terrace/source"
)

// dependsOn appends the part for the argument depends_on of a block in a module, if it adds a dependency. of is
// a *config.Resource, a *config.Output or an *eval.Call. refs are the elements of the argument. Outputs of a
// called module have a prefix.
func (p *printer) dependsOn(out []outline.Part, m *eval.Module, of any, refs []hcl.Traversal, prefix string) []outline.Part {
	names := p.added(of, refs)
	if len(names) == 0 {
		return out
	}
	path := " depends_on"
	if prefix != "" {
		path = prefix + ".depends_on"
	}
	d := newDigest("depends_on")
	for _, name := range p.movedNames(m, names) {
		d.text(name)
	}
	return append(out, outline.Part{Path: path, Print: d.sum(), Fixed: true, At: refs[0].SourceRange()})
}

// added returns the objects on which a block depends because of depends_on only.
func (p *printer) added(of any, refs []hcl.Traversal) []string {
	if len(refs) == 0 {
		return nil
	}
	names, ok := p.after[of]
	if !ok {
		switch x := of.(type) {
		case *config.Resource:
			names = eval.AddedDependsOn(x)
		case *config.Output:
			names = eval.AddedDependsOnOfOutput(x)
		case *eval.Call:
			names = eval.AddedDependsOnOfCall(x.Config(), x.Node)
		}
		p.after[of] = names
	}
	return names
}

// movedNames returns names of objects in a module after moves, sorted.
func (p *printer) movedNames(m *eval.Module, names []string) []string {
	if p.o.Moved == nil {
		return names
	}
	here := p.o.module(m.Addr)
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = name
		parts := strings.SplitN(name, ".", 2)
		switch {
		case len(parts) < 2:
		case parts[0] == "module":
			end := strings.IndexAny(parts[1]+".", ".[")
			parent, last, ok := p.o.module(m.Addr.Child(parts[1][:end], addr.Key{})).Parent()
			if ok && parent == here {
				out[i] = "module." + last.Name + parts[1][end:]
			}
		default:
			out[i] = p.moved(m, addr.Resource{Type: parts[0], Name: parts[1]}).String()
		}
	}
	slices.Sort(out)
	return out
}

// moved returns the address of a resource in a module after moves. It is the old one if it moves to another
// module.
func (p *printer) moved(m *eval.Module, a addr.Resource) addr.Resource {
	r := m.Resource(a)
	if r == nil || p.o.Moved == nil {
		return a
	}
	if in, ok := r.Instances(p.t); ok && len(in.All) > 0 {
		if to := p.o.Moved(in.All[0].Addr()); to.Module == p.o.module(m.Addr) {
			return to.Resource
		}
	}
	return a
}

// trigger returns the text of an element of replace_triggered_by after moves.
func (p *printer) trigger(m *eval.Module, x hcl.Expression) string {
	text := p.text(x)
	if p.o.Moved == nil {
		return text
	}
	for _, ref := range x.Variables() {
		if a, ok := eval.ResourceOf(ref); ok && a.Mode == addr.Managed {
			if to := p.moved(m, a); to != a {
				return strings.Replace(text, a.Type+" . "+a.Name+" ", to.Type+" . "+to.Name+" ", 1)
			}
		}
	}
	return text
}

// delays adds what delays the read of a data source to a fingerprint: its own depends_on, and that of the calls
// of its module, with the configurations of these objects. The result of the read may differ if they do.
func (p *printer) delays(d *digest, r *eval.Resource) {
	p.delayedBy(r, func(m *eval.Module, of any, refs []hcl.Traversal) {
		d.text("depends_on")
		for _, name := range p.movedNames(m, p.added(of, refs)) {
			d.text(name)
		}
	})
	var all []outline.Print // sorted, since the order of the elements of depends_on does not count
	for _, x := range p.waitsFor(r) {
		if in, ok := x.Instances(p.t); ok {
			for _, x := range in.All {
				all = append(all, p.instance(x))
			}
		}
	}
	slices.SortFunc(all, func(a, b outline.Print) int { return slices.Compare(a[:], b[:]) })
	for _, x := range slices.Compact(all) {
		d.print(x)
	}
}

// delayedBy calls f for each depends_on that delays the read of a data source. m is the module of the block.
func (p *printer) delayedBy(r *eval.Resource, f func(m *eval.Module, of any, refs []hcl.Traversal)) {
	if cfg := r.Config(); len(cfg.DependsOn) > 0 {
		f(r.Mod, cfg, cfg.DependsOn)
	}
	for m := r.Mod; m.Parent() != nil; m = m.Parent() {
		if call := m.CalledBy(); len(call.Config().DependsOn) > 0 {
			f(m.Parent(), call, call.Config().DependsOn)
		}
	}
}

// waitsAt returns the positions of the blocks for which the read of a data source waits, and of the module calls
// that let it wait.
func (p *printer) waitsAt(r *eval.Resource) (out []source.Range) {
	p.delayedBy(r, func(_ *eval.Module, of any, _ []hcl.Traversal) {
		if call, ok := of.(*eval.Call); ok {
			out = append(out, call.Config().At)
		}
	})
	for _, x := range p.waitsFor(r) {
		out = append(out, x.Config().At)
	}
	return out
}

// waitsFor returns the managed resources for which the read of a data source waits because of depends_on. If
// depends_on names a module, these are the resources of the module and those that the module's own depends_on names.
func (p *printer) waitsFor(r *eval.Resource) (out []*eval.Resource) {
	seen := map[*eval.Call]bool{}
	var inside func(call *eval.Call)
	each := func(m *eval.Module, _ any, refs []hcl.Traversal) {
		for _, ref := range refs {
			if ref.RootName() == "module" && len(ref) > 1 {
				if a, ok := ref[1].(hcl.TraverseAttr); ok {
					inside(m.Call(a.Name))
				}
			} else if a, ok := eval.ResourceOf(ref); ok && a.Mode == addr.Managed {
				if x := m.Resource(a); x != nil {
					out = append(out, x)
				}
			}
		}
	}
	inside = func(call *eval.Call) {
		if call == nil || call.Node == nil || seen[call] {
			return
		}
		seen[call] = true
		each(call.Module(), nil, call.Config().DependsOn)
		ch, ok := call.Children(p.t)
		if !ok {
			return
		}
		for _, m := range ch.All {
			for _, x := range m.Resources() {
				if x.Config().Addr.Mode == addr.Managed {
					out = append(out, x)
				}
			}
			for _, c := range m.Calls() {
				inside(c)
			}
		}
	}
	p.delayedBy(r, each)
	return out
}
