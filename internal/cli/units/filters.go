package units

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/terrace-iac/terrace/internal/cli/unitflags"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate"
)

// filterBy sets the filters of a command: from files in the working directory, from --filter,
// and from flags that are short forms of a filter.
func filterBy(ctx context.Context, c *command.Call, f *unitflags.Selection, o *estate.Options) diag.List {
	filters, err := filterFiles(c, &f.Filtering)
	if err != nil {
		return diag.Errorf(diag.CodeFilesRead, nil, "Failed to read filters", "%s.", err)
	}
	filters = append(filters, f.Filters...)
	if f.Graph {
		filters = append(filters, "...{.}")
	}
	for _, dir := range f.IncludeDirs {
		filters = append(filters, "{"+dir+"}")
	}
	for _, file := range append(f.ReadingFiles, f.IncludingFiles...) {
		filters = append(filters, "reading="+file)
	}
	if f.External {
		filters = append(filters, "{./**}...")
	}
	for _, dir := range f.ExcludeDirs {
		filters = append(filters, "!{"+dir+"}")
	}
	if f.Affected {
		query, ds := estate.Affected(ctx, *o)
		if ds.HasErrors() {
			return ds
		}
		filters = append(filters, query)
	}
	o.Discovery.Filters = filters
	return nil
}

// filterFiles returns the filters in files. A filters file (.terragrunt-filters by default)
// contains one query per line, and an excludes file (.terragrunt-excludes by default) one
// pattern to exclude per line.
func filterFiles(c *command.Call, f *unitflags.Filtering) ([]string, error) {
	files := []struct {
		name, before, after string
		must                bool
	}{{".terragrunt-filters", "", "", false}, {".terragrunt-excludes", "!{", "}", false}}
	if f.FiltersFile != "" {
		files[0].name, files[0].must = f.FiltersFile, true
	} else if f.NoFiltersFile {
		files = files[1:]
	}
	if f.ExcludesFile != "" {
		last := &files[len(files)-1]
		last.name, last.must = f.ExcludesFile, true
	}
	var out []string
	for _, file := range files {
		b, err := readfile.Given(c.Path(file.name))
		if errors.Is(err, fs.ErrNotExist) && !file.must {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				out = append(out, file.before+line+file.after)
			}
		}
	}
	return out, nil
}
