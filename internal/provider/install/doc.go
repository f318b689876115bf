// Package install finds provider packages, verifies them and installs them. It uses the
// same directories and rules as OpenTofu, so that a directory initialized by one tool works
// with the other.
//
// Main functions: Install (for init) and Select (for all other commands). Main types:
// Options, Requirements, Package. The one rule: a package is never returned if the
// dependency lock file does not allow its checksum.
package install
