package git

import (
	"context"
	"path/filepath"
	"strings"
)

// mostTexts is the largest number of files for which TextsOf returns texts. git runs once for each.
const mostTexts = 200

// TextsOf returns the texts of the files in a commit that differ from those in the working tree with
// the root top, by absolute path, as a checkout would write them. ok is false if the two differ in
// more than the texts of at most mostTexts files: one of them has files or directories that the other
// lacks, or a file changed its type. ok is also false if there are symbolic links, since a file then
// has several paths, and if the index marks files as unchanged or as not checked out. Files that git
// ignores do not count.
func (r Repo) TextsOf(ctx context.Context, top, commit string) (texts map[string][]byte, ok bool, err error) {
	if r.Answers.areGiven() {
		return nil, false, nil
	}
	r.Dir = top
	r.Environ = append(r.Environ[:len(r.Environ):len(r.Environ)], "GIT_OPTIONAL_LOCKS=0") // so that the index is not written
	more, err := r.Run(ctx, "ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory", "-z")
	if err != nil || more != "" {
		return nil, false, err
	}
	all, err := r.Run(ctx, "ls-files", "--stage", "-v", "-z")
	if err != nil {
		return nil, false, err
	}
	for entry := range strings.SplitSeq(strings.TrimSuffix(all, "\x00"), "\x00") {
		// The form is "TAG MODE ID STAGE\tNAME". H is the tag of files that are neither ignored by
		// "git diff" nor missing from a sparse checkout.
		if tag, mode, _ := strings.Cut(entry, " "); tag != "H" && entry != "" || strings.HasPrefix(mode, "120000 ") {
			return nil, false, nil
		}
	}
	out, err := r.Run(ctx, "diff", "--raw", "-z", "--no-renames", "--no-abbrev", "--no-ext-diff", "--ignore-submodules=none", commit, "--")
	if err != nil {
		return nil, false, err
	}
	words := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	if len(words)/2 > mostTexts {
		return nil, false, nil
	}
	texts = map[string][]byte{}
	for i := 0; i+1 < len(words); i += 2 {
		// The form is ":MODE MODE ID ID STATUS", with the file in the commit first.
		what := strings.Fields(strings.TrimPrefix(words[i], ":"))
		if len(what) != 5 || what[4] != "M" || !regular(what[0]) || !regular(what[1]) {
			return nil, false, nil
		}
		name := words[i+1]
		if texts[filepath.Join(top, filepath.FromSlash(name))], err = r.bytes(ctx, "cat-file", "--filters", "--path="+name, what[2]); err != nil {
			return nil, false, err
		}
	}
	return texts, true, nil
}

// regular reports whether a mode is that of a regular file.
func regular(mode string) bool { return mode == "100644" || mode == "100755" }
