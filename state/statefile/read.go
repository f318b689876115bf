package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/rawjson"
	"github.com/terrace-iac/terrace/state"
)

// errVersion is the error for a document that does not begin with version 4.
var errVersion = errors.New("the version is not 4")

// v4 reads a document of version 4. If first is set, the version must be the first property,
// where every program writes it.
func (p *parser) v4(s *rawjson.Scanner, first bool) (*state.State, error) {
	out := state.New()
	err := s.Object(func(key []byte) error {
		if !first {
			return p.top(s, key, out)
		}
		first = false
		if string(key) != "version" {
			return errVersion
		}
		if version, err := s.Number(); err != nil || string(version) != "4" {
			return errVersion
		}
		return nil
	})
	if err == nil {
		err = s.End()
	}
	return out, err
}

func (p *parser) top(s *rawjson.Scanner, key []byte, out *state.State) (err error) {
	switch string(key) {
	case "terraform_version":
		out.TerraformVersion, err = optString(s)
	case "serial":
		out.Serial, err = p.serial(s)
	case "lineage":
		out.Lineage, err = optString(s)
	case "outputs":
		if s.Null() {
			return nil
		}
		return s.Object(func(key []byte) error { return p.output(s, string(key), out) })
	case "resources":
		if s.Null() {
			return nil
		}
		if out.Resources == nil {
			out.Resources = make(map[addr.AbsResource]*state.Resource)
		}
		return p.resources(s, out.Resources)
	case "check_results":
		if s.Null() {
			return nil
		}
		err = s.Array(func() error { return p.check(s, out) })
		state.SortChecks(out.Checks)
	default:
		if low := bytes.ToLower(key); !bytes.Equal(low, key) {
			return p.top(s, low, out)
		}
		_, err = s.Skip()
	}
	return err
}

func (p *parser) serial(s *rawjson.Scanner) (uint64, error) {
	if s.Null() {
		return 0, nil
	}
	s.Peek()
	at := s.Offset()
	text, err := s.Number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		p.errorf(diag.CodeStateInvalidFile, at, "Invalid state file", "The serial of the state is %s, but it must be a whole number from zero on.", clip(text))
	}
	return n, nil
}

func (p *parser) output(s *rawjson.Scanner, name string, out *state.State) error {
	o := &state.Output{}
	var rawType, rawValue []byte
	s.Peek()
	at := s.Offset()
	var field func(key []byte) error
	field = func(key []byte) (err error) {
		switch string(key) {
		case "value":
			rawValue, err = p.lasting(s.Skip())
		case "type":
			rawType, err = p.lasting(s.Skip())
		case "sensitive":
			o.Sensitive, err = optBool(s)
		case "deprecated":
			o.Deprecated, err = optString(s)
		default:
			if low := bytes.ToLower(key); !bytes.Equal(low, key) {
				return field(low)
			}
			_, err = s.Skip()
		}
		return err
	}
	if err := s.Object(field); err != nil {
		return err
	}
	if rawType == nil || rawValue == nil {
		p.errorf(diag.CodeStateInvalidFile, at, "Invalid output in state", "The output %q has no value or no type.", name)
		return nil
	}
	ty, err := state.DecodeType(rawType)
	if err != nil {
		p.errorf(diag.CodeStateInvalidFile, at, "Invalid output in state", "The type of the output %q is not valid: %s.", name, reason(err))
		return nil
	}
	if o.Value, err = state.Decode(rawValue, ty); err != nil {
		// The error is omitted because it may quote the value, which may be a secret.
		p.errorf(diag.CodeStateInvalidFile, at, "Invalid output in state", "The value of the output %q does not have the type that is stored with it.", name)
		return nil
	}
	if out.Outputs == nil {
		out.Outputs = make(map[string]*state.Output)
	}
	out.Outputs[name] = o
	return nil
}

func (p *parser) check(s *rawjson.Scanner, out *state.State) error {
	var c state.CheckResult
	var field func(key []byte) error
	field = func(key []byte) (err error) {
		var text string
		switch string(key) {
		case "object_kind":
			text, err = optString(s)
			c.Kind = state.CheckKind(text)
		case "config_addr":
			c.Addr, err = optString(s)
		case "status":
			text, err = optString(s)
			c.Status = state.CheckStatus(text)
		case "objects":
			if s.Null() {
				return nil
			}
			err = s.Array(func() error { return p.checkObject(s, &c) })
		default:
			if low := bytes.ToLower(key); !bytes.Equal(low, key) {
				return field(low)
			}
			_, err = s.Skip()
		}
		return err
	}
	if err := s.Object(field); err != nil {
		return err
	}
	c.Status = status(string(c.Status))
	switch c.Kind {
	case state.CheckResource, state.CheckOutput, state.CheckBlock, state.CheckVariable:
		out.Checks = append(out.Checks, c)
	}
	return nil // skips results of unknown kinds, as OpenTofu does
}

func (p *parser) checkObject(s *rawjson.Scanner, c *state.CheckResult) error {
	var o state.CheckObject
	err := s.Object(func(key []byte) (err error) {
		var text string
		switch string(key) {
		case "object_addr":
			o.Addr, err = optString(s)
		case "status":
			text, err = optString(s)
			o.Status = state.CheckStatus(text)
		case "failure_messages":
			if s.Null() {
				return nil
			}
			err = s.Array(func() error {
				m, err := optString(s)
				o.Failures = append(o.Failures, m)
				return err
			})
		default:
			_, err = s.Skip()
		}
		return err
	})
	o.Status = status(string(o.Status))
	c.Objects = append(c.Objects, o)
	return err
}

// status parses a check status. A missing or unrecognized word becomes "unknown".
func status(text string) state.CheckStatus {
	switch s := state.CheckStatus(text); s {
	case state.CheckPass, state.CheckFail, state.CheckError:
		return s
	}
	return state.CheckUnknown
}

// A header is a resource without its instances.
type header struct {
	module   []byte
	mode     []byte
	typ      []byte
	name     []byte
	provider []byte // nil if the instances name it
}

func (p *parser) resource(s *rawjson.Scanner, all map[addr.AbsResource]*state.Resource) error {
	var h header
	var is []instance
	s.Peek()
	at := s.Offset()
	err := s.Object(func(key []byte) error { return p.resourceField(s, key, &h, &is) })
	if err != nil {
		return err
	}
	a, ok := p.address(at, &h)
	if !ok {
		return nil
	}
	r := all[a]
	if r == nil {
		r = &state.Resource{Addr: a, Instances: make(map[addr.Key]*state.Instance, len(is))}
	}
	if h.provider != nil {
		if r.Provider, err = p.names.provider(h.provider); err != nil {
			p.errorf(diag.CodeStateInvalidFile, at, "Invalid provider in state", "The resource %s has an invalid provider address: %s.", a, reason(err))
			return nil
		}
		r.Provider.Key = addr.Key{}
	}
	for i := range is {
		p.attach(r, &is[i])
	}
	if r.Provider.Provider.IsZero() && len(r.Instances) > 0 {
		p.errorf(diag.CodeStateInvalidFile, at, "Invalid provider in state", "The resource %s names no provider, and neither do its instances.", a)
		return nil
	}
	if len(r.Instances) > 0 || !r.Provider.Provider.IsZero() {
		all[a] = r
	}
	return nil
}

func (p *parser) resourceField(s *rawjson.Scanner, key []byte, h *header, is *[]instance) (err error) {
	switch string(key) {
	case "module":
		h.module, err = p.optBytes(s)
	case "mode":
		h.mode, err = p.optBytes(s)
	case "type":
		h.typ, err = p.optBytes(s)
	case "name":
		h.name, err = p.optBytes(s)
	case "provider":
		h.provider, err = p.optBytes(s)
	case "instances":
		if is == nil {
			_, err = s.Skip()
			return err
		}
		if s.Null() {
			return nil
		}
		err = s.Array(func() error {
			*is = append(*is, instance{})
			return p.instance(s, &(*is)[len(*is)-1])
		})
	default:
		if low := bytes.ToLower(key); !bytes.Equal(low, key) {
			return p.resourceField(s, low, h, is)
		}
		_, err = s.Skip()
	}
	return err
}

func (p *parser) address(at int, h *header) (addr.AbsResource, bool) {
	var a addr.AbsResource
	var err error
	if a.Module, err = p.names.module(h.module); err != nil {
		p.errorf(diag.CodeStateInvalidFile, at, "Invalid address in state", "The module address %q is not valid: %s.", clip(h.module), reason(err))
		return a, false
	}
	switch string(h.mode) {
	case "managed":
		a.Resource.Mode = addr.Managed
	case "data":
		a.Resource.Mode = addr.Data
	default:
		p.errorf(diag.CodeStateInvalidFile, at, "Invalid resource in state", "The mode of a resource is %q, but only \"managed\" and \"data\" can be in a state.", clip(h.mode))
		return a, false
	}
	if len(h.typ) == 0 || len(h.name) == 0 {
		p.errorf(diag.CodeStateInvalidFile, at, "Invalid resource in state", "A resource has no type or no name.")
		return a, false
	}
	a.Resource.Type = p.names.string(h.typ)
	a.Resource.Name = string(h.name)
	return a, true
}

// attach adds the object of an instance to a resource.
func (p *parser) attach(r *state.Resource, i *instance) {
	where := r.Addr.Instance(i.key)
	if i.provider != nil {
		config, err := p.names.provider(i.provider)
		key := config.Key
		config.Key = addr.Key{}
		switch {
		case err != nil:
			p.errorf(diag.CodeStateInvalidFile, i.at, "Invalid provider in state", "The instance %s has an invalid provider address: %s.", where, reason(err))
			return
		case r.Provider.Provider.IsZero():
			r.Provider = config
		case r.Provider != config:
			p.errorf(diag.CodeStateInvalidFile, i.at, "Invalid provider in state", "The instance %s has the provider %s, but its resource or another instance of it has %s. Instances of one resource may differ in the key of the provider configuration only.", where, config, r.Provider)
			return
		}
		i.providerKey = key
	}
	have := r.Instances[i.key]
	if have == nil {
		have = &state.Instance{ProviderKey: i.providerKey}
		r.Instances[i.key] = have
	}
	if i.deposed == "" {
		if have.Current != nil {
			p.errorf(diag.CodeStateInvalidFile, i.at, "Duplicate resource instance in state", "The instance %s is in the state more than once.", where)
			return
		}
		have.Current, have.ProviderKey = i.obj, i.providerKey
		return
	}
	if have.Deposed[i.deposed] != nil {
		p.errorf(diag.CodeStateInvalidFile, i.at, "Duplicate resource instance in state", "The deposed object %s of %s is in the state more than once.", i.deposed, where)
		return
	}
	if have.Deposed == nil {
		have.Deposed = make(map[addr.DeposedKey]*state.Object, 1)
	}
	have.Deposed[i.deposed] = i.obj
}

func optString(s *rawjson.Scanner) (string, error) {
	b, err := optBytes(s)
	return string(b), err
}

// optBytes reads a string; null becomes nil.
func optBytes(s *rawjson.Scanner) ([]byte, error) {
	if s.Null() {
		return nil, nil
	}
	return s.Bytes()
}

// optBytes reads a string that remains valid while the scanner advances.
func (p *parser) optBytes(s *rawjson.Scanner) ([]byte, error) { return p.lasting(optBytes(s)) }

// lasting copies b if the scanner would overwrite it.
func (p *parser) lasting(b []byte, err error) ([]byte, error) {
	if p.stream && b != nil {
		b = append(make([]byte, 0, len(b)), b...)
	}
	return b, err
}

func optBool(s *rawjson.Scanner) (bool, error) {
	if s.Null() {
		return false, nil
	}
	return s.Bool()
}

func (p *parser) optInt(s *rawjson.Scanner, what string) (int64, error) {
	if s.Null() {
		return 0, nil
	}
	s.Peek()
	at := s.Offset()
	text, err := s.Number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 0 {
		p.errorf(diag.CodeStateInvalidFile, at, "Invalid state file", "The %s is %s, but it must be a whole number from zero on.", what, clip(text))
		return 0, nil
	}
	return n, nil
}

// clip shortens text for a message.
func clip(b []byte) string {
	if len(b) > 100 {
		return fmt.Sprintf("%s…", bytes.ToValidUTF8(b[:100], nil))
	}
	return string(b)
}
