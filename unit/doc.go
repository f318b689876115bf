// Package unit reads unit files (terragrunt.hcl and their like): it follows
// imports, includes and dependencies, merges what they give, and answers for
// each part of a unit what it is worth and where it comes from. It knows nothing
// of plans and states; outputs of other units come through the Env.
//
// Main types: Loader, which shares files between the units of an estate, and
// Unit. The one rule: nothing is computed before it is asked for, so that asking
// for one part of a unit never fails because of another.
package unit
