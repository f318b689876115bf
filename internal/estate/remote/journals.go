package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
)

// Journals returns the storage for the journal of a state in the blob store, where other workers
// find it. It is for stores that contain only the state. Each segment is sealed.
func (s *Session) Journals(state string) statemgr.Segments {
	return journals{s.Blobs, "run-journals/" + s.Blobs.Sealer.Name([]byte(state)) + "/"}
}

type journals struct {
	b      *Blobs
	prefix string
}

func (j journals) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the journal of the state in %s: %w", j.b.Place, err)
}

// PutBlob implements statemgr.Segments.
func (j journals) PutBlob(ctx context.Context, name string, data []byte) error {
	sealed, err := j.b.Sealer.Seal(data, j.prefix+name)
	if err != nil {
		return err
	}
	return j.failed(j.b.Objects.PutBlob(ctx, j.prefix+name, sealed))
}

// GetBlob implements statemgr.Segments.
func (j journals) GetBlob(ctx context.Context, name string) ([]byte, error) {
	sealed, err := j.b.Objects.GetBlob(ctx, j.prefix+name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, backend.ErrNoBlob
	}
	if err != nil {
		return nil, j.failed(err)
	}
	text, err := j.b.Sealer.Open(sealed, j.prefix+name)
	return text, j.failed(err)
}

// ListBlobs implements statemgr.Segments.
func (j journals) ListBlobs(ctx context.Context, prefix string) ([]string, error) {
	names, err := j.b.Objects.ListBlobs(ctx, j.prefix+prefix)
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, j.prefix)
	}
	return names, j.failed(err)
}

// DeleteBlob implements statemgr.Segments.
func (j journals) DeleteBlob(ctx context.Context, name string) error {
	return j.failed(j.b.Objects.DeleteBlob(ctx, j.prefix+name))
}
