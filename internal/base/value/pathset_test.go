package value_test

import (
	"testing"

	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/zclconf/go-cty/cty"
)

func TestPathSet(t *testing.T) {
	set := value.NewPathSet([]cty.Path{
		cty.GetAttrPath("a").IndexString("k"),
		cty.GetAttrPath("l").IndexInt(1).GetAttr("x"),
		cty.GetAttrPath("s").Index(cty.ObjectVal(map[string]cty.Value{"in": cty.True})).GetAttr("in"),
	})
	for _, c := range []struct {
		what string
		at   *value.PathSet
		want bool
	}{
		{"root", set, false},
		{"a", set.Attr("a"), false},
		{"a[k] by name", set.Attr("a").Named("k"), true},
		{"a.k is no attribute", set.Attr("a").Attr("k"), false},
		{"a as a key", set.Named("a").Named("k"), true},
		{"l[0]", set.Attr("l").At(0), false},
		{"l[1].x", set.Attr("l").At(1).Attr("x"), true},
		{"a set as a whole", set.Attr("s"), true},
		{"nothing", set.Attr("zz").At(3).Named("q").Attr("r"), false},
		{"whole", value.Whole(true), true},
		{"not whole", value.Whole(false), false},
	} {
		if got := c.at.Marked(); got != c.want {
			t.Errorf("%s: %t", c.what, got)
		}
	}
	if value.NewPathSet(nil).Any() || !set.Attr("a").Any() || set.Attr("b").Any() {
		t.Error("Any is wrong")
	}
}
