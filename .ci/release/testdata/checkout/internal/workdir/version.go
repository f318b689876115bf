// Package workdir has the variable that a release sets.
package workdir

// Version is the version of the program.
var Version = "unset"
