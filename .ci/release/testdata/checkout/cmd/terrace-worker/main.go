// Command terrace-worker is the second program of a release.
package main

func main() {}
