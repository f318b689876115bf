// Package lock reads and writes the dependency lock file, .terraform.lock.hcl:
// the provider versions that a folder was initialized with, the checksums that
// their packages must match, and, on request, the same for remote modules.
//
// Main types: File, Provider, Module and Constraints. The one rule: for the
// same facts File.Bytes gives the same bytes as OpenTofu 1.12.6 writes, so that
// going back and forth between the tools changes nothing.
package lock
