// Package fetch understands the source addresses of modules and brings module
// packages onto this machine: from folders, git and Mercurial repositories, http
// servers, S3, GCS and OCI registries.
//
// Main types: Address and Fetcher. The one rule: a package is fetched once for
// an address and then kept in a cache that folders and processes share; what is
// in the cache is never written to by whoever uses a module.
package fetch
