// Package fetch parses the source addresses of modules and downloads module packages:
// from directories, git and Mercurial repositories, HTTP servers, S3, GCS and OCI
// registries.
//
// Main types: Address and Fetcher. The one rule: a package is downloaded once per
// address into a cache that directories and processes share. Users of a module never
// write to the cache.
package fetch
