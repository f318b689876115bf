// Package release has the variable that a release sets.
package release

// Version is the version of the program.
var Version = "unset"
