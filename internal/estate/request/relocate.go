package request

import (
	"slices"
	"strings"
)

// Relocate returns the request for a machine that has the files below the directory from in the
// directory to. Paths below from are replaced in all options that contain paths, and in values
// that are such paths. Other paths are the same on both machines.
func (q Request) Relocate(from, to string) Request {
	if from == to {
		return q
	}
	u, o := &q.Units, &q.Operation
	for _, path := range []*string{
		&q.PlanFile, &q.JSONInto, &q.State.Path, &q.State.Out, &q.State.Backup, &o.Out, &o.Markdown.File, &o.Origins, &o.TestDirectory, &o.Plan.GenerateTo,
		&u.FiltersFile, &u.ExcludesFile, &u.Boundary, &u.Config, &u.Working, &u.GraphRoot, &u.OutDir, &u.JSONOutDir,
		&u.Source, &u.DownloadDir, &u.ProviderCacheDir, &u.Profile.CPU, &u.Profile.Memory, &u.Profile.Goroutines, &u.ProfileDir,
		&u.Report, &u.ReportSchema, &u.HTML, &u.AuthCommand, &u.WebToken,
	} {
		*path = relocate(*path, from, to)
	}
	for _, list := range []*[]string{
		&q.Words.Args, &o.Scope.TargetFiles, &o.Scope.ExcludeFiles,
		&u.IncludeDirs, &u.ExcludeDirs, &u.ReadingFiles, &u.IncludingFiles, &u.Filters, &u.Features, &u.SourceMap,
	} {
		*list = slices.Clone(*list)
		for i, text := range *list {
			(*list)[i] = relocate(text, from, to)
		}
	}
	o.Vars = slices.Clone(o.Vars)
	for i, v := range o.Vars {
		o.Vars[i].Value = relocate(v.Value, from, to)
	}
	return q
}

// relocate returns a path, or a text of the form NAME=PATH, with another directory.
func relocate(text, from, to string) string {
	name, path, ok := strings.Cut(text, "=")
	if !ok {
		name, path = "", text
	}
	if path != from && !strings.HasPrefix(path, from+"/") {
		return text
	}
	path = to + strings.TrimPrefix(path, from)
	if ok {
		return name + "=" + path
	}
	return path
}
