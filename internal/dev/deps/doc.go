// Package deps holds nothing but the test that keeps the floors of the house:
// which package may import which. Its text is the import order; the one rule is
// that the order is changed on purpose, in the open, never to make the test pass.
package deps
