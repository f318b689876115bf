package unit

import (
	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// merged is a file's effective configuration: its own arguments and blocks joined
// with those of the files that it merges, by name. The joins are deferred until
// somebody asks for a value.
func (c *evaluator) merged(e *evaluation) *group {
	r := c.cellOf(e, syntax.MergedPart)
	if r.g == nil {
		return newGroup(e, nil)
	}
	return r.g
}

func (c *evaluator) buildMerged(e *evaluation) *group {
	own := ownFields(e)
	h := c.imports(e)
	if c.stuck() {
		return own
	}
	g := c.mergeImports(e, h, own)
	for i := len(h.includes) - 1; i >= 0; i-- {
		if in := h.includes[i]; in.mode != noMerge {
			g = mergeIncluded(c.merged(in.e), g, in.mode)
		}
	}
	if h.auto != nil {
		g = mergeIncluded(g, ownFields(h.auto), shallow)
	}
	return g
}

// neverMerged are the names that stay with their file.
func neverMerged(name string) bool {
	switch name {
	case "locals", "import", "include", "catalog":
		return true
	}
	return false
}

// ownFields is what a file gives itself.
func ownFields(e *evaluation) *group {
	g := newGroup(e, nil)
	if e.file().Root == nil {
		return g
	}
	for _, a := range e.file().Root.Attrs {
		var n node = &exprNode{e: e, x: a.Expr, at: &a.At}
		if e.file().Root.Spec.Arg(a.Name) == nil {
			n = &assigned{n, e, &a.At}
		}
		g.put(a.Name, n)
	}
	for _, b := range e.file().Root.Blocks {
		name := b.Spec.Name
		if g.members[name] != nil || neverMerged(name) && name != "catalog" {
			continue
		}
		g.put(name, (&blockNode{e, e.file().Root}).child(nil, name))
	}
	return g
}

// mergeImports joins the merging imports in the order written, and the file
// itself last (rules 9 and 10 of the import specification).
func (c *evaluator) mergeImports(e *evaluation, h *fileImports, own *group) *group {
	type layer struct {
		fields *group
		mode   mode
	}
	var layers []layer
	for _, i := range h.imports {
		if i.mode == noMerge {
			continue
		}
		fields := c.merged(i.e)
		if c.stuck() {
			return own
		}
		c.checkEnvironmentImport(e, i, fields)
		layers = append(layers, layer{rebase(fields, i.e.file().Dir), i.mode})
	}
	if len(layers) == 0 {
		return own
	}
	g := newGroup(e, nil)
	for _, l := range layers {
		for _, name := range l.fields.names {
			if !neverMerged(name) {
				g.put(name, joinOf(name, g.members[name], l.fields.members[name], importJoin(name, l.mode)))
			}
		}
	}
	for _, name := range own.names {
		var givers []giver
		for _, l := range layers {
			if n := l.fields.members[name]; n != nil {
				givers = append(givers, giver{n, l.mode})
			}
		}
		if len(givers) == 0 {
			g.put(name, own.members[name])
			continue
		}
		g.put(name, joinOf(name, g.members[name], own.members[name], lastJoin(name, givers)))
	}
	return g
}

type giver struct {
	n    node
	mode mode
}

// lastJoin is how a file joins its imports: key by key in the mode of the import
// that last set the key.
func lastJoin(name string, givers []giver) join {
	per := perKey(name)
	if per == nil {
		return importJoin(name, givers[len(givers)-1].mode)
	}
	return mapsJoin(func(c *evaluator, key string, lower, upper node) node {
		m := givers[0].mode
		for _, g := range givers {
			if g.n.child(c, key) != nil {
				m = g.mode
			}
		}
		return per(m)(c, key, lower, upper)
	})
}

// perKey is the join for each member of the names that are merged by key, by
// mode; nil for the others.
func perKey(name string) func(mode) join {
	switch name {
	case "inputs":
		return func(m mode) join {
			if m == deep {
				return deepJoin
			}
			return replaceJoin
		}
	case "dependency", "generate", "feature", "module":
		return func(m mode) join {
			if m == deep {
				return deepBlock
			}
			return replaceJoin
		}
	case "terraform":
		return func(m mode) join {
			var member join = replaceJoin
			if m == deep {
				member = mapsJoin(by(func(arg string) join {
					if arg == "env_vars" {
						return mapsJoin(replaceJoin)
					}
					return replaceJoin
				}))
			}
			return by(func(arg string) join {
				switch arg {
				case "extra_arguments", "before_hook", "after_hook", "error_hook":
					return mapsJoin(member)
				}
				return replaceJoin
			})
		}
	}
	return nil
}

// deepBlock merges two blocks argument by argument, and what holds somebody
// else's data recursively.
var deepBlock = mapsJoin(by(func(arg string) join {
	switch arg {
	case "config", "mock_outputs":
		return deepJoin
	case "retry", "ignore":
		return mapsJoin(mapsJoin(replaceJoin))
	}
	return replaceJoin
}))

// importJoin is how two files are joined for a name at the top.
func importJoin(name string, m mode) join {
	if per := perKey(name); per != nil {
		return mapsJoin(per(m))
	}
	switch name {
	case "dependencies":
		return mapsJoin(listJoin(false, true))
	case "remote_state", "exclude", "errors", "engine":
		if m == deep {
			return deepBlock
		}
	}
	return replaceJoin
}

// mergeIncluded joins an included file below another configuration, by the
// rules of include blocks (section 2.3 of the unit language's reference).
func mergeIncluded(lower, upper *group, m mode) *group {
	g := newGroup(upper.e, nil)
	for _, name := range lower.names {
		if !neverMerged(name) {
			g.put(name, lower.members[name])
		}
	}
	for _, name := range upper.names {
		how := includeJoin(name, m)
		if name == "dependencies" && m == deep {
			how = mapsJoin(pathsLeft(lower.members["dependency"], upper.members["dependency"]))
		}
		g.put(name, joinOf(name, g.members[name], upper.members[name], how))
	}
	return g
}

// pathsLeft joins the paths of dependencies blocks; those of the lower one that
// belong to a dependency which the upper one redefines are left out.
func pathsLeft(lower, upper node) join {
	if lower == nil || upper == nil {
		return listJoin(false, true)
	}
	return func(c *evaluator, key string, low, up node) node {
		gone := map[string]bool{}
		labels, _ := upper.keys(c)
		for _, l := range labels {
			if d := lower.child(c, l); d != nil {
				gone[c.textOf(d, "config_path")] = true
			}
		}
		rest := &converted{low, func(_ *evaluator, v cty.Value) cty.Value {
			bare, marks := v.Unmark()
			if !syntax.Known(bare) || !bare.CanIterateElements() {
				return v
			}
			var out []cty.Value
			for _, p := range bare.AsValueSlice() {
				if s, _ := p.Unmark(); !syntax.IsString(s) || !gone[s.AsString()] {
					out = append(out, p)
				}
			}
			return cty.TupleVal(out).WithMarks(marks)
		}}
		return listJoin(false, true)(c, key, rest, up)
	}
}

func includeJoin(name string, m mode) join {
	if m == deep {
		return includeDeepJoin(name)
	}
	switch name {
	case "inputs", "dependency", "feature", "generate":
		return mapsJoin(replaceJoin)
	case "terraform":
		return mapsJoin(by(func(arg string) join {
			switch arg {
			case "extra_arguments", "before_hook", "after_hook", "error_hook":
				return mapsJoin(replaceJoin)
			}
			return setJoin
		}))
	case "dependencies":
		return mapsJoin(listJoin(false, true))
	case "remote_state", "exclude", "errors", "engine":
		return replaceJoin
	}
	return setJoin
}

func includeDeepJoin(name string) join {
	switch name {
	case "inputs":
		return mapsJoin(deepOrUpper)
	case "generate":
		return mapsJoin(replaceJoin)
	case "terraform":
		return mapsJoin(by(func(arg string) join {
			switch arg {
			case "extra_arguments", "before_hook", "after_hook", "error_hook":
				return mapsJoin(replaceJoin)
			case "include_in_copy", "exclude_from_copy":
				return listJoin(true, false)
			}
			return setJoin
		}))
	case "dependency":
		return mapsJoin(mapsJoin(by(func(arg string) join {
			switch arg {
			case "mock_outputs":
				return deepOrUpper
			case "mock_outputs_allowed_terraform_commands":
				return listJoin(false, false)
			}
			return setJoin
		})))
	case "dependencies":
		return mapsJoin(listJoin(false, true))
	case "feature":
		return mapsJoin(mapsJoin(mappingsOrUpper))
	case "engine":
		return mapsJoin(setJoin)
	case "exclude":
		return excludeDeep
	case "errors":
		return mapsJoin(mapsJoin(mapsJoin(by(errorsArg))))
	case "remote_state":
		return replaceJoin
	}
	return setJoin
}

// deepOrUpper merges deeply as includes do: where one side is a mapping and the other
// is something else, the upper is taken, which imports refuse.
func deepOrUpper(c *evaluator, key string, lower, upper node) node {
	lo, uo := lower.open(c), upper.open(c)
	if c.stuck() {
		return valueNode{v: cty.DynamicVal}
	}
	_, lok := lo.keys(c)
	_, uok := uo.keys(c)
	switch {
	case lok && uok:
		return &overlay{lo, uo, deepOrUpper}
	case lok && !isNull(c, uo) && !unknownNode(c, uo), uok && !isNull(c, lo) && !unknownNode(c, lo):
		return upper
	}
	return deepJoin(c, key, lower, upper)
}

// mappingsOrUpper merges two mappings and takes the upper of anything else.
func mappingsOrUpper(c *evaluator, key string, lower, upper node) node {
	_, lok := lower.keys(c)
	_, uok := upper.keys(c)
	if lok && uok {
		return deepJoin(c, key, lower, upper)
	}
	return upper
}

// excludeDeep takes everything from the upper block, but actions that are empty.
func excludeDeep(c *evaluator, key string, lower, upper node) node {
	lo, uo := lower.open(c), upper.open(c)
	g := newGroup(uo.where())
	names, ok := uo.keys(c)
	if !ok {
		return upper
	}
	for _, k := range names {
		g.put(k, uo.child(c, k))
	}
	if a := lo.child(c, "actions"); a != nil {
		g.put("actions", joinOf("actions", a, g.members["actions"], setJoin))
	}
	return g
}

// errorsArg joins the arguments of retry and ignore blocks.
func errorsArg(arg string) join {
	switch arg {
	case "retryable_errors", "ignorable_errors":
		return listJoin(true, true)
	case "signals":
		return mapsJoin(replaceJoin)
	}
	return func(c *evaluator, key string, lower, upper node) node {
		v, _ := upper.value(c).Unmark()
		if !c.stuck() && syntax.Known(v) && v.Type() == cty.Number && v.AsBigFloat().Sign() == 0 {
			return lower
		}
		return setJoin(c, key, lower, upper)
	}
}
