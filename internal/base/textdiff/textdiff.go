// Package textdiff compares two texts in the unified format.
//
// Main function: Unified. The one rule: patch can read the output, and it equals that of
// OpenTofu and Terragrunt for the same change: the smallest number of changed lines.
// Package diff of go-internal matches only unique lines, so it replaces a closing brace
// between two changes.
package textdiff

import (
	"bytes"
	"fmt"
	"strings"
)

// Unified returns the difference of two texts with three lines of context, or "" if they
// are equal. The header contains the names.
func Unified(oldName, newName string, before, after []byte) string {
	if bytes.Equal(before, after) {
		return ""
	}
	a, b := lines(before), lines(after)
	ops := compare(a, b)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", oldName, newName)
	const around = 3
	for i := 0; i < len(ops); {
		if ops[i].kind == ' ' {
			i++
			continue
		}
		from := max(0, i-around)
		to, quiet := i, 0
		for to < len(ops) && quiet <= 2*around {
			if ops[to].kind == ' ' {
				quiet++
			} else {
				quiet = 0
			}
			to++
		}
		to -= max(0, quiet-around)
		hunk(&out, ops, from, to)
		i = to
	}
	return out.String()
}

func hunk(out *strings.Builder, ops []op, from, to int) {
	a, b, na, nb := 1, 1, 0, 0
	for _, o := range ops[:from] {
		if o.kind != '+' {
			a++
		}
		if o.kind != '-' {
			b++
		}
	}
	for _, o := range ops[from:to] {
		if o.kind != '+' {
			na++
		}
		if o.kind != '-' {
			nb++
		}
	}
	if na == 0 {
		a--
	}
	if nb == 0 {
		b--
	}
	fmt.Fprintf(out, "@@ -%d,%d +%d,%d @@\n", a, na, b, nb)
	for _, o := range ops[from:to] {
		out.WriteByte(o.kind)
		out.WriteString(o.line)
		if !strings.HasSuffix(o.line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

func lines(text []byte) []string {
	all := strings.SplitAfter(string(text), "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

type op struct {
	kind byte // ' ', '-' or '+'
	line string
}

// compare finds a longest common subsequence of lines, after removing equal lines at both
// ends.
func compare(a, b []string) []op {
	var head, tail []op
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head = append(head, op{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append(tail, op{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	ops := append(head, between(a, b)...)
	for i := len(tail) - 1; i >= 0; i-- {
		ops = append(ops, tail[i])
	}
	return ops
}

// maxTable is the maximum size of the table of common subsequences. Larger ranges are shown
// as replaced.
const maxTable = 4 << 20

func between(a, b []string) []op {
	var ops []op
	if (len(a)+1)*(len(b)+1) > maxTable {
		for _, l := range a {
			ops = append(ops, op{'-', l})
		}
		for _, l := range b {
			ops = append(ops, op{'+', l})
		}
		return ops
	}
	w := len(b) + 1
	common := make([]int32, (len(a)+1)*w)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i*w+j] = common[(i+1)*w+j+1] + 1
			} else {
				common[i*w+j] = max(common[(i+1)*w+j], common[i*w+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			ops = append(ops, op{' ', a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[(i+1)*w+j] >= common[i*w+j+1]:
			ops = append(ops, op{'-', a[i]})
			i++
		default:
			ops = append(ops, op{'+', b[j]})
			j++
		}
	}
	return ops
}
