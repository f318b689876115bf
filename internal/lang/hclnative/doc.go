// Package hclnative parses HCL's native syntax with the results of
// github.com/hashicorp/hcl/v2/hclsyntax, in a fraction of the time and memory. It depends
// only on that library.
//
// Main types: File, Body, Block and Attr. Scan checks the syntax of a file in one pass and
// returns a File. Names and labels are slices of the text, and positions are offsets; lines
// and columns are computed on demand. Expressions are not kept. A Body, which implements
// hcl.Body, builds the requested ones in the types of hclsyntax, and Syntax builds all of
// them. LateContent returns expressions that are built on use (Late). Code compiles an
// expression to steps for a stack machine. Parse and ParseConfig replace
// hclsyntax.ParseConfig, and Format replaces hclwrite.Format. Update parses only the changed
// part of a text.
//
// The one rule: hclnative accepts and refuses the same texts as hclsyntax and builds equal
// values with equal ranges. hclsyntax parses refused texts again, so that messages are its
// own. FuzzSameAsHCL tests this.
package hclnative
