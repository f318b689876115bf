package bucket

import (
	"context"
	"sync"
	"time"
)

// Credentials are the keys that sign requests.
type Credentials struct {
	ID, Key string
	Token   string // for temporary credentials; "" for permanent ones
}

// A Role is a role that an account assumes to get temporary credentials.
type Role struct {
	ARN, Session, Policy string
	Seconds              int // lifetime of the credentials
}

// Temporary caches temporary credentials until five minutes before they expire. The zero
// value is empty. Its methods may be called concurrently.
type Temporary struct {
	mu    sync.Mutex
	got   Credentials
	until time.Time
}

// Get returns the credentials. If there are none yet, or they expire soon, it calls renew,
// which returns new ones and their expiry.
func (t *Temporary) Get(ctx context.Context, now time.Time, renew func(context.Context) (Credentials, time.Time, error)) (Credentials, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.got.ID != "" && now.Before(t.until) {
		return t.got, nil
	}
	got, end, err := renew(ctx)
	if err != nil {
		return Credentials{}, err
	}
	t.got, t.until = got, end.Add(-5*time.Minute)
	return got, nil
}
