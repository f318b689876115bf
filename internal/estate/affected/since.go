package affected

import "fmt"

// Was returns the text that places of the head had in the base, by FILE:LINE.
func Was(causes []*Cause) map[string]string {
	out := map[string]string{}
	for _, c := range causes {
		if !c.Removed && c.Before != "" && c.Before != c.After {
			out[fmt.Sprintf("%s:%d", c.File, c.Line)] = c.Before
		}
	}
	return out
}
