//go:build !linux && !darwin

package install

import "io/fs"

// identify reports that files have no change time here, so that packages are always read.
func identify(fs.FileInfo) (identity, bool) { return identity{}, false }
