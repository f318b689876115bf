package parallel

import "testing"

// A forgotten value is computed again, unless it is being computed.
func TestCacheForget(t *testing.T) {
	var c Cache[string, int]
	n := 0
	get := func() int { return c.Pure("k", func() int { n++; return n }) }
	c.Forget("k") // does nothing
	for range 2 {
		if get() != 1 {
			t.Fatal("the value is not kept")
		}
	}
	if c.Forget("k"); get() != 2 {
		t.Error("the value was not forgotten")
	}
	c.Pure("running", func() int { c.Forget("running"); return 3 })
	if v, ok := c.Get("running"); !ok || v != 3 {
		t.Error("a value that was being computed is lost")
	}
}
