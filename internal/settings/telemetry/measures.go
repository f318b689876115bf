package telemetry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Measures contains metrics of the spans since the run began. For each span name they are the
// duration in milliseconds (NAME_duration) and the numbers of spans without errors
// (NAME_success_count) and with errors (NAME_errors_count). errors_count is the number of all
// spans with errors. A nil Measures ignores everything. Its methods may be called concurrently.
type Measures struct {
	Now func() time.Time

	mu   sync.Mutex
	all  map[string]*Measure
	list []*Measure
}

// A Measure is one metric.
type Measure struct {
	Name   string
	Began  time.Time
	Points []*Point
	Spread bool // the points are durations, otherwise counts

	by map[string]*Point
}

// A Point is the value for one set of attributes.
type Point struct {
	Attrs         []Attr
	Count         uint64
	Sum, Min, Max int64 // of durations, in milliseconds
	Buckets       [len(Bounds) + 1]uint64
}

// Bounds contains the boundaries of the buckets of durations, in milliseconds.
var Bounds = [...]float64{0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000}

// mostPoints is the maximum number of attribute sets of a metric. Further sets share one point,
// as the OpenTelemetry SDK specification requires (cardinality limits).
const mostPoints = 2000

// overflow is the attribute of that point.
const overflow = "otel.metric.overflow"

// note adds a span that has ended.
func (m *Measures) note(s *Span) {
	if m == nil {
		return
	}
	name := instrument(s.Name)
	about := slices.Clone(s.Attrs[:s.about])
	slices.SortStableFunc(about, func(a, b Attr) int { return cmp.Compare(a.Key, b.Key) })
	ms := s.Ended.Sub(s.Began).Milliseconds()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.measure(name+"_duration", true).point(about).took(ms)
	if len(s.Failures) == 0 {
		m.measure(name+"_success_count", false).point(nil).Count++
		return
	}
	m.measure("errors_count", false).point(nil).Count++
	m.measure(name+"_errors_count", false).point(nil).Count++
}

func (m *Measures) measure(name string, spread bool) *Measure {
	x := m.all[name]
	if x == nil {
		if m.all == nil {
			m.all = map[string]*Measure{}
		}
		x = &Measure{Name: name, Began: m.Now(), Spread: spread, by: map[string]*Point{}}
		m.all[name] = x
		m.list = append(m.list, x)
	}
	return x
}

func (x *Measure) point(attrs []Attr) *Point {
	var key strings.Builder
	for _, a := range attrs {
		fmt.Fprintf(&key, "%s\x00%v\x00", a.Key, a.Value)
	}
	p := x.by[key.String()]
	if p == nil && len(x.Points) >= mostPoints-1 {
		key.Reset()
		key.WriteString(overflow)
		attrs = []Attr{{overflow, true}}
		p = x.by[overflow]
	}
	if p == nil {
		p = &Point{Attrs: attrs}
		x.by[key.String()] = p
		x.Points = append(x.Points, p)
	}
	return p
}

func (p *Point) took(ms int64) {
	if p.Count == 0 {
		p.Min, p.Max = ms, ms
	}
	p.Count++
	p.Sum += ms
	p.Min, p.Max = min(p.Min, ms), max(p.Max, ms)
	i, _ := slices.BinarySearch(Bounds[:], float64(ms))
	p.Buckets[i]++
}

// Each calls f with every metric, in the order of their first use. Nothing is added meanwhile.
func (m *Measures) Each(f func(*Measure)) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range m.list {
		f(x)
	}
}

// longest is the maximum length of a span's name in a metric (OpenTelemetry metrics API,
// instrument name syntax).
const longest = 200 // 255, less the suffix

// instrument replaces characters that a metric's name must not contain.
func instrument(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '-', r == '/':
			return r
		}
		return '_'
	}, name)
	return clean[:min(len(clean), longest)]
}
