//go:build go1.27

package hclnative

import "github.com/apparentlymart/go-textseg/v17/textseg"

// nextCluster is the length of the grapheme cluster that b begins with, by the version of
// Unicode that hcl takes for this version of Go.
func nextCluster(b []byte) int {
	n, _, _ := textseg.ScanGraphemeClusters(b, true)
	return n
}
