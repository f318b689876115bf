// Package rpc is the client of provider plugins: child processes with a gRPC server of
// protocol 6 or 5. Names and schemas of protocol 5 are converted.
//
// Main types: Options and Launch, Client, SchemaCache. The one rule: if a plugin ends,
// hangs or returns invalid data, the caller gets a message with the provider, the call and
// the plugin's last output. The caller never waits for a process that has ended.
//
// The path of a call: Client builds the request of protocol 6 and encodes the values. conn
// renames the method for the plugin's protocol. The values of the response are checked and
// decoded by the schema. Protocol 5 differs only in the field numbers of schema attributes,
// see package pb5.
package rpc
