// Package cliconfig reads the user's settings: the CLI configuration files (.tofurc, .terraformrc
// and the .tfrc files in the configuration directory) and the corresponding environment
// variables.
//
// Main types: Config, Installation and Method. The one rule: all settings are checked here, once,
// so that users of a Config need not check them.
package cliconfig
