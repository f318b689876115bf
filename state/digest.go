package state

import (
	"crypto/sha256"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// A Digest identifies the content of a stored object, or of arguments.
type Digest [sha256.Size]byte

// DigestOf returns the digest of an object; zero for nil.
func DigestOf(o *Object) Digest {
	if o == nil {
		return Digest{}
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d %d %d %d %d %t\n", o.SchemaVersion, o.IdentityVersion, len(o.JSON), len(o.Private), len(o.Identity), o.Tainted)
	for _, part := range [][]byte{o.JSON, o.Private, o.Identity} {
		h.Write(part)
	}
	if o.JSON == nil {
		fmt.Fprint(h, o.Flat) // sorted by key
	}
	return Digest(h.Sum(nil))
}

// DigestArgs returns the digest of arguments, which must be wholly known.
func DigestArgs(v cty.Value) Digest {
	v, _ = v.UnmarkDeep()
	text, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return Digest{}
	}
	return sha256.Sum256(text)
}

// With returns a digest of d combined with more. It is zero if d is zero or more is empty.
func (d Digest) With(more []byte) Digest {
	if d == (Digest{}) || len(more) == 0 {
		return Digest{}
	}
	return sha256.Sum256(append(d[:], more...))
}
