package worker

import "testing"

func has(a *asked) bool {
	select {
	case <-a.here:
		return true
	default:
		return false
	}
}

// Requests are granted in their order. A request larger than the total waits for the total.
// Without a limit, requests are granted at once.
func TestRoom(t *testing.T) {
	r := newRoom(1000)
	first, big, small := r.take(600), r.take(2000), r.take(100)
	if !has(first) || has(big) || has(small) {
		t.Fatalf("at first: %t %t %t", has(first), has(big), has(small))
	}
	r.give(600)
	if !has(big) || has(small) {
		t.Fatalf("the large one goes before the small one: %t %t", has(big), has(small))
	}
	r.give(2000)
	if !has(small) || r.free != 900 {
		t.Fatalf("the small one has its room: %t, %d free", has(small), r.free)
	}
	waiting, behind := r.take(1000), r.take(200)
	if r.leave(waiting) {
		t.Error("what waits has nothing to give back")
	}
	if !has(behind) {
		t.Error("what waited behind one that left still waits")
	}
	if !r.leave(behind) {
		t.Error("what was granted is to be given back")
	}
	if none := newRoom(0); !has(none.take(5000)) {
		t.Error("somebody waits though nobody counts")
	}
}
