// Package project has the variable that a release sets.
package project

// Version is the version of the program.
var Version = "unset"
