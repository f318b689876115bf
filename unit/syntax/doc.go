// Package syntax reads the text of unit files, stack files and values files: it knows
// which arguments and blocks they may have, and compiles their expressions, in the
// native and in the JSON form. It evaluates nothing, opens no file and can be used by
// an editor.
//
// The main types are File, Block, Attr and Expr, and BlockSpec, the schema that a file
// is read by; Language has those of all kinds of files. The one rule to obey: what was
// parsed never changes, and nothing here knows who uses it.
package syntax
