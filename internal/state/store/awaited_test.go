package store_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terrace-iac/terrace/internal/state/store"
)

// An awaited request continues for ten seconds after an interrupt; another one does not. No
// request begins after the interrupt.
func TestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, interrupt := context.WithCancel(t.Context())
		plain, end := store.Request(run)
		defer end()
		awaited, endAwaited := store.Request(store.Awaited(run))
		defer endAwaited()
		answered, endAnswered := store.Request(store.Awaited(run))
		interrupt()
		at := time.Now()
		<-plain.Done()
		endAnswered()
		<-awaited.Done()
		if took := time.Since(at); took != 10*time.Second || !errors.Is(context.Cause(awaited), store.ErrUnanswered) {
			t.Errorf("after %v: %v", took, context.Cause(awaited))
		}
		if errors.Is(context.Cause(answered), store.ErrUnanswered) {
			t.Error("a request that was answered is not")
		}
		late, end := store.Request(store.Awaited(run))
		defer end()
		if late.Err() == nil {
			t.Error("a request begins after the interrupt")
		}
	})
}
