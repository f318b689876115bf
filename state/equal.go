package state

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// Equal reports whether two snapshots have the same resources, outputs and checks. It ignores
// lineage, serial and version. nil equals an empty state.
func (s *State) Equal(o *State) bool {
	if s == o {
		return true
	}
	if s == nil {
		s = New()
	}
	if o == nil {
		o = New()
	}
	if len(s.Resources) != len(o.Resources) || len(s.Outputs) != len(o.Outputs) || !equalChecks(s.Checks, o.Checks) {
		return false
	}
	for name, a := range s.Outputs {
		b, ok := o.Outputs[name]
		if !ok || !a.Equal(b) {
			return false
		}
	}
	for a, r := range s.Resources {
		p, ok := o.Resources[a]
		if !ok || !r.equal(p) {
			return false
		}
	}
	return true
}

// Equal reports whether two outputs are the same.
func (o *Output) Equal(p *Output) bool {
	return o == p || o.Sensitive == p.Sensitive && o.Deprecated == p.Deprecated && o.Value.RawEquals(p.Value)
}

func (r *Resource) equal(p *Resource) bool {
	if r == p {
		return true
	}
	if r.Provider != p.Provider || len(r.Instances) != len(p.Instances) {
		return false
	}
	for k, i := range r.Instances {
		j, ok := p.Instances[k]
		if !ok || !i.equal(j) {
			return false
		}
	}
	return true
}

func (i *Instance) equal(j *Instance) bool {
	if i == j {
		return true
	}
	if i.ProviderKey != j.ProviderKey || !i.Current.Equal(j.Current) || len(i.Deposed) != len(j.Deposed) {
		return false
	}
	for k, o := range i.Deposed {
		p, ok := j.Deposed[k]
		if !ok || !o.Equal(p) {
			return false
		}
	}
	return true
}

// equalJSON reports whether two documents have the same meaning. It compares the bytes first,
// and the decoded documents only if the bytes differ.
func equalJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if a == nil || b == nil {
		return false
	}
	x, okX := anyJSON(a)
	y, okY := anyJSON(b)
	return okX && okY && reflect.DeepEqual(x, y)
}

func anyJSON(b []byte) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err == nil
}

func comparePaths(a, b cty.Path) int {
	return slices.CompareFunc(a, b, compareStep)
}

func compareStep(a, b cty.PathStep) int {
	switch a := a.(type) {
	case cty.GetAttrStep:
		if b, ok := b.(cty.GetAttrStep); ok {
			return cmp.Compare(a.Name, b.Name)
		}
		return -1
	case cty.IndexStep:
		if b, ok := b.(cty.IndexStep); ok {
			return compareIndex(a.Key, b.Key)
		}
		return 1
	}
	return 0
}

func compareIndex(a, b cty.Value) int {
	na, nb := a.Type() == cty.Number, b.Type() == cty.Number
	switch {
	case na && nb:
		return a.AsBigFloat().Cmp(b.AsBigFloat())
	case na:
		return -1
	case nb:
		return 1
	case a.Type() == cty.String && b.Type() == cty.String:
		return cmp.Compare(a.AsString(), b.AsString())
	}
	return cmp.Compare(a.GoString(), b.GoString()) // an element of a set
}
