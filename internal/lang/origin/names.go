package origin

import "github.com/terrace-iac/terrace/explanation"

// Aliases of the types in package explanation.
type (
	Explanation = explanation.Explanation
	Kind        = explanation.Kind
	Step        = explanation.Step
	SourceLine  = explanation.SourceLine
	From        = explanation.From
	Part        = explanation.Part
	InputSource = explanation.InputSource
	Scope       = explanation.Scope
	Way         = explanation.Way
	ExprPart    = explanation.ExprPart
	Stop        = explanation.Stop
)

const (
	Argument       = explanation.Argument
	Block          = explanation.Block
	Dynamic        = explanation.Dynamic
	Local          = explanation.Local
	Output         = explanation.Output
	ModuleInput    = explanation.ModuleInput
	Default        = explanation.Default
	VarFile        = explanation.VarFile
	Environment    = explanation.Environment
	Flag           = explanation.Flag
	Prompt         = explanation.Prompt
	NotGiven       = explanation.NotGiven
	Condition      = explanation.Condition
	Choice         = explanation.Choice
	Item           = explanation.Item
	Repetition     = explanation.Repetition
	Computed       = explanation.Computed
	Provider       = explanation.Provider
	Context        = explanation.Context
	Unknown        = explanation.Unknown
	Failed         = explanation.Failed
	Cycle          = explanation.Cycle
	NotSet         = explanation.NotSet
	Merged         = explanation.Merged
	Input          = explanation.Input
	Import         = explanation.Import
	Include        = explanation.Include
	Values         = explanation.Values
	Feature        = explanation.Feature
	Dependency     = explanation.Dependency
	DataFile       = explanation.DataFile
	MockOutputs    = explanation.MockOutputs
	Generate       = explanation.Generate
	ExtraArguments = explanation.ExtraArguments
)
