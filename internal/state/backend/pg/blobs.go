package pg

import (
	"context"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/terrace-iac/terrace/internal/state/backend"
)

// blobs returns the name of the table for objects stored next to the states. It is created
// on the first write. OpenTofu and Terraform do not use it.
func (b *pgBackend) blobs() string {
	name := b.tableName + "_beside"
	if len(name) > 63 { // the server would truncate it, possibly to the name of the states' table
		h := fnv.New32a()
		h.Write([]byte(name))
		name = fmt.Sprintf("beside_%08x", h.Sum32())
	}
	return quote(b.schema) + "." + quote(name)
}

const besideFailed = "Failed to write beside the state"

func (o *object) PutBlob(ctx context.Context, name string, data []byte) error {
	put := func() error {
		_, err := o.b.pool.query(ctx, "INSERT INTO "+o.b.blobs()+" (workspace, name, data) VALUES ($1, $2, decode($3, 'hex')) ON CONFLICT (workspace, name) DO UPDATE SET data = EXCLUDED.data", o.name, name, hex.EncodeToString(data))
		return err
	}
	err := put()
	if missing(err) {
		if err := o.b.make(ctx); err != nil {
			return err
		}
		_, err = o.b.pool.query(ctx, "CREATE TABLE IF NOT EXISTS "+o.b.blobs()+" (workspace text, name text, data bytea NOT NULL, PRIMARY KEY (workspace, name))")
		if err == nil || hasCode(err, "23505", "42P07", "42710") {
			err = put()
		}
	}
	if err != nil {
		return o.b.fail(besideFailed, err)
	}
	return nil
}

func (o *object) GetBlob(ctx context.Context, name string) ([]byte, error) {
	rows, err := o.b.pool.query(ctx, "SELECT encode(data, 'hex') FROM "+o.b.blobs()+" WHERE workspace = $1 AND name = $2", o.name, name)
	if missing(err) || err == nil && len(rows) == 0 {
		return nil, backend.ErrNoBlob
	}
	if err != nil {
		return nil, o.b.fail("Failed to read beside the state", err)
	}
	return hex.DecodeString(string(rows[0][0]))
}

func (o *object) ListBlobs(ctx context.Context, prefix string) ([]string, error) {
	rows, err := o.b.pool.query(ctx, "SELECT name FROM "+o.b.blobs()+" WHERE workspace = $1 AND starts_with(name, $2)", o.name, prefix)
	if err != nil && !missing(err) {
		return nil, o.b.fail("Failed to list what is beside the state", err)
	}
	var names []string
	for _, r := range rows {
		names = append(names, string(r[0]))
	}
	slices.Sort(names)
	return names, nil
}

func (o *object) DeleteBlob(ctx context.Context, name string) error {
	_, err := o.b.pool.query(ctx, "DELETE FROM "+o.b.blobs()+" WHERE workspace = $1 AND name = $2", o.name, name)
	if err != nil && !missing(err) {
		return o.b.fail("Failed to delete beside the state", err)
	}
	return nil
}
