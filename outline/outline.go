// Package outline defines the evaluated content of a configuration as plain data: a list of objects,
// such as resource instances and outputs, with a fingerprint of each argument. Compare returns the
// differences between two outlines.
//
// Main types: Outline, Object, Part and Difference. The one rule: equal fingerprints mean equal
// values, for values that are only known after an apply as well.
package outline

import (
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/source"
)

// A Print is the fingerprint of a value: 16 bytes of a SHA-256 digest.
type Print [16]byte

// A Kind is the kind of an Object.
type Kind string

// The kinds of objects.
const (
	Resource Kind = "resource"
	Call     Kind = "module"
	Output   Kind = "output"
	Check    Kind = "check"
	Provider Kind = "provider"
	Unit     Kind = "unit"     // a block of a unit, or its inputs
	Settings Kind = "settings" // required providers and versions, the backend, import and removed blocks
)

// An Object is one object of a module tree.
type Object struct {
	Kind Kind
	Addr string // address, after moves
	Was  string // address before moves; "" if it is the same
	Of   string // address of a resource without the key of the instance
	// Instance is the address of a resource instance before moves. For a module call, it is the address
	// of a placeholder that moves as the called module does.
	Instance addr.Instance
	Repeat   string // the argument that repeats the block of a resource: count, for_each or ""
	// Some means that the object represents all instances of a resource, because their number is
	// unknown. For a module call, it represents all instances of the called module.
	Some bool
	At   source.Range
	// After contains the positions of the resources for which the read of a data source waits because of
	// depends_on, and of the module calls that have such a depends_on.
	After []source.Range
	Parts []Part   // sorted by path
	Why   []string // why parts of it are unknown, sorted
}

// A Part is one argument of an object, an element of an argument, or a nested block.
type Part struct {
	Path    string // such as .tags.cost or .ingress[0].port
	Print   Print
	Unknown bool     // the value is not known before an apply
	Block   bool     // it is a nested block, whose arguments are separate parts
	Secret  bool     // neither the value nor the text is shown
	Marked  bool     // the value of its argument contains a secret
	Fixed   bool     // it cannot be explained: it is no argument
	Why     []string // why the value is unknown, if that cannot be computed from the configuration
	// Output and OutputOf are the name of an output and the ID of its unit if the value is exactly
	// this output, which is unknown.
	Output, OutputOf string
	// Elements returns the elements of the value if it is a list, tuple, map or object with elements. nil
	// means that the value is not such a collection, or that its elements are other parts.
	Elements func() *Elements
	// Inside contains the parts of the elements of a map or object that is one part because it is secret,
	// for the comparison with one that is not. Its own path begins their paths.
	Inside []Part
	// Refs contains the addresses to which the expression of a Fixed part refers.
	Refs []string
	At   source.Range
}

// Elements contains the elements of a collection that is one part, with those of the collections in it, by path.
// The paths of an element and of a collection in which it is begin with the same bytes, up to a separator.
type Elements struct {
	Known   map[string]Print // values, null values and empty collections
	Unknown map[string]bool  // values that are not known before an apply, and sets, which have no paths
}

// Separator begins each step of a path of Elements.
const Separator = "\x00"

// An Outline is the list of the objects of a module tree, sorted by address.
type Outline struct{ Objects []*Object }
