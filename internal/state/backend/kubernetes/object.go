package kubernetes

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// lockAnnotation is the annotation of a Lease with the holder of the lock.
const lockAnnotation = "app.terraform.io/lock-info"

// An object is the Secret and the Lease of one workspace. Its version is the
// resourceVersion of the Secret.
type object struct {
	b         *kubernetesBackend
	workspace string
	probe     string // the name of a probe's Secret, which contains no state; "" for the Secret of the workspace

	mu    sync.Mutex
	ratio float64 // the size of compressed states relative to uncompressed ones; 0: unknown
}

// A secret is a Secret. Its other fields are kept unchanged.
type secret struct {
	Metadata meta
	Data     map[string][]byte
	all      map[string]json.RawMessage
}

func (s *secret) UnmarshalJSON(text []byte) error {
	type plain secret
	if err := json.Unmarshal(text, (*plain)(s)); err != nil {
		return err
	}
	return json.Unmarshal(text, &s.all)
}

// with returns the object with other data, labels and annotations.
func (s *secret) with(data map[string][]byte, labels, annotations map[string]string) (map[string]json.RawMessage, error) {
	out := maps.Clone(s.all)
	m := map[string]json.RawMessage{}
	if err := json.Unmarshal(out["metadata"], &m); err != nil {
		return nil, err
	}
	var err error
	set := func(in map[string]json.RawMessage, name string, v any) {
		text, e := json.Marshal(v)
		if e != nil {
			err = e
		}
		in[name] = text
	}
	set(m, "labels", over(s.Metadata.Labels, labels))
	set(m, "annotations", over(s.Metadata.Annotations, annotations))
	set(out, "metadata", m)
	set(out, "data", data)
	return out, err
}

func over(under, top map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, under)
	maps.Copy(out, top)
	return out
}

// name returns the name of the Secret.
func (o *object) name() string {
	if o.probe != "" {
		return o.probe
	}
	return o.b.secret(o.workspace)
}

// labels returns the labels of the Secret.
func (o *object) labels() map[string]string {
	if o.probe != "" {
		return map[string]string{"app.kubernetes.io/managed-by": "terraform"}
	}
	return o.b.labelsOf(o.workspace)
}

// Probe implements backend.Prober.
func (o *object) Probe() (backend.Object, func(context.Context) error) {
	name := "doctor/" + store.NewID()
	return &object{b: o.b, workspace: o.workspace, probe: o.part(name, 0)}, func(ctx context.Context) error { return o.DeleteBlob(ctx, name) }
}

func (o *object) path() string { return o.b.secrets() + "/" + o.name() }

func (o *object) lease() string { return o.b.leases() + "/lock-" + o.b.secret(o.workspace) }

func (o *object) Read(ctx context.Context) (backend.Payload, error) {
	var s secret
	found, err := o.b.get(ctx, o.path(), &s)
	if err != nil || !found {
		return backend.Payload{}, cmp.Or(err, o.b.namespaced(ctx))
	}
	p := backend.Payload{Version: s.Metadata.ResourceVersion}
	if packed := s.Data["tfstate"]; len(packed) > 0 {
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err == nil {
			p.Data, err = io.ReadAll(z)
		}
		if err != nil {
			return backend.Payload{}, &backend.Error{Argument: "secret_suffix", Summary: "Failed to read the state", Answer: "what the Secret holds cannot be decompressed: " + diag.Reason(err), Advice: "It is damaged; bring it back from a backup."}
		}
		o.measured(len(packed), len(p.Data))
	}
	if len(p.Data) == 0 {
		p.Data = nil
	}
	return p, nil
}

func (o *object) measured(packed, plain int) {
	if plain > 10_000 { // small states give no good estimate
		o.mu.Lock()
		o.ratio = float64(packed) / float64(plain)
		o.mu.Unlock()
	}
}

// Limit implements backend.Limited. It assumes the compression ratio of the last state.
func (o *object) Limit(sealed bool) (int64, string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ratio := o.ratio
	switch {
	case ratio != 0:
	case sealed:
		ratio = 0.76 // base64
	default:
		ratio = 0.1
	}
	return int64(maxSecret / ratio), tooLarge
}

func (o *object) Write(ctx context.Context, data []byte, prior backend.Prior, lock string) (string, error) {
	const summary = "Failed to write the state"
	var buf bytes.Buffer
	// The best compression, since a Secret is small. Go 1.27 stores base64 text at the default level.
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	z.Write(data)
	if err := z.Close(); err != nil {
		return "", err
	}
	packed := buf.Bytes()
	o.measured(len(packed), len(data))
	if len(packed) > maxSecret {
		return "", &backend.Error{Summary: summary, Argument: "secret_suffix", Answer: fmt.Sprintf("the state takes %d bytes compressed", len(packed)), Advice: tooLarge}
	}
	if lock != "" {
		var l lease
		found, err := o.b.get(ctx, o.lease(), &l)
		if err != nil {
			return "", err
		}
		if !found || l.holder() != lock {
			return "", &backend.Error{Argument: "namespace", Answer: "the Lease is not held by this run any more", Err: backend.ErrLockLost}
		}
	}
	for try := 0; ; try++ {
		var now secret
		found, err := o.b.get(ctx, o.path(), &now)
		switch {
		case err != nil:
			return "", err
		case !prior.Unknown && prior.Version != "" && (!found || now.Metadata.ResourceVersion != prior.Version),
			!prior.Unknown && prior.Version == "" && found && len(now.Data["tfstate"]) > 0:
			return "", backend.ErrChanged
		}
		method, path := "PUT", o.path()
		if !found {
			method, path = "POST", o.b.secrets()
			text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"name": o.name(), "namespace": o.b.namespace}, "type": "Opaque"})
			if err != nil {
				return "", err
			}
			if err := json.Unmarshal(text, &now); err != nil {
				return "", err
			}
		}
		next, err := now.with(over64(now.Data, "tfstate", packed), o.labels(), map[string]string{"encoding": "gzip"})
		if err != nil {
			return "", err
		}
		resp, err := o.b.put(ctx, method, path, next)
		if err != nil || resp.Repeated > 0 && resp.Status == http.StatusConflict {
			// It is unknown whether the write succeeded.
			var after secret
			if found, e := o.b.get(context.WithoutCancel(ctx), o.path(), &after); e == nil && found && bytes.Equal(after.Data["tfstate"], packed) {
				return after.Metadata.ResourceVersion, nil
			}
			if err != nil {
				return "", err
			}
		}
		switch {
		case resp.Status == http.StatusOK || resp.Status == http.StatusCreated:
			var after secret
			if err := json.Unmarshal(resp.Body, &after); err != nil || after.Metadata.ResourceVersion == "" {
				return "", odd()
			}
			return after.Metadata.ResourceVersion, nil
		case resp.Status == http.StatusConflict && prior.Unknown && try < 10:
		case resp.Status == http.StatusConflict:
			return "", backend.ErrChanged
		default:
			return "", o.b.refused(summary, map[string]string{"PUT": "update", "POST": "create"}[method], path, resp)
		}
	}
}

func over64(under map[string][]byte, name string, v []byte) map[string][]byte {
	out := map[string][]byte{}
	maps.Copy(out, under)
	out[name] = v
	return out
}

// A lease is a Lease. Its other fields are kept unchanged.
type lease struct {
	Metadata meta
	Spec     map[string]json.RawMessage
	all      map[string]json.RawMessage
}

func (l *lease) UnmarshalJSON(text []byte) error {
	type plain lease
	if err := json.Unmarshal(text, (*plain)(l)); err != nil {
		return err
	}
	return json.Unmarshal(text, &l.all)
}

// holder returns the ID of the lock; "" for none.
func (l *lease) holder() string {
	var id *string
	if json.Unmarshal(l.Spec["holderIdentity"], &id) != nil || id == nil {
		return ""
	}
	return *id
}

func (l *lease) info() store.LockInfo {
	i, err := store.ParseLockInfo([]byte(l.Metadata.Annotations[lockAnnotation]))
	if err != nil || i.ID == "" {
		return store.LockInfo{ID: l.holder()}
	}
	return i
}

// held returns the Lease with a holder, or without one if info is nil.
func (l *lease) held(info *store.LockInfo, labels map[string]string) (map[string]any, error) {
	out := map[string]any{}
	for k, v := range l.all {
		out[k] = v
	}
	m := map[string]any{}
	var was map[string]json.RawMessage
	if err := json.Unmarshal(l.all["metadata"], &was); err != nil {
		return nil, err
	}
	for k, v := range was {
		m[k] = v
	}
	annotations := over(l.Metadata.Annotations, nil)
	delete(annotations, lockAnnotation)
	spec := map[string]any{}
	for k, v := range l.Spec {
		spec[k] = v
	}
	delete(spec, "holderIdentity")
	if info != nil {
		annotations[lockAnnotation] = string(info.JSON())
		spec["holderIdentity"] = info.ID
		m["labels"] = over(l.Metadata.Labels, labels)
	}
	m["annotations"] = annotations
	out["metadata"], out["spec"] = m, spec
	return out, nil
}

// Lock creates the Lease, or writes the holder into one that is free.
func (o *object) Lock(ctx context.Context, info store.LockInfo) (string, error) {
	const summary = "Error acquiring the state lock"
	info.Path = ""
	for try := 0; ; try++ {
		var l lease
		found, err := o.b.get(ctx, o.lease(), &l)
		if err != nil {
			return "", err
		}
		method, path := "PUT", o.lease()
		if !found {
			method, path = "POST", o.b.leases()
			text, err := json.Marshal(map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]string{"name": "lock-" + o.b.secret(o.workspace), "namespace": o.b.namespace}})
			if err != nil {
				return "", err
			}
			if err := json.Unmarshal(text, &l); err != nil {
				return "", err
			}
		}
		switch l.holder() {
		case "":
		case info.ID: // the response of an earlier attempt was lost
			return info.ID, nil
		default:
			holder := l.info()
			return "", &backend.LockedError{Holder: &holder}
		}
		next, err := l.held(&info, o.b.labelsOf(o.workspace))
		if err != nil {
			return "", err
		}
		resp, err := o.b.put(ctx, method, path, next)
		switch {
		case err != nil && try < 3 && ctx.Err() == nil:
		case err != nil:
			return "", err
		case resp.Status == http.StatusOK || resp.Status == http.StatusCreated:
			return info.ID, nil
		case resp.Status == http.StatusConflict && try < 10: // another process was faster
		default:
			return "", o.b.refused(summary, map[string]string{"PUT": "update", "POST": "create"}[method], path, resp)
		}
	}
}

func (o *object) Unlock(ctx context.Context, id string) error {
	for try := 0; ; try++ {
		var l lease
		found, err := o.b.get(ctx, o.lease(), &l)
		if err != nil {
			return err
		}
		switch holder := l.holder(); {
		case holder == "" && try > 0: // the response of an earlier attempt was lost
			return nil
		case !found:
			return cmp.Or(o.b.namespaced(ctx), backend.NotHeld(id))
		case holder == "":
			return backend.NotHeld(id)
		case holder != id:
			return backend.WrongID(id, holder)
		}
		next, err := l.held(nil, nil)
		if err != nil {
			return err
		}
		resp, err := o.b.put(ctx, "PUT", o.lease(), next)
		switch {
		case err != nil && try < 3 && ctx.Err() == nil:
		case err != nil:
			return err
		case resp.Status == http.StatusOK:
			return nil
		case resp.Status == http.StatusConflict && try < 10:
		default:
			return o.b.refused("", "update", o.lease(), resp)
		}
	}
}
