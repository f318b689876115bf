package syntax

// A Rule determines the result of merging two files for one block or argument. The lower
// file is imported or included by the upper one.
type Rule uint8

const (
	Replaces Rule = iota // the upper one replaces the lower one

	// Rules of blocks.
	ByLabel   // a block replaces the one with its label; others are kept
	Merges    // blocks (of one label) are merged argument by argument, by the arguments' rules
	Redefines // like Replaces, but arguments with a rule of their own are merged

	// Rules of arguments.
	Fills          // Replaces, unless the upper value is null, an empty text or an empty list
	FillsNumber    // Fills, and the lower number counts if the upper one is 0
	ByKey          // objects are merged key by key, and the upper value of a key replaces the lower one
	Deep           // objects are merged recursively, lists are joined; values of different kinds are an error
	DeepOrReplaces // like Deep, but of different kinds the upper value counts
	DeepObjects    // like Deep for two objects; else the upper value counts
	Appends        // the lower list, then the upper one
	Prepends       // the upper list, then the lower one
	PrependsNew    // like Prepends, without elements that occur twice
	AppendsNew     // like Appends, without elements that occur twice
	// PathsLeft is AppendsNew without the lower paths of dependencies that the upper
	// file defines again.
	PathsLeft
)

// Merging is the rule for each way in which a file takes in another.
type Merging struct {
	Import      Rule // an import block with merge = true
	DeepImport  Rule // an import block with deep_merge = true
	Include     Rule // an include block with merge_strategy = "shallow"
	DeepInclude Rule // an include block with merge_strategy = "deep"
}

// A Way is a way of merging: a column of Merging.
type Way uint8

const (
	Import Way = iota
	DeepImport
	Include
	DeepInclude
)

// By returns the rule for a way.
func (m Merging) By(w Way) Rule {
	return [...]Rule{m.Import, m.DeepImport, m.Include, m.DeepInclude}[w]
}

// always returns the same rule for all ways.
func always(r Rule) Merging { return Merging{r, r, r, r} }

// scalar is the rule of most arguments. A file's value replaces an imported one. It
// replaces an included one unless it is empty.
var scalar = Merging{Include: Fills, DeepInclude: Fills}
