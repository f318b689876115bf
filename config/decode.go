package config

import (
	"github.com/terrace-iac/terrace/diag"
)

// decode merges the parts of an object and decodes it. The result is stored in out; it is nil
// if the object is unusable.
func (o *object) decode() {
	switch o.key.kind {
	case "variable":
		o.out, o.ds = decodeVariable(o)
	case "output":
		o.out, o.ds = decodeOutput(o)
	case "module":
		o.out, o.ds = decodeCall(o)
	case "resource", "data", "ephemeral":
		o.out, o.ds = decodeResource(o)
	case "list":
		o.out, o.ds = decodeList(o)
	case "provider":
		o.out, o.ds = decodeProvider(o)
	case "check":
		o.out, o.ds = decodeCheck(o)
	case "moved":
		o.out, o.ds = decodeMoved(o)
	case "removed":
		o.out, o.ds = decodeRemoved(o)
	case "import":
		o.out, o.ds = decodeImport(o)
	}
}

// store adds a decoded object to the module.
func (m *Module) store(out any) {
	switch x := out.(type) {
	case *Variable:
		m.Variables[x.Name] = x
	case *Output:
		m.Outputs[x.Name] = x
	case *Call:
		m.Calls[x.Name] = x
	case *Resource:
		m.Resources[x.Addr] = x
	case *Provider:
		m.Providers[x.Key()] = x
	case *Check:
		m.Checks[x.Name] = x
	case *Moved:
		if x != nil {
			m.Moved = append(m.Moved, x)
		}
	case *Removed:
		if x != nil {
			m.Removed = append(m.Removed, x)
		}
	case *ImportBlock:
		if x != nil {
			m.Imports = append(m.Imports, x)
		}
	}
}

// errs collects the messages of functions that return a result and messages.
type errs struct{ ds diag.List }

func (e *errs) add(ds diag.List) { e.ds = append(e.ds, ds...) }

// take returns the result v of a function and adds the function's messages to e.
func take[T any](e *errs, v T, ds diag.List) T {
	e.ds = append(e.ds, ds...)
	return v
}

// keep is like take, for use with a call: keep[T](e)(f()).
func keep[T any](e *errs) func(T, diag.List) T {
	return func(v T, ds diag.List) T { return take(e, v, ds) }
}
