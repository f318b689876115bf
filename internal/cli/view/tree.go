package view

// Branch returns the prefixes for an entry of a drawn tree, and for the lines below it.
func Branch(last bool) (mark, below string) {
	if last {
		return "└── ", "    "
	}
	return "├── ", "│   "
}
