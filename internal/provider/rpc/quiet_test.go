package rpc

import (
	"slices"
	"testing"
)

func TestQuiet(t *testing.T) {
	for _, c := range []struct {
		env   []string
		quiet bool
	}{
		{nil, true},
		{[]string{"HOME=/", "TF_LOG="}, true},
		{[]string{"TF_LOG=off"}, true},
		{[]string{"TF_LOG_PATH=/x", "TF_LOG_CORE=trace"}, true},
		{[]string{"TF_LOG=debug"}, false},
		{[]string{"TF_LOG_PROVIDER=trace"}, false},
		{[]string{"TF_LOG_PROVIDER_TIME=warn"}, false},
		{[]string{"TF_LOG_SDK_PROTO=trace"}, false},
	} {
		got := quiet(c.env)
		if has := slices.Contains(got, "TF_LOG_SDK=off"); has != c.quiet {
			t.Errorf("%v: got %v", c.env, got)
		}
		if !c.quiet && len(got) != len(c.env) {
			t.Errorf("%v: changed to %v", c.env, got)
		}
	}
}
