package functions

import (
	"fmt"
	"path/filepath"

	"github.com/terrace-iac/terrace/unit/syntax"
	"github.com/zclconf/go-cty/cty"
)

// lookupPath returns the functions about directories and relative paths, or nil.
func lookupPath(name string) *definition {
	s := cty.String
	switch name {
	case "find_in_parent_folders":
		return &definition{max: 2, ret: s, do: func(k *call, args []string) (cty.Value, error) { return k.find(k.Dir(), args) }}
	case "find_in_parent_folders_from_importing_config":
		return &definition{min: 1, max: 2, ret: s, leaf: true, do: func(k *call, args []string) (cty.Value, error) {
			unit, _ := k.Leaf()
			return k.find(unit, args)
		}}
	case "path_relative_to_include":
		return &definition{max: 1, ret: s, do: func(k *call, args []string) (cty.Value, error) { return k.includePath(args, false) }}
	case "path_relative_from_include":
		return &definition{max: 1, ret: s, do: func(k *call, args []string) (cty.Value, error) { return k.includePath(args, true) }}
	case "path_relative_to_import":
		return &definition{max: 1, ret: s, do: func(k *call, args []string) (cty.Value, error) { return k.importPath(args, false) }}
	case "path_relative_from_import":
		return &definition{max: 1, ret: s, do: func(k *call, args []string) (cty.Value, error) { return k.importPath(args, true) }}
	case "get_parent_terragrunt_dir":
		return &definition{max: 1, ret: s, do: func(k *call, args []string) (cty.Value, error) {
			dir, err := k.Included(args...)
			if err != nil || dir == "" {
				dir = k.Dir()
			}
			return cty.StringVal(dir), err
		}}
	case "get_terragrunt_dir":
		return &definition{ret: s, do: text(func(k *call) (string, error) { return k.Dir(), nil })}
	case "get_original_terragrunt_dir":
		return &definition{ret: s, leaf: true, do: text(func(k *call) (string, error) {
			unit, _ := k.Leaf()
			return unit, nil
		})}
	case "get_working_dir":
		return &definition{ret: s, leaf: true, do: text(func(k *call) (string, error) { return k.WorkingDir() })}
	case "get_repo_root":
		return &definition{ret: s, do: text(func(k *call) (string, error) {
			root, err := k.Files.Repository(k.Dir())
			if err != nil {
				return "", err
			}
			return k.Files.Identity(root), nil
		})}
	case "get_path_from_repo_root":
		return &definition{ret: s, do: text(func(k *call) (string, error) {
			root, err := k.Files.Repository(k.Dir())
			return pathBetween(root, k.Dir(), err)
		})}
	case "get_path_to_repo_root":
		return &definition{ret: s, do: text(func(k *call) (string, error) {
			root, err := k.Files.Repository(k.Dir())
			return pathBetween(k.Dir(), root, err)
		})}
	case "relpath":
		return &definition{min: 2, max: 2, ret: s, do: func(k *call, args []string) (cty.Value, error) {
			p, err := pathBetween(AbsPath(k.Dir(), args[0]), AbsPath(k.Dir(), args[1]), nil)
			return cty.StringVal(p), err
		}}
	}
	return nil
}

func pathBetween(from, to string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	p, err := filepath.Rel(from, to)
	if err != nil {
		return "", fmt.Errorf("there is no path from %s to %s", from, to)
	}
	return filepath.ToSlash(p), nil
}

// find searches for a file or directory in the parent directories of dir.
func (k *call) find(dir string, args []string) (cty.Value, error) {
	name := k.ConfigName
	names := []string{name}
	switch {
	case len(args) > 0:
		name = args[0]
		names[0] = name
	case name == syntax.DefaultName: // in one directory, JSON has precedence, as in Terragrunt
		names = []string{syntax.DefaultJSONName, name}
	}
	nearest := ""
	for _, n := range names {
		if p := k.Files.FindUp(filepath.Dir(dir), n); len(filepath.Dir(p)) > len(filepath.Dir(nearest)) || nearest == "" {
			nearest = p
		}
	}
	if nearest != "" {
		return cty.StringVal(nearest), nil
	}
	if len(args) > 1 {
		return cty.StringVal(args[1]), nil
	}
	return cty.NilVal, fmt.Errorf("there is no %s in any directory above %s", name, dir)
}

func (k *call) includePath(label []string, from bool) (cty.Value, error) {
	dir, err := k.Included(label...)
	if err != nil || dir == "" {
		return cty.StringVal("."), err
	}
	a, b := dir, k.Dir()
	if from {
		a, b = b, a
	}
	p, err := pathBetween(a, b, nil)
	return cty.StringVal(p), err
}

// importPath returns the relative path between an import's directory and the unit's (rule
// 17).
func (k *call) importPath(name []string, from bool) (cty.Value, error) {
	a, b, err := k.Imported(name...)
	if err != nil || a == "" {
		return cty.StringVal("."), err
	}
	if from {
		a, b = b, a
	}
	p, err := pathBetween(a, b, nil)
	return cty.StringVal(p), err
}
