// Package run runs commands on the units of an estate, sequentially or concurrently. Outputs pass
// from unit to unit in memory, including unknown ones.
//
// Main types: Runner, Options, Turn and Site. The scheduler decides when a unit runs. A Turn is
// one attempt to run one unit, and its Site is the environment in which the unit runs. The one
// rule: outside of its turn, a unit only keeps its outputs in memory, so that an estate of
// thousands of units does not need memory for all of them at once.
//
// # Two kinds of work
//
// `run --all plan` and `run --all apply` are operations of the run (operationWork). All other
// commands work in the directory of the unit as in any directory (commandWork). Both use the same
// preparation, module, state, hooks, errors block and workdir.Operation.Run. They differ in these
// points:
//
//   - An exclude block excludes the unit from an operation, or defers the unit if the block
//     depends on unknown outputs. A command ignores the block, since the user named the unit;
//     the caller checks Estate.Skipped before.
//   - Unknown outputs defer objects of an operation. For a command they are an error, because no
//     later step could finish the work.
//   - An operation creates the working directory only if anything except the loader reads it,
//     because many units do not need one. A command always creates it, unless it only reads.
//   - An operation always checks the inputs. A command checks them only if it evaluates with
//     them, which `output` and `state list` do not.
//   - Arguments of extra_arguments that are about one directory (-state, -out) or about the
//     output of the command (-json) are an error in an operation. A command accepts them.
//   - `init` of a module without configuration is an error in an operation, unless a directory
//     below the module has configuration. For a command it is not, since -from-module may add
//     the configuration.
//   - An operation moves objects between units before the plan. Otherwise two units could wait
//     for each other's state. A command moves them when the plan is approved.
//   - An operation copies the lock file to the unit's directory after init. A command copies it
//     in any case, since the command may be init.
package run
