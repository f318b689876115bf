package statefile

import (
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/rawjson"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// paths reads sensitive_attributes: arrays of steps {"type":…,"value":…}.
func (p *parser) paths(s *rawjson.Scanner) ([]cty.Path, error) {
	if s.Null() {
		return nil, nil
	}
	var out []cty.Path
	err := s.Array(func() error {
		var path cty.Path
		err := s.Array(func() error {
			step, err := p.step(s)
			if step != nil {
				path = append(path, step)
			}
			return err
		})
		out = append(out, path)
		return err
	})
	return out, err
}

// step reads one step. It returns nil after it reported an error.
func (p *parser) step(s *rawjson.Scanner) (cty.PathStep, error) {
	var typ string
	var raw []byte
	s.Peek()
	at := s.Offset()
	err := s.Object(func(key []byte) (err error) {
		switch string(key) {
		case "type":
			typ, err = optString(s)
		case "value":
			raw, err = p.lasting(s.Skip())
		default:
			_, err = s.Skip()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	switch typ {
	case "get_attr":
		name, err := rawjson.NewScanner(raw).String()
		if err != nil {
			p.errorf(diag.CodeStateInvalidFile, at, "Invalid path in state", "A step of a path to a sensitive attribute has no name.")
			return nil, nil
		}
		return cty.GetAttrStep{Name: p.names.string([]byte(name))}, nil
	case "index":
		v, err := state.Decode(raw, cty.DynamicPseudoType)
		if err != nil || v.IsNull() {
			p.errorf(diag.CodeStateInvalidFile, at, "Invalid path in state", "A step of a path to a sensitive attribute has no valid index.")
			return nil, nil
		}
		return cty.IndexStep{Key: v}, nil
	}
	p.errorf(diag.CodeStateInvalidFile, at, "Invalid path in state", "A step of a path to a sensitive attribute has the kind %q, but there are \"get_attr\" and \"index\" only.", clip([]byte(typ)))
	return nil, nil
}

// appendPaths appends paths in the form that the method paths reads.
func appendPaths(b []byte, paths []cty.Path) ([]byte, error) {
	b = append(b, '[')
	for i, path := range paths {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		for j, step := range path {
			if j > 0 {
				b = append(b, ',')
			}
			switch step := step.(type) {
			case cty.GetAttrStep:
				b = append(b, `{"type":"get_attr","value":`...)
				b = rawjson.AppendString(b, step.Name)
			case cty.IndexStep:
				b = append(b, `{"type":"index","value":`...)
				raw, err := state.Encode(step.Key, cty.DynamicPseudoType)
				if err != nil {
					return b, err
				}
				b = append(b, raw...)
			}
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	return append(b, ']'), nil
}
