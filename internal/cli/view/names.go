package view

import (
	"fmt"
	"strconv"
	"strings"
)

// ShortList returns a list of the first names, and the number of the others.
func ShortList(names []string) string {
	if len(names) <= MostNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:MostNames], ", "), len(names)-MostNames)
}

// MostNames is the largest number of names in a list.
const MostNames = 10

// Numbered returns a number with its noun, such as "1 unit" or "2 units".
func Numbered(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}
