// Package unit reads and evaluates unit files: terragrunt.hcl, its JSON form,
// environment files with module blocks, stack files, and what these import,
// include or read. It knows nothing of plans and runs nothing but what the
// files ask for.
//
// The main types are Loader, which holds what is shared by an estate, and Unit,
// one unit ready to be asked for its parts. The one rule to obey: values are
// computed on demand and files once for all, so nothing here may change the
// process or depend on who asks first.
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
//  1. Find the unit files (IsUnitFile tells which *.hcl files count) and Load
//     them, in parallel. A stack file is read by Stack; what its Items say is to
//     be generated before.
//  2. Ask each unit for Exclude and Dependencies. Neither fetches outputs. An
//     Edge names the other unit by its ID.
//  3. Run the units in that order. Terraform, RemoteState, Generate, Inputs,
//     Errors and Scalars compute what a run needs, with the outputs of
//     dependencies, which come from Env.Outputs: once for each target, and only
//     when something in use reaches them. An unknown value in what Outputs
//     returns stays unknown in all that is made of it.
//
// Outputs are asked for once in the life of a loader. Who wants to ask anew, to
// apply after planning for instance, takes the Loader that WithOutputs gives: it shares
// the files and all that needs no outputs. Each task is an attempt: outputs that could not be
// read, and programs and credentials that failed, are asked for again by tasks that begin
// later, and a canceled task leaves nothing to others.
//
// Every function returns its result with messages. A message about a shared file
// is the same pointer for all units that meet it; callers show each pointer once.
//
// Render, RenderMetadata and Explain show a unit; Check computes all of it and
// reports everything that is wrong; Setting and Step say which file, line and
// layer gave a part. Package unit/migrate rewrites include blocks to imports.
//
// Sources of the rules: the import specification (rules are cited by their
// numbers), and the reference of Terragrunt's unit language, version 1.1.3.
package unit
