package view

// Branch is how an entry of a drawn tree begins, and how the lines below it do.
func Branch(last bool) (mark, below string) {
	if last {
		return "└── ", "    "
	}
	return "├── ", "│   "
}
