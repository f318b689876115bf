// Package hclnative reads HCL's native syntax: what github.com/hashicorp/hcl/v2/hclsyntax
// reads, exactly, in a fraction of the time and memory. It depends on nothing but that
// library and can be used by any program.
//
// Scan goes over the bytes of a file once, checks the syntax of all of it, and yields a File:
// bodies, blocks and attributes, whose names and labels are slices of the text, with places
// as offsets. Lines and columns are computed on demand. No expression is kept: a Body,
// which is an hcl.Body, builds those that are asked for from the text, in the types of
// hclsyntax, and Syntax builds all of them. LateContent yields expressions that are built
// when somebody looks at them (Late); Code reads one into steps for a machine with a stack,
// in a tenth of the memory. Parse and ParseConfig take the place of
// hclsyntax.ParseConfig. Format lays a text out as hclwrite.Format does. Update reads a text
// again of which a part changed, and only that part.
//
// The rule: what hclsyntax accepts is accepted, what it refuses is refused, and what is built
// equals what it builds, value for value and range for range. What is refused, hclsyntax
// parses again, so that messages are its own. FuzzSameAsHCL holds the package to this.
package hclnative
