// Package rpc talks to provider plugins: child processes that speak gRPC, by
// protocol 6, or 5 with names and schemas translated at the edge.
//
// Main types: Options and Launch, Client, SchemaCache. The one rule: whatever a
// plugin does, ends, hangs or answers nonsense, the caller gets a message that
// names the provider, what it was asked and what it wrote last, and never waits
// for a process that is gone.
//
// The way of a call: Client makes the request of protocol 6 and encodes values;
// conn gives it the name that it has in the plugin's protocol; the answer's
// values are checked and decoded by the schema. Protocol 5 has other numbers in
// the schema's attributes only, see package pb5.
package rpc
