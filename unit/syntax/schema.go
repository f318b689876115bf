package syntax

import (
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// Reserved file names.
const (
	DefaultName          = "terragrunt.hcl"
	DefaultJSONName      = "terragrunt.hcl.json"
	StackName            = "terragrunt.stack.hcl"
	ValuesName           = "terragrunt.values.hcl"
	AutoIncludeName      = "terragrunt.autoinclude.hcl"
	StackAutoIncludeName = "terragrunt.autoinclude.stack.hcl"
)

// An ArgSpec describes one argument of a block.
type ArgSpec struct {
	Name     string
	Ty       cty.Type // cty.DynamicPseudoType for any type
	Required bool
	Def      cty.Value // the value in rendered objects if nothing sets the argument; NilVal means null
	Path     PathKind
	Private  bool // passes values on to a module, a backend or a process, so messages never show its text

	Merge Merging
	Keyed bool // an object that is merged key by key, each key by the rule

	Shown    string  // the name in rendered objects; "" means Name
	Hidden   bool    // rendered objects contain it only if it is set
	IfSet    Showing // whether a rendered unit contains an argument at its top that is not set
	HCL      Writing
	ByModule bool // module blocks take its place in an environment file
}

// A BlockSpec is one row of the table of blocks (table.go): everything that the
// reader, merging, rendering and explanations know about one type of block. Only
// the function that decodes the block's values is elsewhere, in package unit.
type BlockSpec struct {
	Name   string
	Label  labelling
	Args   []ArgSpec // in the order in which rendered HCL has them
	Blocks []*BlockSpec
	many   bool // a file can contain several blocks of one label, or several without label
	asAttr bool // an attribute with an object is accepted in place of the block
	Open   bool // every argument is accepted
	raw    bool // the body is kept unread

	Merge Merging
	// Stays means that the block has no effect on files that merge its own file.
	Stays bool
	// Apart means that the block is not a part of the configuration that is merged:
	// package unit reads it by itself (locals, import and include blocks).
	Apart bool
	// ByModule means that module blocks take its place in an environment file.
	ByModule bool
	// Private means that messages show the text of no argument but the public ones.
	Private bool
	// OnDemand means that a run uses the values of the block only where an expression
	// or the order of units reads them. Outputs that only such a block reads are not in use.
	OnDemand bool

	Showing  Showing
	Ordered  bool     // rendered as a list of objects that contain their labels
	Unnamed  bool     // rendered objects do not contain the label
	Sorted   bool     // rendered HCL has the blocks in alphabetical order of their labels
	Leads    bool     // the block leads to another unit; HCL and JSON omit one that leads to its own unit
	List     string   // the only list of the block; each element has metadata in rendered output
	Computed []Member // parts of the rendered object in addition to the arguments
}

// A Member is a computed part of a rendered block.
type Member struct {
	Name        string
	ImportsOnly bool // only importing files see it
}

// A PathKind determines whether an argument is a path, relative to the directory of its file,
// and so rebased by imports.
type PathKind uint8

const (
	NoPath     PathKind = iota
	FilePath            // a path, or a list of paths
	SourcePath          // the source of a module, which is a path unless it is an address
)

// Showing determines whether a rendered unit contains a block or argument.
type Showing uint8

const (
	ShownAlways  Showing = iota // if it is not set as null, or empty
	ShownIfSet                  // if it is not set, only for importing files, as null
	ShownImports                // only for importing files, if it is set
	NeverShown
	MetaIfSet // ShownAlways, but without metadata if it is not set
)

// Writing determines when rendered HCL contains an argument of a block.
type Writing uint8

const (
	IfGiven     Writing = iota // if it is set to something else than null
	IfSet                      // if it is set, also to null
	WriteAlways                // also if it is not set
)

type labelling uint8

const (
	NoLabel labelling = iota
	OneLabel
	maybeLabel
)

// Arg returns the argument of that name, or nil.
func (s *BlockSpec) Arg(name string) *ArgSpec {
	for i := range s.Args {
		if s.Args[i].Name == name {
			return &s.Args[i]
		}
	}
	return nil
}

// Block returns the nested block of that name, or nil.
func (s *BlockSpec) Block(name string) *BlockSpec {
	for _, b := range s.Blocks {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// HasPaths reports whether an argument of the block is a path.
func (s *BlockSpec) HasPaths() bool {
	return slices.ContainsFunc(s.Args, func(a ArgSpec) bool { return a.Path != NoPath })
}

// ShownName returns the argument's name in rendered objects.
func (a *ArgSpec) ShownName() string {
	if a.Shown != "" {
		return a.Shown
	}
	return a.Name
}

// ShownArg returns the argument that has that name, in files or in rendered objects, or nil.
func (s *BlockSpec) ShownArg(name string) *ArgSpec {
	for i := range s.Args {
		if s.Args[i].Name == name || s.Args[i].Shown == name {
			return &s.Args[i]
		}
	}
	return nil
}

// Member returns the computed part of that name, or nil.
func (s *BlockSpec) Member(name string) *Member {
	for i := range s.Computed {
		if s.Computed[i].Name == name {
			return &s.Computed[i]
		}
	}
	return nil
}
