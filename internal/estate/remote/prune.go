package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Prune deletes texts that were written before a day, and files that no run since then uses. It
// returns the number of deleted objects. Journals are kept, since they belong to states.
//
// A run that starts at the same moment may find files deleted that no run has used since that
// day. Its workers report an error, and the run can be started again.
func (b *Blobs) Prune(ctx context.Context, before time.Time) (removed int, err error) {
	first := before.UTC().Format(dayForm)
	needed := map[string]bool{}
	for _, kind := range []string{texts, trees} {
		names, err := b.Objects.ListBlobs(ctx, kind)
		if err != nil {
			return removed, b.unlisted(err)
		}
		for _, name := range names {
			day, rest, _ := strings.Cut(strings.TrimPrefix(name, kind), "/")
			if day >= first {
				if kind == trees {
					if err := b.need(ctx, rest, needed); err != nil {
						return removed, err
					}
				}
				continue
			}
			if err := b.Objects.DeleteBlob(ctx, name); err != nil {
				return removed, err
			}
			removed++
		}
	}
	names, err := b.Objects.ListBlobs(ctx, files)
	if err != nil {
		return removed, b.unlisted(err)
	}
	for _, name := range names {
		if needed[name] {
			continue
		}
		if err := b.Objects.DeleteBlob(ctx, name); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// need adds the objects of a tree to needed.
func (b *Blobs) need(ctx context.Context, tree string, needed map[string]bool) error {
	text, err := b.get(ctx, files, tree)
	if err != nil {
		return fmt.Errorf("which files are needed is not known: %w", err)
	}
	var folders wireTree
	if err := json.Unmarshal(text, &folders); err != nil {
		return fmt.Errorf("which files are needed is not known: %w", err)
	}
	needed[objectName(files, tree)] = true
	for _, name := range folders {
		needed[objectName(files, name)] = true
	}
	return nil
}

func (b *Blobs) unlisted(err error) error {
	return fmt.Errorf("what %s holds already cannot be listed: %w", b.Place, err)
}
