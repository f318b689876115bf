package tfe

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// An object is the state of one workspace. The service accepts a new state only from the
// holder of the lock. A writer without the lock takes it for the write.
type object struct {
	b          *Backend
	name       string // the workspace's name at the service
	anyVersion bool   // -ignore-remote-version

	mu          sync.Mutex
	reason      string // the reason of this process's lock; "" without one
	knowsReason bool   // the service returns the reason of a lock, so a different reason means a different lock
	broken      bool   // the last upload failed, so the lock is kept
}

func decode(body []byte) (resource, error) {
	var doc struct{ Data resource }
	if err := json.Unmarshal(body, &doc); err != nil {
		return resource{}, errors.New("the answer is not a document of the expected form")
	}
	return doc.Data, nil
}

// A version is a state version.
type version struct {
	ID         string
	Serial     uint64
	Status     string
	Download   string `json:"hosted-state-download-url"`
	Upload     string `json:"hosted-state-upload-url"`
	UploadJSON string `json:"hosted-json-state-upload-url"`
}

func versionOf(r resource) (*version, error) {
	v := &version{}
	err := r.attributes(v)
	v.ID = r.ID
	return v, err
}

// current returns the present version; nil if there is no state.
func (o *object) current(ctx context.Context, w *Workspace) (*version, error) {
	r, _, err := o.b.document(ctx, call{method: "GET", path: at("workspaces", w.ID, "current-state-version")})
	if IsStatus(err, http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, o.b.explain(err)
	}
	v, err := versionOf(r)
	return v, o.b.explain(err)
}

// Read implements backend.Object.
func (o *object) Read(ctx context.Context) (backend.Payload, error) { return backend.Collect(ctx, o) }

// Fetch implements backend.Streamed. A missing workspace has no state.
func (o *object) Fetch(ctx context.Context, take func(io.Reader) error) (string, error) {
	w, err := o.b.find(ctx, o.name, false)
	if err == errNoSuchWorkspace {
		return "", take(http.NoBody)
	}
	if err != nil {
		return "", err
	}
	v, err := o.current(ctx, w)
	if err != nil {
		return "", err
	}
	if v == nil {
		return "", take(http.NoBody)
	}
	if v.Download == "" {
		return "", &backend.Error{Answer: o.b.Host + ": the token may see the workspace and not its state", Argument: "token", Advice: "Ask for the permission to read state versions."}
	}
	empty := true
	_, err = o.b.transfer(ctx, v.Download, rest.Request{Method: "GET", Into: func(r io.Reader) error {
		in := bufio.NewReader(r)
		_, err := in.Peek(1)
		if empty = err == io.EOF; empty {
			return nil
		}
		return take(backend.As(in, r))
	}})
	if err != nil {
		return "", o.b.explain(err)
	}
	if empty {
		return "", &backend.Error{Answer: fmt.Sprintf("%s: the state version %s is there, and its content is empty", o.b.Host, v.ID), Advice: "An upload may have failed; the service keeps the versions before it."}
	}
	return v.ID, nil
}

// facts are the properties of a state that the service requires besides its bytes.
type facts struct {
	serial    uint64
	lineage   string
	outputs   map[string]json.RawMessage
	encrypted bool
}

// factsOf reads only the beginning of a text, because the large parts are at its end.
func factsOf(t *backend.Text) (f facts, err error) {
	r := t.Open()
	defer r.Close()
	d := json.NewDecoder(r)
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return f, errors.New("no object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return f, err
		}
		switch name {
		case "serial":
			err = d.Decode(&f.serial)
		case "lineage":
			err = d.Decode(&f.lineage)
		case "outputs":
			err = d.Decode(&f.outputs)
		case "meta", "encrypted_data":
			f.encrypted = true
			return f, nil
		case "resources":
			return f, nil
		default:
			var other json.RawMessage
			err = d.Decode(&other)
		}
		if err != nil {
			return f, err
		}
	}
	_, err = d.Token()
	return f, err
}

// Write implements backend.Object.
func (o *object) Write(ctx context.Context, data []byte, prior backend.Prior, lock string) (string, error) {
	return o.Send(ctx, backend.Bytes(data), prior, lock)
}

// Send implements backend.Streamed.
func (o *object) Send(ctx context.Context, t *backend.Text, prior backend.Prior, lock string) (string, error) {
	f, err := factsOf(t)
	if err != nil {
		return "", &backend.Error{Answer: "a state that is not JSON cannot be kept by this service"}
	}
	w, err := o.workspace(ctx, true)
	if err != nil {
		return "", err
	}
	if lock != "" {
		o.mu.Lock()
		gone := o.lost(w)
		o.mu.Unlock()
		if gone {
			return "", &backend.Error{Answer: "the lock of the workspace is gone", Err: backend.ErrLockLost}
		}
	} else {
		unlock, err := o.lockForWrite(ctx, w)
		if err != nil {
			return "", err
		}
		defer unlock()
	}
	now, err := o.current(ctx, w)
	if err != nil {
		return "", err
	}
	have := ""
	if now != nil {
		have = now.ID
	}
	if !prior.Unknown && (prior.Absent != (now == nil) || prior.Version != "" && prior.Version != have) {
		return "", &backend.Error{Answer: "the workspace has another state version", Err: backend.ErrChanged}
	}
	// The replaced version is known, so a decreasing serial is intended.
	id, err := o.upload(ctx, w, t, f, now != nil && (prior.Unknown || f.serial <= now.Serial))
	if err == nil {
		err = o.checkConflict(ctx, w, id, have)
	}
	o.mu.Lock()
	o.broken = err != nil && lock != ""
	o.mu.Unlock()
	if IsStatus(err, http.StatusConflict) && lock != "" {
		again, found := o.b.find(ctx, o.name, false)
		o.mu.Lock()
		gone := found == nil && o.lost(again)
		o.mu.Unlock()
		if gone {
			return "", &backend.Error{Answer: "the lock of the workspace is gone", Err: backend.ErrLockLost}
		}
	}
	return id, o.b.explain(err)
}

// checkConflict returns an error if the present version is neither the uploaded one nor the
// one before it. The service may return the previous one while it processes the upload. A
// slow upload may arrive after an upload of another process that took over the lock, and
// the service does not refuse it.
func (o *object) checkConflict(ctx context.Context, w *Workspace, id, before string) error {
	now, err := o.current(ctx, w)
	if err == nil && now != nil && now.ID != id && now.ID != before {
		err = &backend.Error{Answer: fmt.Sprintf("the workspace has the state version %s, and not %s, which was uploaded", now.ID, id), Err: backend.ErrChanged}
	}
	return err
}

// lost reports whether this process no longer holds the lock of the workspace.
func (o *object) lost(w *Workspace) bool {
	return !w.Locked || o.knowsReason && w.LockedReason != o.reason
}

// upload creates a state version and sends its content.
func (o *object) upload(ctx context.Context, w *Workspace, t *backend.Text, f facts, force bool) (string, error) {
	sum := t.MD5()
	attributes := map[string]any{"serial": f.serial, "lineage": f.lineage, "md5": hex.EncodeToString(sum[:]), "force": force}
	if !f.encrypted { // otherwise the outputs of an encrypted state would be stored unencrypted
		outputs, err := json.Marshal(f.outputs)
		if err != nil {
			return "", err
		}
		if len(f.outputs) > 0 {
			attributes["json-state-outputs"] = base64.StdEncoding.EncodeToString(outputs)
		}
	}
	new := sending{Type: "state-versions", Attributes: attributes}
	if run := o.b.s.Env.Get("TFE_RUN_ID"); run != "" {
		new.Relationships = map[string]sendingRefs{"run": {ref{run, "runs"}}}
	}
	make := call{method: "POST", path: at("workspaces", w.ID, "state-versions"), body: document{new}}
	r, _, err := o.b.document(ctx, make)
	if wants(err) { // a service without uploads
		var data []byte
		if data, err = t.Bytes(); err != nil {
			return "", err
		}
		attributes["state"] = base64.StdEncoding.EncodeToString(data)
		r, _, err = o.b.document(ctx, make)
	}
	if err != nil {
		return "", err
	}
	v, err := versionOf(r)
	if err != nil || attributes["state"] != nil {
		return v.ID, err
	}
	if v.Upload == "" {
		return "", errors.New("the service gave no address to upload the state to")
	}
	_, err = o.b.transfer(ctx, v.Upload, rest.Request{Method: "PUT", Content: t})
	return v.ID, err
}

// wants reports whether the service requires the state in the request itself.
func wants(err error) bool {
	var e *StatusError
	if !errors.As(err, &e) || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return false
	}
	return strings.Contains(strings.ToLower(e.Detail+e.Title), "state") && strings.Contains(strings.ToLower(e.Detail+e.Title), "missing") || strings.Contains(e.Detail, "param is missing")
}

// workspace reads the workspace, and creates it if create is set and it is missing.
func (o *object) workspace(ctx context.Context, create bool) (*Workspace, error) {
	w, err := o.b.find(ctx, o.name, true)
	if err == errNoSuchWorkspace && create {
		return o.b.create(ctx, o.name)
	}
	return w, err
}

// check returns an error for a workspace of another language version, unless the version
// does not matter because all runs are local.
func (o *object) check(w *Workspace, operation string) error {
	if o.anyVersion || w.ExecutionMode == "local" || operation == "OperationTypePlan" || operation == "OperationTypeApply" || operation == "OperationTypeRefresh" || compatible(o.b.s.Version, w.TerraformVersion) {
		return nil
	}
	return &backend.Error{
		Argument: "workspaces", Summary: "Incompatible version of the workspace",
		Answer: fmt.Sprintf("the workspace %s/%s works with version %s, and this is %s; its runs may not be able to use the state any more", o.b.Organization, o.name, w.TerraformVersion, o.b.s.Version),
		Advice: "Change the version of the workspace, or add -ignore-remote-version if you know that it does no harm.",
	}
}

// Lock implements backend.Object.
func (o *object) Lock(ctx context.Context, info store.LockInfo) (string, error) {
	w, err := o.workspace(ctx, true)
	if err != nil {
		return "", err
	}
	if err := o.check(w, info.Operation); err != nil {
		return "", err
	}
	if w.Locked {
		return "", &backend.LockedError{Holder: w.holder(o.b)}
	}
	text := reason(info)
	knowsReason, err := o.lock(ctx, w, text)
	switch {
	case IsStatus(err, http.StatusConflict):
		again, err := o.b.find(ctx, o.name, true)
		if err != nil {
			return "", err
		}
		return "", &backend.LockedError{Holder: again.holder(o.b), Again: !again.Locked}
	case err != nil:
		out := o.b.explain(err)
		if e, ok := out.(*backend.Error); ok && IsStatus(err, http.StatusNotFound) {
			e.Advice = "The token may read the workspace and not lock it: ask for the permission to write state."
		}
		return "", out
	}
	o.mu.Lock()
	o.reason, o.knowsReason, o.broken = text, knowsReason, false
	o.mu.Unlock()
	return o.b.lockID(o.name), nil
}

// lock makes one attempt. If a response was lost and the reason of the lock is ours, the
// attempt succeeded.
func (o *object) lock(ctx context.Context, w *Workspace, text string) (knowsReason bool, err error) {
	r, _, err := o.b.document(ctx, call{method: "POST", path: at("workspaces", w.ID, "actions", "lock"), body: map[string]any{"reason": text}})
	if err == nil {
		now, err := workspaceOf(r, nil)
		return err == nil && now.LockedReason == text, nil
	}
	var status *StatusError
	if !errors.As(err, &status) && ctx.Err() == nil {
		if again, found := o.b.find(ctx, o.name, false); found == nil && again.Locked && again.LockedReason == text {
			return true, nil
		}
	}
	return false, err
}

// lockForWrite takes the lock for one write of a caller without a lock.
func (o *object) lockForWrite(ctx context.Context, w *Workspace) (func(), error) {
	text := reason(store.LockInfo{ID: store.NewID(), Who: o.b.s.Who, Operation: "write", Created: o.b.s.Now()})
	for try := 0; ; try++ {
		_, err := o.lock(ctx, w, text)
		switch {
		case err == nil:
			return func() {
				_, _ = o.b.send(context.WithoutCancel(ctx), call{method: "POST", path: at("workspaces", w.ID, "actions", "unlock")})
			}, nil
		case !IsStatus(err, http.StatusConflict):
			return nil, o.b.explain(err)
		}
		if try == 40 || o.b.s.Sleep(ctx, 250*time.Millisecond) != nil {
			return nil, &backend.Error{Answer: "the workspace is locked, and the service takes states only from who has the lock", Err: err}
		}
	}
}

// Unlock implements backend.Object. After a failed upload the lock is kept, so that no
// other run continues with the previous state.
func (o *object) Unlock(ctx context.Context, id string) error {
	if id != o.b.lockID(o.name) {
		return backend.WrongID(id, o.b.lockID(o.name))
	}
	w, err := o.b.find(ctx, o.name, true)
	if err == errNoSuchWorkspace {
		return &backend.Error{Answer: fmt.Sprintf("there is no workspace %q, so there is nothing to release", o.name), Err: err}
	}
	if err != nil {
		return err
	}
	o.mu.Lock()
	ours, broken, gone := o.reason != "", o.broken, w.Locked && o.lost(w)
	o.mu.Unlock()
	action := "force-unlock"
	if ours {
		switch {
		case broken:
			return &backend.Error{Answer: "the state could not be uploaded, so the workspace was left locked", Advice: "Bring the state in with \"state push errored.tfstate\" first."}
		case gone:
			return &backend.Error{Answer: "the lock was taken over by " + backend.Describe(w.holder(o.b))}
		}
		action = "unlock"
	}
	_, err = o.b.send(ctx, call{method: "POST", path: at("workspaces", w.ID, "actions", action)})
	if err != nil {
		if again, found := o.b.find(ctx, o.name, false); found == nil && !again.Locked && w.Locked {
			err = nil // a response was lost
		}
	}
	if IsStatus(err, http.StatusConflict) {
		return &backend.Error{Answer: "the workspace is not locked, or its lock cannot be released by this token: " + diag.Reason(err), Err: err}
	}
	o.mu.Lock()
	o.reason = ""
	o.mu.Unlock()
	return o.b.explain(err)
}
