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
//   - An exclude block leaves the unit out of an operation, or defers it if outputs decide. A
//     command in the directory was asked for by name, and asks Skipped before its turn.
//   - Unknown outputs defer objects of an operation. For a command they are an error, because no
//     later step could finish the work.
//   - An operation makes the working directory only if something except the loader reads it,
//     because thousands of units may not need one. A command always has it.
//   - An operation always checks the inputs. A command checks them only if it evaluates with
//     them, which `output` and `state list` do not.
//   - Arguments of extra_arguments that are about one directory (-state, -out) or about the
//     output of the command (-json) are an error in an operation. The parser of a command takes
//     them.
//   - `init` of a module without configuration is an error in an operation, unless there is
//     configuration below it. For a command it is not, since -from-module may add the
//     configuration.
//   - An operation makes the moves between units before the plan: no unit may wait for the state
//     of another one that waits for its own. A command makes them when the plan is approved.
//   - An operation copies the lock file to the unit's directory after init. A command copies it
//     in any case, since the command may be init.
package run
