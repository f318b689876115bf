//go:build !go1.27

package hclnative

import "github.com/apparentlymart/go-textseg/v15/textseg"

// nextCluster returns the length of the first grapheme cluster in b, in bytes, by the
// Unicode version that hcl uses with this version of Go.
func nextCluster(b []byte) int {
	n, _, _ := textseg.ScanGraphemeClusters(b, true)
	return n
}
