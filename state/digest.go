package state

import (
	"crypto/sha256"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// A Digest stands for an object as state holds it, or for arguments.
type Digest [sha256.Size]byte

// DigestOf is that of an object; zero for nil.
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
		fmt.Fprint(h, o.Flat) // in the order of its keys
	}
	return Digest(h.Sum(nil))
}

// DigestArgs is that of arguments, which are wholly known.
func DigestArgs(v cty.Value) Digest {
	v, _ = v.UnmarkDeep()
	text, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return Digest{}
	}
	return sha256.Sum256(text)
}

// With stands for the same together with something else; zero if either is the zero Digest or
// empty.
func (d Digest) With(more []byte) Digest {
	if d == (Digest{}) || len(more) == 0 {
		return Digest{}
	}
	return sha256.Sum256(append(d[:], more...))
}
