package etcdv3

import (
	"context"
	"errors"
	"testing"

	"github.com/terrace-iac/terrace/internal/state/store"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// No request is sent after another process may have taken over the state. This applies to
// each part of a text in several parts.
func TestFence(t *testing.T) {
	over := errors.New("the time is over")
	fenced := store.WithFence(t.Context(), func() error { return over })
	_, err := do(fenced, &etcdBackend{}, 0, func(context.Context, *clientv3.Client) (int, error) {
		t.Error("a request was sent")
		return 0, nil
	})
	if !errors.Is(err, over) {
		t.Errorf("got %v", err)
	}
	if err := (&object{b: &etcdBackend{limit: defaultLimit}, key: "k"}).PutBlob(fenced, "n", make([]byte, 3*defaultLimit)); !errors.Is(err, over) {
		t.Errorf("beside the state: %v", err)
	}
}
