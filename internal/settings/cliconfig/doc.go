// Package cliconfig reads the user's settings: the CLI configuration files
// (.tofurc, .terraformrc and the .tfrc files beside them) and the environment
// variables that say the same things.
//
// Main types: Config, Installation and Method. The one rule: everything is
// checked here, once, so that whoever uses a Config need not look for mistakes.
package cliconfig
