package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Keys for services with the protocols of AWS.
const (
	AccessKey = "S3RVER" // one of the services accepts only its own key
	SecretKey = "S3RVER"
)

// Versity starts an S3 gateway to a directory, with conditional writes, and returns its
// address. bucket creates a bucket.
func Versity(t testing.TB) (url string, bucket func(name string)) {
	path := program(t, "versitygw", "go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
	dir := folder(t, nil)
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o777); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	t.Setenv("ROOT_ACCESS_KEY", AccessKey)
	t.Setenv("ROOT_SECRET_KEY", SecretKey)
	run(t, nil, syscall.SIGTERM, dial("tcp", local(port)), path, "--port", local(port), "--quiet", "posix", data)
	return "http://" + local(port), func(name string) {
		if err := os.Mkdir(filepath.Join(data, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
}

// S3rver starts an S3 service that ignores the conditions of writes.
func S3rver(t testing.TB) (url string, bucket func(name string)) {
	path := program(t, "s3rver", "npm install s3rver")
	dir := folder(t, nil)
	port := freePort(t)
	run(t, nil, syscall.SIGTERM, dial("tcp", local(port)), path, "--directory", dir, "--address", "127.0.0.1", "--port", fmt.Sprint(port), "--silent", "--configure-bucket", "states")
	return "http://" + local(port), func(string) {}
}

// DynamoDB starts a DynamoDB service, in memory.
func DynamoDB(t testing.TB) string {
	path := program(t, "dynalite", "npm install dynalite")
	port := freePort(t)
	run(t, nil, syscall.SIGTERM, dial("tcp", local(port)), path, "--host", "127.0.0.1", "--port", fmt.Sprint(port), "--createTableMs", "0", "--deleteTableMs", "0")
	return "http://" + local(port)
}
