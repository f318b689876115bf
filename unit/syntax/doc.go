// Package syntax parses unit files, stack files and values files, in the native and in the
// JSON form. It contains the schema of their arguments and blocks, and compiles their
// expressions. It evaluates nothing and opens no file, so an editor can use it.
//
// The main types are File, Block, Attr and Expr, and BlockSpec, the schema of a file.
// Language returns the schemas of all kinds of files. The one rule to obey: a parsed file
// is immutable and does not depend on its users.
package syntax
