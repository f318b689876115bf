package server

import (
	"strings"
	"testing"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
)

// kept keeps the last message that was sent.
type kept struct {
	channel.Channel
	last string
}

func (k *kept) Send(m []byte) error {
	k.last = string(m)
	return nil
}

// The code of jrpc2 for canceled requests is replaced, and nothing else.
func TestAnswers(t *testing.T) {
	k := &kept{}
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32097,"message":"x"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"result":"\"error\":{\"code\":-32097,"}`, `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 2*maxError) + `"}`,
	} {
		if err := (answers{k}).Send([]byte(m)); err != nil {
			t.Fatal(err)
		}
		if want := strings.Replace(m, `:{"code":-32097`, `:{"code":-32800`, 1); k.last != want {
			t.Errorf("sent %s, want %s", k.last, want)
		}
	}
	if jrpc2.Cancelled != -32097 {
		t.Errorf("the code of jrpc2 is %d", jrpc2.Cancelled)
	}
}
