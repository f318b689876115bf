package kinds

import (
	"slices"
	"testing"
)

func TestNames(t *testing.T) {
	all := names()
	if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) || !slices.Contains(all, Default) {
		t.Errorf("the kinds are %v", all)
	}
	inFolder := 0
	for _, k := range All() {
		if err := k.Schema.Validate(); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		for _, name := range k.Reached {
			if k.Schema.Attributes[name] == nil {
				t.Errorf("%s is reached at %q, which is none of its arguments", k.Name, name)
			}
		}
		if k.InFolder != nil {
			inFolder++
		}
	}
	if inFolder != 1 {
		t.Errorf("%d kinds are taken where nothing names one", inFolder)
	}
	for name, code := range map[string]string{"artifactory": "backend/dropped", "etcd": "backend/dropped", "manta": "backend/dropped", "swift": "backend/dropped", "azure": "backend/dropped", "nope": "backend/unknown"} {
		if slices.Contains(all, name) {
			continue
		}
		if ds := Unknown(name); ds[0].Code != code {
			t.Errorf("%s: %s", name, ds[0].Code)
		}
	}
}
