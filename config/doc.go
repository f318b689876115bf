// Package config reads a folder of .tf, .tf.json, .tofu and .tofu.json files
// into a Module: it decides which files count, parses them in parallel, merges
// override files, and decodes every block. It evaluates nothing but constants,
// knows no provider, and touches no network, so that linters, editors and
// policy tools can use it on any folder.
//
// Main types: Module, Resource, Call and Setting. The one rule: bodies are
// merged first and decoded once, so that a merged block is held to the same
// rules as a written one.
//
// # Loading
//
//	m, ds := config.Load(dir, config.Options{})
//
// Load always returns a Module. With errors in ds it holds what could be
// understood, which is what an editor wants; a program that acts on the module
// stops if ds.HasErrors. LoadFiles does the same for text in memory, IsConfigDir
// reports whether a folder has configuration to load, and Options.FS reads from anywhere.
// Module.Files lists every file of the folder with its role: base, override n,
// shadowed by another, a test, or ignored and why.
//
// # What a module holds
//
// Maps by name for what has a name, lists for moved, removed and import blocks.
// What the language itself defines is decoded: the conversion of a variable's
// default, the references in depends_on, the conditions of a lifecycle block.
// What needs values is left as an expression, in a Setting. What belongs to a
// provider, a backend or a child module is left as an hcl.Body, to be decoded by
// whoever has the schema; it is an ordinary body, to which the usual tools of
// the HCL library apply (hcldec, dynblock, gohcl), whether or not it was merged.
//
// # Where things come from
//
// A position names its file, and Module.Set knows the text and the layer of
// every file. A Setting is an argument with what it replaced below it, override
// over override down to the base file:
//
//	for s := m.Setting(r.Body, "ami"); s != nil; s = s.Under {
//		fmt.Println(s.Range, s.Layer)
//	}
//
// Messages about a merged argument have a note for each place of that chain. The
// printers of package diag add such notes, given Module.Set, to any message about
// a place in the module, so that a tool's own messages have them, too.
//
// Module.Replaced tells which blocks or arguments a name of a body took the place
// of, and Module.Origin the same for what the language itself defines of a block:
//
//	o := m.Origin(r.At, r.Merged)
//	for _, b := range o.Blocks() {
//		fmt.Println(b.Type, b.Parts(), b.Replaced)
//	}
//
// # Writing
//
// Module.Print writes a merged module as configuration that could replace its
// files, in native or JSON syntax, with the origin of each argument if asked.
//
// # Concurrency and trust
//
// Load works on several files and blocks at once; its result and messages do
// not depend on timing or on the order in which a folder is listed. A Module is
// never changed after Load returned it and may be read concurrently. Files may
// hold anything: what cannot be understood is a message with file, line and
// column.
//
// The rules of override files are listed in docs/override-rules.md, one archive
// of examples for each in testdata/rules.
package config
