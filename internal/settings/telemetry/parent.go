package telemetry

import (
	"encoding/hex"
	"errors"
	"strings"
)

// Variable is the environment variable that contains the ID of the span in which a program runs.
const Variable = "TRACEPARENT"

// A Parent is a span of another program. The zero value means none.
type Parent struct {
	Trace [16]byte
	Span  [8]byte
	Flags byte
}

// Given reports whether p is not zero.
func (p Parent) Given() bool { return p.Trace != [16]byte{} }

// Errors of ParseParent.
var (
	errForm  = errors.New("it must be VERSION-TRACE-SPAN-FLAGS, as in 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	errZeros = errors.New("neither the trace nor the span may be all zeros")
)

// ParseParent parses the header traceparent (W3C Trace Context, 3.2.2). Later versions may have
// additional fields after those of version 00.
func ParseParent(text string) (Parent, error) {
	var p Parent
	f := strings.Split(text, "-")
	if len(f) < 4 || len(f[0]) != 2 || f[0] == "00" && len(f) != 4 || f[0] == "ff" {
		return Parent{}, errForm
	}
	var version, flags [1]byte
	for i, into := range [][]byte{version[:], p.Trace[:], p.Span[:], flags[:]} {
		if len(f[i]) != 2*len(into) || strings.ToLower(f[i]) != f[i] {
			return Parent{}, errForm
		}
		if _, err := hex.Decode(into, []byte(f[i])); err != nil {
			return Parent{}, errForm
		}
	}
	p.Flags = flags[0]
	if p.Trace == [16]byte{} || p.Span == [8]byte{} {
		return Parent{}, errZeros
	}
	return p, nil
}
