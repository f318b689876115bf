// Package install finds provider packages, verifies them and puts them where the
// plugin client starts them from, in the same places and under the same rules as
// OpenTofu, so that a folder initialized by one tool works with the other.
//
// Main functions: Install (for init) and Select (for everything after it). Main
// types: Options, Requirements, Package. The one rule: a package whose checksum
// is not one that the dependency lock file allows is never handed out.
package install
