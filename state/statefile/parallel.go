package statefile

import (
	"errors"
	"maps"
	"runtime"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/rawjson"
	"github.com/terrace-iac/terrace/state"
)

// A state in a stream is read in parts of partSize bytes after the first smallSize bytes. Different
// cores read different parts.
const (
	smallSize = 256 << 10
	partSize  = 512 << 10
)

// The end of a resource and the beginning of the next one, as all programs write them: the first
// property is "module" or "mode". A JSON string contains no line break, so that this text is never
// a part of a string.
const resourceEnd, resourceStart = "}", "\n    {\n      \"mod"

// errParts is the error for a document that cannot be read in parts. ParseStream returns no errors, and
// its caller then calls Parse.
var errParts = errors.New("the state cannot be read in parts")

// resources reads the resources of a state.
func (p *parser) resources(s *rawjson.Scanner, all map[addr.AbsResource]*state.Resource) error {
	if !p.stream || runtime.GOMAXPROCS(0) == 1 {
		return s.Array(func() error { return p.resource(s, all) })
	}
	var ps *parts
	err := s.Array(func() error {
		for s.Offset() > smallSize {
			if ps == nil {
				ps = newParts(p.outline)
			}
			if !ps.read(s) {
				break
			}
		}
		return p.resource(s, all)
	})
	if ps != nil && !ps.end(all) && err == nil {
		err = errParts
	}
	return err
}

// parts reads parts of the list of resources. Its methods must not be called concurrently.
type parts struct {
	own     *part      // part that the caller reads, if all others are in use
	free    chan *part // parts that are not in use
	started []*part    // all parts except own
	work    *parallel.Queue
	none    bool // no further part was found
}

// A part is a parser of one part after another.
type part struct {
	p      parser
	buf    []byte
	all    map[addr.AbsResource]*state.Resource
	failed bool
}

func newParts(outline bool) *parts {
	create := func() *part {
		return &part{p: parser{outline: outline}, buf: make([]byte, partSize), all: map[addr.AbsResource]*state.Resource{}}
	}
	n := runtime.GOMAXPROCS(0) - 1
	ps := &parts{own: create(), free: make(chan *part, n), work: parallel.NewQueue(n)}
	for range n {
		x := create()
		ps.started = append(ps.started, x)
		ps.free <- x
	}
	return ps
}

// read reads the next part, or lets another goroutine read it. It returns false if there is none.
func (ps *parts) read(s *rawjson.Scanner) bool {
	if ps.none {
		return false
	}
	x := ps.own
	select {
	case x = <-ps.free:
	default:
	}
	in := s.Ahead(x.buf, resourceEnd, resourceStart)
	if in == nil {
		ps.none = true
		if x != ps.own {
			ps.free <- x
		}
		return false
	}
	if x == ps.own {
		x.read(in)
		return true
	}
	ps.work.Add(func() {
		x.read(in)
		ps.free <- x
	})
	return true
}

// read reads one part.
func (x *part) read(in *rawjson.Scanner) {
	x.p.doc = x.buf
	err := in.Sequence(func() error { return x.p.resource(in, x.all) })
	x.failed = x.failed || err != nil || len(x.p.ds) > 0
}

// end waits for all parts and adds their resources to all. It returns false if a part failed, or
// if a resource is in two parts.
func (ps *parts) end(all map[addr.AbsResource]*state.Resource) bool {
	ps.work.Wait()
	n, ok := len(all), true
	for _, x := range append(ps.started, ps.own) {
		n += len(x.all)
		ok = ok && !x.failed
		maps.Copy(all, x.all)
	}
	return ok && n == len(all)
}
