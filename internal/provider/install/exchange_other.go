//go:build !linux

package install

import "errors"

// exchange swaps two names in one step; only Linux is asked to.
func exchange(a, b string) error { return errors.ErrUnsupported }
