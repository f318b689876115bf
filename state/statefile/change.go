package statefile

import (
	"errors"
	"fmt"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/rawjson"
	"github.com/terrace-iac/terrace/state"
)

// AppendChange appends a change of one object as a compact JSON object. Its form is that of a
// resource in a state file with "instance" instead of "instances". A removal has "remove"
// instead, which contains only index_key and deposed.
func AppendChange(dst []byte, c state.Change) ([]byte, error) {
	e := &encoder{b: dst}
	a := c.Object.Instance
	e.header(a.Abs())
	if c.New == nil {
		e.b = append(e.b, `,"remove":{`...)
		e.b = appendKey(e.b, a.Key)
		e.b = append(rawjson.AppendString(append(e.b, `"deposed":`...), string(c.Object.Deposed)), `}}`...)
		return e.b, nil
	}
	e.b = append(rawjson.AppendString(append(e.b, `,"provider":`...), c.Provider.String()), `,"instance":`...)
	if err := e.instance(a.Key, c.Object.Deposed, nil, c.New); err != nil {
		return dst, fmt.Errorf("%s: %w", c.Object, err)
	}
	return append(e.b, '}'), nil
}

// ParseChange reads a change that AppendChange wrote. It does not retain b.
func ParseChange(b []byte) (state.Change, error) {
	p := &parser{doc: b}
	var h header
	var i instance
	s := rawjson.NewScanner(b)
	err := s.Object(func(key []byte) error {
		switch string(key) {
		case "instance":
			return p.instance(s, &i)
		case "remove":
			return s.Object(func(key []byte) error { return p.removed(s, key, &i) })
		}
		return p.resourceField(s, key, &h, nil)
	})
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return state.Change{}, err
	}
	a, ok := p.address(0, &h)
	if !ok || p.ds.HasErrors() {
		return state.Change{}, p.ds.Err()
	}
	c := state.Change{Object: addr.Object{Instance: a.Instance(i.key), Deposed: i.deposed}, New: i.obj}
	if c.New == nil {
		return c, nil
	}
	if h.provider == nil {
		return state.Change{}, errors.New("the object has no provider")
	}
	c.Provider, err = p.names.provider(h.provider)
	return c, err
}

func (p *parser) removed(s *rawjson.Scanner, key []byte, i *instance) (err error) {
	switch string(key) {
	case "index_key":
		i.key, err = p.key(s)
	case "deposed":
		i.deposed, err = p.deposed(s)
	default:
		_, err = s.Skip()
	}
	return err
}
