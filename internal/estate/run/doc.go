// Package run carries out commands on the units of an estate, one after the other or many at
// once. Outputs pass from unit to unit in memory, also those that are not known yet.
//
// Main types: Runner, Options, Turn and Site. The scheduler decides when a unit has its turn.
// A Turn is everything that happens to one unit then, and its Site is where it happens. The
// one rule: between two turns of a unit, only its state and its outputs are kept, so that
// thousands of units do not need memory at the same time.
//
// # Two kinds of work
//
// `run --all plan` and `run --all apply` are operations of the run (operationWork). All other
// commands work in the directory of the unit as in any directory (commandWork). Both use the
// same preparation, module, state, hooks, errors block and workdir.Operation.Run. They differ
// in these points:
//
//   - An exclude block leaves the unit out of an operation, or defers it if outputs decide. A
//     command in the directory was asked for by name, and asks Skipped before its turn.
//   - Outputs that are not known defer the objects of an operation. For a command they are an
//     error: nothing could finish the work later.
//   - An operation makes the working directory only if something except the loader reads it,
//     because thousands of units may not need one. A command always has it.
//   - An operation always checks the inputs. A command checks them only if it computes with
//     them, which `output` and `state list` do not.
//   - Arguments of extra_arguments that are about one directory (-state, -out) or about the
//     output of the command (-json) are an error in an operation. The parser of a command takes
//     them.
//   - `init` of a module without configuration is an error in an operation, unless there is
//     configuration below it. For a command, -from-module may bring it.
//   - An operation makes the moves between units before the plan: no unit may wait for the
//     state of another one that waits for its own. A command makes them when the plan is
//     approved.
//   - The lock file is copied to the unit by init, and after a command that may be init.
package run
