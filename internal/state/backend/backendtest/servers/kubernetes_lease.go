package servers

import (
	"bytes"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// leaseOfProtobuf decodes a Lease in the protobuf form that client libraries send: the four
// bytes "k8s\0", then an envelope (runtime.Unknown) whose second field is the object. It
// decodes only the fields that locks use.
func leaseOfProtobuf(b []byte) (map[string]any, error) {
	b, ok := bytes.CutPrefix(b, []byte("k8s\x00"))
	if !ok {
		return nil, errors.New("no protobuf of Kubernetes")
	}
	envelope, err := fields(b)
	if err != nil || len(envelope[2]) == 0 {
		return nil, errors.New("no object in the protobuf")
	}
	lease, err := fields(envelope[2][0])
	if err != nil {
		return nil, err
	}
	out := map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{}}
	for _, part := range lease[1] {
		m, err := fields(part)
		if err != nil {
			return nil, err
		}
		meta := map[string]any{}
		for number, name := range map[protowire.Number]string{1: "name", 3: "namespace", 5: "uid", 6: "resourceVersion"} {
			if len(m[number]) > 0 && len(m[number][0]) > 0 {
				meta[name] = string(m[number][0])
			}
		}
		for number, name := range map[protowire.Number]string{11: "labels", 12: "annotations"} {
			entries := map[string]any{}
			for _, e := range m[number] {
				kv, err := fields(e)
				if err != nil || len(kv[1]) == 0 || len(kv[2]) == 0 {
					return nil, errors.New("an entry of a map has no key or no value")
				}
				entries[string(kv[1][0])] = string(kv[2][0])
			}
			if len(entries) > 0 {
				meta[name] = entries
			}
		}
		out["metadata"] = meta
	}
	spec := map[string]any{}
	for _, part := range lease[2] {
		s, err := fields(part)
		if err != nil {
			return nil, err
		}
		if len(s[1]) > 0 {
			spec["holderIdentity"] = string(s[1][0])
		}
	}
	out["spec"] = spec
	return out, nil
}

// fields returns the length-delimited fields of a message, by number.
func fields(b []byte) (map[protowire.Number][][]byte, error) {
	out := map[protowire.Number][][]byte{}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		b = b[n:]
		if kind == protowire.BytesType {
			v, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return nil, protowire.ParseError(n)
			}
			out[number] = append(out[number], v)
			b = b[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return nil, protowire.ParseError(n)
		}
		b = b[n:]
	}
	return out, nil
}
