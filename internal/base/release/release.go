// Package release contains the version of this program.
//
// Main variable: Version. The one rule: only the linker sets it.
package release

// Version is the version of this program, which saved plans contain. The linker sets it to the
// version of the tag in a release (.ci/release).
var Version = "0.1.0"
