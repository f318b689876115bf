// Command terraform-provider-test is the test provider as a separate program. If the
// variable TEST_PROTOCOL is 5, it uses protocol 5 instead of 6.
package main

import "github.com/terrace-iac/terrace/internal/provider/testprovider"

func main() { testprovider.Main(testprovider.Protocol()) }
