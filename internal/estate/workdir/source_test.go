package workdir

import "testing"

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
