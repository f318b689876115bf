package bucket

import (
	"context"
	"sync"
	"time"
)

// Credentials sign requests.
type Credentials struct {
	ID, Key string
	Token   string // of temporary credentials; "" for lasting ones
}

// A Role is what an account assumes to get temporary credentials.
type Role struct {
	ARN, Session, Policy string
	Seconds              int // until the credentials end
}

// Temporary keeps temporary credentials until five minutes before they end. The zero value
// is ready. Its methods may be called concurrently.
type Temporary struct {
	mu    sync.Mutex
	got   Credentials
	until time.Time
}

// Get returns the credentials. If there are none yet, or they end soon, it gets others from
// renew, which also returns when they end.
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
