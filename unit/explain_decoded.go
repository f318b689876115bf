package unit

import (
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/lang/origin"
	"github.com/zclconf/go-cty/cty"

	"github.com/terrace-iac/terrace/internal/unit/functions"
)

// dataFiles returns the reader of data files for the unit's expressions.
func (s scope) dataFiles() origin.DataFiles {
	return origin.DataFiles{
		Eval: func(x hcl.Expression) (cty.Value, diag.List) { return s.Eval(x, nil) },
		Find: func(function, name string) (file string, text []byte, ok bool) {
			switch function {
			case "file":
				file = functions.AbsPath(filepath.Dir(s.e.file().Path), name)
			case "read_tfvars_file":
				file = functions.AbsPath(s.e.dir, name)
			default:
				return "", nil, false
			}
			text, err := s.x.u.l.env.readFile(file)
			return file, text, err == nil
		},
		Name: s.x.relative,
	}
}
