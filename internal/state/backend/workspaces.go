package backend

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
)

// Workspaces manages the workspaces of an opened backend for commands.
type Workspaces struct {
	Backend Backend
	Options StoreOptions
	// Lock is the information in the lock under which a workspace is created; nil means no
	// lock.
	Lock    *store.LockInfo
	Timeout time.Duration
}

// list lists the workspaces. It reports when the backend takes long.
func (w Workspaces) list(ctx context.Context) ([]string, error) {
	defer Watch(w.Backend, w.Options)()
	return w.Backend.List(ctx)
}

// List returns the names, sorted. If the backend returns ErrNoWorkspaces, it returns only the
// default workspace.
func (w Workspaces) List(ctx context.Context) ([]string, diag.List) {
	names, err := w.list(ctx)
	switch {
	case errors.Is(err, ErrNoWorkspaces):
		return []string{store.Default}, nil
	case err != nil:
		return nil, w.Options.Located(Message(diag.CodeBackendReadFailed, "Failed to list workspaces", "", err))
	}
	return names, nil
}

// Create creates an empty workspace. If it exists, that is an error.
func (w Workspaces) Create(ctx context.Context, name string) diag.List {
	if ds := checkName(name); ds != nil {
		return ds
	}
	names, err := w.list(ctx)
	switch {
	case errors.Is(err, ErrNoWorkspaces):
		return w.Options.Located(noWorkspaces())
	case err != nil:
		return w.Options.Located(Message(diag.CodeBackendReadFailed, "Failed to list workspaces", "", err))
	case slices.Contains(names, name) || name == store.Default:
		return diag.Errorf(diag.CodeStateWorkspace, nil, "Workspace already exists", "There is a workspace %q already.", name)
	}
	if c, ok := w.Backend.(Creator); ok {
		answered := Watch(w.Backend, w.Options)
		err := c.Create(ctx, name)
		answered()
		if errors.Is(err, ErrNoWorkspaces) {
			return w.Options.Located(noWorkspaces())
		}
		if err != nil {
			return w.Options.Located(Message(diag.CodeBackendWriteFailed, "Failed to create workspace", "", err))
		}
		return nil
	}
	return w.writeEmpty(ctx, name)
}

// writeEmpty writes an empty state under the lock, as OpenTofu and Terraform do.
func (w Workspaces) writeEmpty(ctx context.Context, name string) (ds diag.List) {
	st, err := w.Backend.Store(name, w.Options)
	if err != nil {
		return w.Options.Located(Message(diag.CodeBackendWriteFailed, "Failed to create workspace", "", err))
	}
	if w.Lock != nil {
		info := *w.Lock
		info.Operation = "init"
		unlock, more := st.Lock(ctx, info, w.Timeout)
		if more.HasErrors() {
			return OfWorkspace(st, name, more)
		}
		defer func() { ds = append(ds, unlock()...) }()
	}
	there, ds := st.Read(ctx)
	if ds.HasErrors() || there != nil {
		return ds
	}
	next, _ := store.NextSerial(nil, state.New())
	return append(ds, st.Write(ctx, next)...)
}

// Delete deletes a workspace with its state, even if that is not empty. The default workspace
// cannot be deleted.
func (w Workspaces) Delete(ctx context.Context, name string) diag.List {
	if ds := checkName(name); ds != nil {
		return ds
	}
	if name == store.Default {
		return diag.Errorf(diag.CodeStateWorkspace, nil, "Default workspace", "The default workspace cannot be deleted.")
	}
	names, err := w.list(ctx)
	switch {
	case errors.Is(err, ErrNoWorkspaces):
		return w.Options.Located(noWorkspaces())
	case err != nil:
		return w.Options.Located(Message(diag.CodeBackendReadFailed, "Failed to list workspaces", "", err))
	case !slices.Contains(names, name):
		return diag.Errorf(diag.CodeStateWorkspace, nil, "Workspace does not exist", "There is no workspace %q.", name)
	}
	defer Watch(w.Backend, w.Options)()
	if err := w.Backend.Delete(ctx, name); err != nil {
		return w.Options.Located(Message(diag.CodeBackendWriteFailed, "Failed to delete workspace", "", err))
	}
	return nil
}

func noWorkspaces() diag.List {
	return diag.Errorf(diag.CodeBackendNoWorkspaces, nil, "Workspaces not supported", "The backend that this configuration uses keeps one state and has no workspaces but the default one.")
}

func checkName(name string) diag.List {
	if store.ValidWorkspace(name) {
		return nil
	}
	return diag.Errorf(diag.CodeStateWorkspace, nil, "Invalid workspace name", "The workspace name %q is not allowed. It must contain only URL safe characters, and no path separators.", name)
}

// ForceUnlock releases a lock by its ID, whichever process holds it.
func ForceUnlock(ctx context.Context, st store.Store, id string) diag.List {
	u, ok := st.(store.Unlocker)
	if !ok {
		return diag.Errorf(diag.CodeBackendLockFailed, nil, "Failed to unlock state", "This state is locked by the process that works on it, and no other process can release that lock. It ends with that process.")
	}
	return u.ForceUnlock(ctx, id)
}

// OfWorkspace adds to a message about a lock the name of its workspace and how to release it,
// for commands that lock a workspace that is not selected.
func OfWorkspace(st store.Store, workspace string, ds diag.List) diag.List {
	if _, ok := st.(store.Unlocker); !ok {
		return ds
	}
	for _, m := range ds {
		if _, ok := m.Extra.(*store.LockInfo); ok && m.Code == store.LockedCode {
			m.Detail += fmt.Sprintf("\n\nThis is the lock of the workspace %q: force-unlock needs TF_WORKSPACE=%[1]s in the environment.", workspace)
		}
	}
	return ds
}

// Describe describes the holder of a lock in one line.
func Describe(holder *store.LockInfo) string {
	if holder == nil || holder.Who == "" {
		return "somebody else"
	}
	text := holder.Who
	if !holder.Created.IsZero() {
		text += " since " + holder.Created.UTC().Format(time.RFC3339)
	}
	if holder.Operation != "" {
		text += " (" + holder.Operation + ")"
	}
	return text
}

// BlobsOf returns the store for further objects next to a state; nil if there is none.
func BlobsOf(st store.Store) Blobs {
	if s, ok := st.(*Store); ok {
		if b, ok := s.object.(Blobs); ok {
			return b
		}
	}
	return nil
}

// JournalPath returns the path of the journal of an apply. The store determines it, or it is in
// the working directory, with one file for each location and workspace.
func JournalPath(st store.Store, dir, workspace string) string {
	if j, ok := st.(Journaler); ok {
		return j.JournalPath()
	}
	return filepath.Join(dir, ".terraform."+StateID(st, workspace)+".journal")
}

// StateID returns a short name for the location of a state and its workspace. It does not
// reveal the location.
func StateID(st store.Store, workspace string) string {
	sum := sha256.Sum256([]byte(placeOf(st, workspace)))
	return hex.EncodeToString(sum[:6])
}

// placeOf returns a text that is unique to each location and workspace.
func placeOf(st store.Store, workspace string) string {
	if p, ok := st.(Placer); ok {
		return p.Place() + "\x00" + workspace
	}
	return workspace
}

// Homeless returns a name for the state of a store that can neither locate nor store a journal.
// ok is false for other stores.
func Homeless(st store.Store, workspace string) (name string, ok bool) {
	if _, beside := st.(Journaler); beside || BlobsOf(st) != nil {
		return "", false
	}
	return placeOf(st, workspace), true
}
