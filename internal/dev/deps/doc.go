// Package deps contains only the tests of the layers of the tree: which package may import
// which. The one rule: the order in these tests is only changed deliberately, never to make
// a test pass.
package deps
