//go:build aix || illumos || solaris

package journal

import "os"

// tryLock does nothing, because this system has no suitable lock. Only the lock of the state
// protects the journal.
func tryLock(*os.File, bool) error { return nil }

const removeOpen = true
