package savedplan

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/workdir"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate"
)

// Files of --out-dir and --json-out-dir. Each is in a directory with the name of the unit.
const (
	unitPlanFile = "tfplan.tfplan"
	unitPlanJSON = "tfplan.json"
)

// WriteEach writes the plan of each unit to a file of its own, if requested.
func (k *Files) WriteEach(about estate.SavedRun, results []*estate.Result) diag.List {
	if k.Dir == "" && k.JSONDir == "" {
		return nil
	}
	about.Alone = true
	for _, res := range results {
		if res.Status != estate.Succeeded {
			continue
		}
		p, err := k.Saving.Save(about, []*estate.Result{res})
		if k.Dir != "" && err == nil {
			var b bytes.Buffer
			if err = p.Write(&b, release.Version); err == nil {
				err = putFile(filepath.Join(k.Call.Path(k.Dir), filepath.FromSlash(res.Unit.Name), unitPlanFile), b.Bytes())
			}
		}
		if k.JSONDir != "" && err == nil {
			err = k.writeJSON(p.Units[0])
		}
		if err != nil {
			return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write plan file", "The plan of the unit %s could not be written: %s.", res.Unit.Name, err)
		}
	}
	return nil
}

func (k *Files) writeJSON(u *estate.SavedUnit) error {
	doc, err := u.Note(JSONNote)
	if len(doc) == 0 || err != nil { // without a document, no part of the unit could be planned yet
		return err
	}
	return putFile(filepath.Join(k.Call.Path(k.JSONDir), filepath.FromSlash(u.Name), unitPlanJSON), doc)
}

func putFile(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(path, b, 0o600)
}

// ReadDir reads the plans that --out-dir wrote, as one plan.
func ReadDir(c *command.Call, name string) (*estate.SavedPlan, diag.List) {
	var files []string
	err := filepath.WalkDir(c.Path(name), func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == unitPlanFile {
			files = append(files, p)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		why := "it holds none"
		if err != nil {
			why = diag.Reason(err)
		}
		return nil, diag.Errorf(diag.CodeCLINoSavedPlan, nil, "No saved plans", "The directory %q of --out-dir has no plans that could be applied: %s. Make them with \"run --all plan --out-dir %s\".", name, why, name)
	}
	var all *estate.SavedPlan
	for _, file := range files {
		p, err := Read(c, file)
		if err == nil {
			err = p.Check()
		}
		if err != nil {
			return nil, workdir.PlanFileError(file, err)
		}
		if all == nil {
			all = p
			continue
		}
		if !p.About.Equal(all.About) {
			return nil, diag.Errorf(diag.CodePlanSaved, nil, "Saved plans do not belong together", "The plans in %q were made with different options. Plan all units again.", name)
		}
		all.Units = append(all.Units, p.Units...)
	}
	slices.SortFunc(all.Units, func(a, b *estate.SavedUnit) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return all, nil
}
