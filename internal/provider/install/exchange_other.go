//go:build !linux

package install

import "errors"

// exchange swaps two paths atomically. It is implemented on Linux only.
func exchange(a, b string) error { return errors.ErrUnsupported }
