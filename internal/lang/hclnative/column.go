package hclnative

import "unicode/utf8"

// CodePoints returns a column in code points, given the column in a range, which counts the characters that a
// reader sees: one may consist of several code points. line begins with the text of the line. Columns begin
// at 1. A column after the end of the line counts each further character as one code point.
func CodePoints(line []byte, column int) int {
	out := 1
	for n := 1; n < column; n++ {
		size := nextCluster(line)
		if size == 0 || line[0] == '\n' {
			return out + column - n
		}
		out += utf8.RuneCount(line[:size])
		line = line[size:]
	}
	return out
}
