package server

import (
	"bytes"

	"github.com/creachadair/jrpc2/channel"
)

// maxError is the length, in bytes, below which a message may be an error of jrpc2.
const maxError = 1 << 10

// answers sends messages to the client. A request that is canceled before its handler runs is answered
// by jrpc2, with an error code of its own. The client gets that of the Language Server Protocol.
type answers struct{ channel.Channel }

// Send implements channel.Channel.
func (a answers) Send(m []byte) error {
	if len(m) < maxError { // within a string of JSON, the quotes have a backslash
		m = bytes.Replace(m, []byte(`"error":{"code":-32097,`), []byte(`"error":{"code":-32800,`), 1)
	}
	return a.Channel.Send(m)
}
