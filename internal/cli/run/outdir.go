package run

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/internal/cli/project"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/estate"
)

// The files of --out-dir and --json-out-dir, each in a folder with the unit's name.
const (
	unitPlanFile = "tfplan.tfplan"
	unitPlanJSON = "tfplan.json"
)

// about says what the plan is made with.
func (r *estateRun) about() estate.SavedRun {
	return estate.SavedRun{
		Destroy: r.op.Destroy, RefreshOnly: r.op.RefreshOnly, NoRefresh: !r.op.Refresh, Minimal: r.op.Reads.Minimal,
		Targets: addresses(r.meant.targets), Excludes: addresses(r.meant.excludes), Replace: r.op.Scope.Replace, Time: r.began, Dir: filepath.Base(r.Dir),
	}
}

// writeEach writes the plan of each unit to a file of its own, if that is asked for.
func (k *keeping) writeEach(about estate.SavedRun, results []*estate.Result) diag.List {
	if k.dir == "" && k.jsonDir == "" {
		return nil
	}
	about.Alone = true
	for _, res := range results {
		if res.Status != estate.Succeeded {
			continue
		}
		p, err := k.saving.Save(about, []*estate.Result{res})
		if k.dir != "" && err == nil {
			var b bytes.Buffer
			if err = p.Write(&b, project.Version); err == nil {
				err = putFile(filepath.Join(k.call.Path(k.dir), filepath.FromSlash(res.Unit.Name), unitPlanFile), b.Bytes())
			}
		}
		if k.jsonDir != "" && err == nil {
			err = k.writeJSON(p.Units[0])
		}
		if err != nil {
			return diag.Errorf(nil, "Failed to write plan file", "The plan of the unit %s could not be written: %s.", res.Unit.Name, err)
		}
	}
	return nil
}

func (k *keeping) writeJSON(u *estate.SavedUnit) error {
	doc, err := u.Note(jsonNote)
	if len(doc) == 0 || err != nil { // without one, nothing of it could be planned yet
		return err
	}
	return putFile(filepath.Join(k.call.Path(k.jsonDir), filepath.FromSlash(u.Name), unitPlanJSON), doc)
}

func putFile(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(path, b, 0o600)
}

// readSavedDir reads the plans that --out-dir wrote as one.
func (r *estateRun) readSavedDir(name string) int {
	var files []string
	err := filepath.WalkDir(r.Path(name), func(p string, d fs.DirEntry, err error) error {
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
		return r.Fail(diag.Errorf(nil, "No saved plans", "The folder %q of --out-dir has no plans that could be applied: %s. Make them with \"run --all plan --out-dir %s\".", name, why, name))
	}
	var all *estate.SavedPlan
	for _, file := range files {
		p, err := openSaved(r.Call, file)
		if err == nil {
			err = p.Check()
		}
		if err != nil {
			return r.Fail(project.PlanFileError(file, err))
		}
		if all == nil {
			all = p
			continue
		}
		if !p.About.Equal(all.About) {
			return r.Fail(diag.Errorf(nil, "Saved plans do not belong together", "The plans in %q were made with different options. Plan all units again.", name))
		}
		all.Units = append(all.Units, p.Units...)
	}
	slices.SortFunc(all.Units, func(a, b *estate.SavedUnit) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return r.applySaved(name, all)
}
