package rpc

// The bindings are generated with protoc 3.21 or later, protoc-gen-go v1.36 and
// protoc-gen-go-grpc v1.6.2.
//
//go:generate protoc -I . --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative pb6/terrace_provider6.proto
//go:generate protoc -I . --go_out=. --go_opt=paths=source_relative pb5/terrace_provider5.proto
