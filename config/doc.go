// Package config reads a directory of .tf, .tf.json, .tofu and .tofu.json files into a Module.
// It selects the files, parses them concurrently, merges override files, and decodes every
// block. It evaluates only constants, knows no providers, and does not access the network.
// Linters, editors and policy tools can therefore use it on any directory.
//
// Main types: Module, Resource, Call and Setting. The one rule: bodies are merged first and
// decoded once, so that the same rules apply to a merged block as to a written one.
//
// # Loading
//
//	m, ds := config.Load(dir, config.Options{})
//
// Load always returns a Module. With errors in ds it contains everything that could be decoded,
// which is what an editor needs. A program that acts on the module must stop if ds.HasErrors.
// LoadFiles does the same for text in memory, IsConfigDir reports whether a directory contains
// configuration, and Options.FS reads from any file system. Module.Files lists every file of
// the directory with its role: base, override n, shadowed by another file, a test, or ignored
// with the reason.
//
// # Content of a module
//
// Objects with a name are in maps by name. Moved, removed and import blocks are in lists.
// Everything that the language itself defines is decoded: the converted default of a variable,
// the references in depends_on, the conditions of a lifecycle block. An argument that must be
// evaluated is an expression in a Setting. Arguments of a provider, a backend or a child module
// are an hcl.Body, which the caller that has the schema decodes. It is an ordinary body for the
// tools of the HCL library (hcldec, dynblock, gohcl), whether it was merged or not.
//
// # Origin of values
//
// A position contains its file name, and Module.Set contains the text and the layer of every
// file. A Setting is an argument with the settings that it replaced, override by override down
// to the base file:
//
//	for s := m.Setting(r.Body, "ami"); s != nil; s = s.Replaced {
//		fmt.Println(s.Range, s.Layer)
//	}
//
// Messages about a merged argument have a note for each position in that chain. The printers of
// package diag, given Module.Set, add such notes to every message with a position in the
// module, including those of other tools.
//
// Module.Replaced returns the blocks or arguments that a name in a body replaced. Module.Origin
// returns the same for the arguments and blocks that the language itself defines:
//
//	o := m.Origin(r.At, r.Merged)
//	for _, b := range o.Blocks() {
//		fmt.Println(b.Type, b.Parts(), b.Replaced)
//	}
//
// # Writing
//
// Module.Print writes a merged module as configuration that could replace its files, in native
// or JSON syntax, optionally with the origin of each argument.
//
// # Concurrency and trust
//
// Load processes several files and blocks concurrently. Its result and messages do not depend
// on timing or on the order of directory entries. A Module is immutable after Load has returned
// it and safe for concurrent use. Files may have any content: what cannot be decoded results in
// a message with file, line and column.
//
// docs/override-rules.md lists the rules of override files, and testdata/rules contains one
// archive of examples for each.
package config
