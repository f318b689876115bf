// Package config reads a folder of .tf, .tf.json, .tofu and .tofu.json files
// into a Module: it decides which files count, parses them, merges override
// files and decodes every block. It evaluates nothing and touches no network.
//
// Main types: Module, Resource, Call and Setting. The one rule: bodies are
// merged first and decoded once, so that a merged block is held to the same
// rules as a written one.
package config
