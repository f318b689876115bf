package estate

import (
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/credentials"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/estate/report"
	"github.com/terrace-iac/terrace/internal/estate/run"
	"github.com/terrace-iac/terrace/internal/estate/saved"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"github.com/terrace-iac/terrace/internal/estate/states"
)

// Aliases of types of the subpackages, for callers of an Estate.
type (
	Unit      = discovery.Unit
	Entry     = discovery.Entry
	StackPart = stacks.Part
	Worktrees = git.Worktrees
	Answers   = git.Answers

	Op         = run.Op
	RunOptions = run.Options
	Limits     = run.Limits
	Inputs     = run.Inputs
	Observer   = run.Observer
	Silent     = run.Silent
	Approver   = run.Approver
	Command    = run.Command
	Site       = run.Site
	Host       = run.Host
	Program    = run.Program
	FlagVars   = run.FlagVars
	Installing = run.Installing
	Queue      = schedule.Rules

	LockOptions = arguments.Lock
	LeftLock    = states.LeftLock
	SignIn      = credentials.Settings
	Role        = credentials.Role

	Result   = report.Result
	Status   = report.Status
	Deferral = report.Deferral

	Rounds = run.Rounds

	SavedPlan = saved.Plan
	SavedUnit = saved.UnitPlan
	SavedRun  = saved.About
	Saving    = saved.Saving
	Approval  = saved.Approval
	Reads     = run.Reads
)

// The operations of a run, and the results of units.
const (
	Plan     = run.Plan
	Apply    = run.Apply
	Validate = run.Validate
	Init     = run.Init

	Succeeded = report.Succeeded
	Failed    = report.Failed
	Excluded  = report.Excluded
	EarlyExit = report.EarlyExit
)
