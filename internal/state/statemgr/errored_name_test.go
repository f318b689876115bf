package statemgr

import "testing"

// The names of saved states are recognized, and similar names of users are not.
func TestIsErrored(t *testing.T) {
	for name, want := range map[string]bool{
		"errored.tfstate": true, "errored.1.tfstate": true, "errored.12.tfstate": true,
		"errored.tfstate.pushed": false, "errored.old.tfstate": false, "errored..tfstate": false, "replaced.tfstate": false, "errored": false,
	} {
		if IsErrored(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
}
