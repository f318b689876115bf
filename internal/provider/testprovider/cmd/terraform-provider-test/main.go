// Command terraform-provider-test is the provider for tests as a program of its
// own. The variable TEST_PROTOCOL makes it speak protocol 5 instead of 6.
package main

import "github.com/terrace-iac/terrace/internal/provider/testprovider"

func main() { testprovider.Main(testprovider.Protocol()) }
