package workcopy

import (
	"context"
	"testing"

	"github.com/terrace-iac/terrace/diag"
)

func TestSourceBelow(t *testing.T) {
	for _, tt := range [][3]string{
		{"/m", "../mods//x/y", "/m//x/y"},
		{"/m", "../mods/x/y", "/m//y"},
		{"/m", "../mods/one/", "/m//one"},
		{"/m", "git::https://h/org/mods.git//x/y?ref=v1", "/m//x/y"},
		{"/m", "git::https://h/org/one.git?ref=v1", "/m//one"},
		{"/m", "github.com/org/one", "/m//one"},
		{"/m", "tfr:///org/one/aws?version=1.0.0", "/m//aws"},
		{"/m", "tfr:///org/one/aws//x?version=1.0.0", "/m//x"},
		{"git::https://h/all.git?ref=main", "../mods//x", "git::https://h/all.git//x?ref=main"},
		{"/m//fixed", "../mods//x", "/m//fixed"},
		{"/m", "..", "/m"},
	} {
		if got := sourceBelow(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%s below %s is %s, want %s", tt[1], tt[0], got, tt[2])
		}
	}
}

// After a failure, the next caller fetches a package again. After a success, it is not fetched
// again.
func TestFetcherForgetsFailures(t *testing.T) {
	calls := 0
	f := NewFetcher(func(context.Context, string) (string, diag.List) {
		if calls++; calls == 1 {
			return "", diag.Errorf("", nil, "Down", "D.")
		}
		return "/package", nil
	})
	if _, ds := f.Get(t.Context(), "a"); !ds.HasErrors() {
		t.Error("no error")
	}
	for range 2 {
		if dir, ds := f.Get(t.Context(), "a"); dir != "/package" || ds != nil {
			t.Error(dir, ds)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
}
