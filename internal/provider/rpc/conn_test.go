package rpc

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// stuck is a connection whose calls return when it is released.
type stuck struct {
	grpc.ClientConnInterface
	answer chan struct{}
}

func (s stuck) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	<-s.answer
	return nil
}

// A slow call is reported by its name, except for calls whose progress is reported
// otherwise.
func TestSlowCalls(t *testing.T) {
	reported := make(chan string, 2)
	s := stuck{answer: make(chan struct{})}
	c := conn{ClientConnInterface: s, slow: func(call string) { reported <- call }, after: time.Millisecond}
	done := make(chan error, 2)
	call := func(name string) { done <- c.Invoke(t.Context(), "/tfplugin6.Provider/"+name, nil, nil) }
	go call("PlanResourceChange")
	if got := <-reported; got != "PlanResourceChange" {
		t.Errorf("told of %q", got)
	}
	go call("ApplyResourceChange")
	select {
	case got := <-reported:
		t.Errorf("told of %q", got)
	case <-time.After(50 * time.Millisecond):
	}
	close(s.answer)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
