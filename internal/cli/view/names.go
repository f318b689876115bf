package view

import (
	"fmt"
	"strings"
)

// ShortList names the first of many.
func ShortList(names []string) string {
	if len(names) <= MostNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:MostNames], ", "), len(names)-MostNames)
}

// MostNames is how many names a list has at most.
const MostNames = 10
