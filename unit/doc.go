// Package unit reads and evaluates unit files: terragrunt.hcl, its JSON form, environment
// files with module blocks, stack files, and the files that these import, include or read.
// It has no notion of plans, and starts only the programs that the files call.
//
// The main types are Loader, which contains the data that the units of an estate share, and Unit,
// which computes the parts of one unit. The one rule to obey: values are computed on demand
// and shared files once, so code in this package must not change the process or depend on
// the order of calls.
//
// # Use
//
//	l := unit.NewLoader(env)              // effects are passed in
//	t := l.Task(ctx)                      // one for each goroutine
//	units, ds := l.Load(t, "live/vpc")    // several for an environment file
//	edges, ds := units[0].Dependencies(t, wanted)
//	in, ds := units[0].Inputs(t, wanted)  // fetches the outputs that they need
//
// An estate runs in this order:
//
//  1. Find the unit files with IsUnitFile and Load them in parallel. Read stack files with
//     Stack, and generate their Items first.
//  2. Call Exclude and Dependencies of each unit. Neither fetches outputs. An Edge contains
//     the ID of the other unit.
//  3. Run the units in that order. Terraform, RemoteState, Generate, Inputs, Errors and
//     Scalars compute what a run needs. They fetch the outputs of a dependency with
//     Env.Outputs, once per target and only if an expression in use reads them. Values that
//     depend on an unknown output are unknown.
//
// A loader fetches the outputs of a target once. To fetch them again, for example to apply
// after planning, use Loader.WithOutputs: the new loader shares the files and everything
// that needs no outputs. Each task is an attempt: a task that begins later retries outputs,
// programs and credentials that failed. A canceled task leaves no results behind.
//
// Every function returns its result with messages. A message about a shared file is the
// same pointer for all units that use the file. Callers show each pointer once.
//
// Render, RenderMetadata and Explain show a unit. Check computes all of it and reports
// every error. Setting and Step contain the file, line and layer that a value comes from.
// Package unit/migrate rewrites include blocks to imports.
//
// Sources of the rules: the import specification (rules are cited by their numbers), and
// the reference of Terragrunt's unit language, version 1.1.3.
package unit
