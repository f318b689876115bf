package bucket

import (
	"context"
	"strings"

	"github.com/terrace-iac/terrace/internal/state/backend"
)

// An Object is the object with the state of one workspace. It implements backend.Blobs.
type Object struct {
	*Client
	File string // its name
}

// blob returns the name of an object next to the state.
func (o Object) blob(name string) string { return o.File + ".beside/" + name }

// PutBlob implements backend.Blobs.
func (o Object) PutBlob(ctx context.Context, name string, data []byte) error {
	return o.Write(ctx, o.blob(name), backend.Bytes(data), "Failed to write beside the state")
}

// GetBlob implements backend.Blobs.
func (o Object) GetBlob(ctx context.Context, name string) ([]byte, error) {
	data, err := o.Read(ctx, o.blob(name))
	if err == nil && data == nil {
		err = backend.ErrNoBlob
	}
	return data, err
}

// ListBlobs implements backend.Blobs.
func (o Object) ListBlobs(ctx context.Context, prefix string) ([]string, error) {
	keys, err := o.list(ctx, o.blob(prefix))
	for i, k := range keys {
		keys[i] = strings.TrimPrefix(k, o.blob(""))
	}
	return keys, err
}

// DeleteBlob implements backend.Blobs.
func (o Object) DeleteBlob(ctx context.Context, name string) error {
	return o.Remove(ctx, o.blob(name))
}
