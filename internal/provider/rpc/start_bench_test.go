//go:build unix

package rpc_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/provider/rpc"
)

// BenchmarkStart starts and ends a plugin, with TLS and with a socket in our directory.
// cpu-ms/op is the processor time of both processes.
func BenchmarkStart(b *testing.B) {
	for _, tt := range []struct {
		name      string
		misbehave string
	}{{"TLS", "old"}, {"folder", ""}} {
		b.Run(tt.name, func(b *testing.B) {
			cache := new(rpc.SchemaCache)
			before := processorTime(b)
			for b.Loop() {
				o := options(b, 6, "TEST_MISBEHAVE="+tt.misbehave)
				o.Cache = cache
				p, ds := rpc.Launch(b.Context(), o)
				if ds.HasErrors() {
					b.Fatal(ds.Err())
				}
				if err := p.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}
