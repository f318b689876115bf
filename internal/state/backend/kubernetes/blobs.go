package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/internal/state/backend"
)

// Objects next to a state are stored in Secrets without the labels of states; a large one
// needs several. The names of the Secrets are hashes. An annotation of the first one
// contains the object's name and the number of parts.
const (
	besideLabel = "tfstateBeside"
	besideName  = "terrace/name"
	besideParts = "terrace/parts"
	partSize    = 1_000_000
)

func (o *object) besideOf() string {
	sum := sha256.Sum256([]byte(o.workspace + "\x00" + o.b.suffix))
	return hex.EncodeToString(sum[:8])
}

func (o *object) part(name string, i int) string {
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("tfbeside-%s-%s-%d", o.besideOf(), hex.EncodeToString(sum[:16]), i)
}

func (o *object) PutBlob(ctx context.Context, name string, data []byte) error {
	parts := max(1, (len(data)+partSize-1)/partSize)
	for i := parts - 1; i >= 0; i-- { // the first part is written last, because it makes the object visible
		annotations := map[string]string{}
		labels := map[string]string{"app.kubernetes.io/managed-by": "terraform"}
		if i == 0 {
			annotations[besideName], annotations[besideParts] = name, strconv.Itoa(parts)
			labels[besideLabel] = o.besideOf()
		}
		chunk := data[i*partSize : min(len(data), (i+1)*partSize)]
		if err := o.putPart(ctx, o.part(name, i), chunk, labels, annotations); err != nil {
			return err
		}
	}
	return nil
}

func (o *object) putPart(ctx context.Context, name string, data []byte, labels, annotations map[string]string) error {
	for try := 0; ; try++ {
		var now secret
		found, err := o.b.get(ctx, o.b.secrets()+"/"+name, &now)
		if err != nil {
			return err
		}
		method, path := "PUT", o.b.secrets()+"/"+name
		if !found {
			method, path = "POST", o.b.secrets()
			text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"name": name, "namespace": o.b.namespace}, "type": "Opaque"})
			if err != nil {
				return err
			}
			if err := json.Unmarshal(text, &now); err != nil {
				return err
			}
		}
		next, err := now.with(map[string][]byte{"data": data}, labels, annotations)
		if err != nil {
			return err
		}
		resp, err := o.b.put(ctx, method, path, next)
		switch {
		case err != nil && try < 3 && ctx.Err() == nil:
		case err != nil:
			return err
		case resp.Status == http.StatusOK || resp.Status == http.StatusCreated:
			return nil
		case resp.Status == http.StatusConflict && try < 10:
		default:
			return o.b.refused("Failed to write beside the state", "create", path, resp)
		}
	}
}

func (o *object) GetBlob(ctx context.Context, name string) ([]byte, error) {
	var out []byte
	for i, parts := 0, 1; i < parts; i++ {
		var s secret
		found, err := o.b.get(ctx, o.b.secrets()+"/"+o.part(name, i), &s)
		switch {
		case err != nil:
			return nil, err
		case !found && i == 0:
			return nil, backend.ErrNoBlob
		case !found:
			return nil, &backend.Error{Answer: fmt.Sprintf("a part of %q is missing", name)}
		}
		if i == 0 {
			parts, _ = strconv.Atoi(s.Metadata.Annotations[besideParts])
		}
		out = append(out, s.Data["data"]...)
	}
	return out, nil
}

func (o *object) ListBlobs(ctx context.Context, prefix string) ([]string, error) {
	found, err := o.b.list(ctx, o.b.secrets(), besideLabel+"="+o.besideOf())
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range found {
		if name := m.Annotations[besideName]; strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (o *object) DeleteBlob(ctx context.Context, name string) error {
	for i, parts := 0, 1; i < parts; i++ {
		path := o.b.secrets() + "/" + o.part(name, i)
		var s secret
		found, err := o.b.get(ctx, path, &s)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if i == 0 {
			parts, _ = strconv.Atoi(s.Metadata.Annotations[besideParts])
		}
		if err := o.b.delete(ctx, path, &s.Metadata); err != nil {
			return err
		}
	}
	return nil
}
