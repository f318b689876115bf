// Package lock reads and writes the dependency lock file, .terraform.lock.hcl. It contains the
// provider versions that a directory was initialized with, the checksums of their packages and,
// on request, the same for remote modules.
//
// Main types: File, Provider, Module and Constraints. The one rule: for the same content,
// File.Bytes returns the same bytes that OpenTofu 1.12.6 writes, so that switching between the
// tools changes nothing.
package lock
