// Package check implements the command check: the built-in lint for a directory, a unit or an
// estate.
package check

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/rulecheck"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/cli/units"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/discovery/git"
	"github.com/terrace-iac/terrace/internal/estate/discovery/stacks"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/rules"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/internal/rules/format"
	"github.com/terrace-iac/terrace/internal/rules/lint"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit/syntax"
)

// options contains the flags of the command.
type options struct {
	json, fix, all        bool
	only, enable, disable []string
	level                 string
	sarif, junit          string
	baseline, baselineOut string
	markdown              request.Markdown
	units                 unitflags.Flags
	plan                  string // path of a saved plan; "" checks the configuration

	fail finding.Level
	on   lint.Selection
}

// Command declares check.
func Command() command.Command {
	return command.Command{
		Name: "check", Synopsis: "Find mistakes and risks in the configuration", Usage: "[options] [PLANFILE]",
		Units: command.TakesUnitFlags,
		Args:  []command.Arg{{Name: "PLANFILE", Help: "A saved plan of the working directory or of its units, or the output of show -json for one.", Optional: true, Complete: flag.Files}},
		Help: `Checks the configuration in the working directory with the built-in lint: the
root module and the modules that it calls by a local path. In a unit or an
estate, it checks all units below the working directory, the files that they
import, and their modules that are on this machine.

Rules in files NAME.rules.hcl are checked too, as far as the files decide
them: see docs/rules.md. With PLANFILE, the rules are checked for a saved
plan, or for its JSON form, and no lints.

No state is read, no provider is started, no program runs, and nothing is
fetched. docs/lint.md lists the lints with their codes. A comment waives the
findings of a line: # terrace:ignore CODE reason.`,
		Examples: []command.Example{
			{Line: "check -enable=no-type-variable", Text: "Check, and report variables without a type too."},
			{Line: "check -only=unused-local -fix", Text: "Remove unused local values."},
			{Line: "check tfplan", Text: "Check the rules for the saved plan in the file tfplan."},
			{Line: "check -level=warning -baseline=known.json", Text: "Fail if there are warnings that the baseline does not contain."},
		},
		Exits: []command.Exit{{Code: 0, Help: "There is no finding at the level error, or at that of -level."}, {Code: 1, Help: "There is such a finding, or the configuration cannot be read."}},
		Prepare: func() (flag.Flags, command.Run) {
			o := &options{level: finding.Error.String()}
			fs := flag.Flags{
				flag.Bool(&o.all, "all-findings", "Print each finding with its lines and all its units. By default, more than 3 findings of one lint are a list, and long lists are cut."),
				flag.Text(&o.baseline, "baseline", "FILE", "Only report findings that this baseline does not contain. It is a file of -baseline-out, or the output of -json.").Completes(flag.Files),
				flag.Text(&o.baselineOut, "baseline-out", "FILE", "Write the findings to a baseline file. The status is then 0 whatever the findings.").Completes(flag.Files),
				flag.List(&o.disable, "disable", "CODES", "Turn lints off. Several codes are separated by commas. May be repeated."),
				flag.List(&o.enable, "enable", "CODES", "Turn lints on. \"all\" means all of them. May be repeated."),
				flag.Bool(&o.fix, "fix", "Mend the findings that have exactly one fix, if the values stay as they are."),
				flag.Bool(&o.json, "json", "Produce output in a machine-readable JSON format."),
				flag.Text(&o.junit, "junit", "FILE", "Write the result as JUnit XML to a file.").Completes(flag.Files),
				flag.Text(&o.level, "level", "LEVEL", "Fail if there is a finding at this level or above: advice, warning or error."),
				flag.List(&o.only, "only", "CODES", "Only check these lints. May be repeated."),
				flag.Text(&o.sarif, "sarif", "FILE", "Write the result as SARIF 2.1.0 to a file.").Completes(flag.Files),
			}
			fs = append(append(fs, flags.Markdown(&o.markdown)...), o.units.DeclareFor(false)...)
			return fs, func(ctx context.Context, c *command.Call) int {
				if err := o.settle(c); err != nil {
					return c.UsageError("Failed to parse command-line flags", err.Error())
				}
				switch {
				case len(c.Args) > 1:
					return c.UsageError("Too many command line arguments", "The command takes at most one argument, a plan. Without it, it checks the working directory.")
				case len(c.Args) == 1 && o.fix:
					return c.UsageError("Failed to parse command-line flags", "-fix changes files, and cannot be combined with a saved plan.")
				case len(c.Args) == 1 && len(o.only) > 0:
					return c.UsageError("Failed to parse command-line flags", "-only names lints, which are not checked for a saved plan.")
				}
				o.plan = c.Arg(0)
				units.WorkIn(c, &o.units)
				return run(ctx, c, o)
			}
		},
	}
}

// settle reads the flags that have their own syntax.
func (o *options) settle(c *command.Call) (err error) {
	if err := o.units.Settle(c.Env); err != nil {
		return err
	}
	ok := false
	if o.fail, ok = finding.ParseLevel(o.level); !ok {
		return fmt.Errorf("-level must be advice, warning or error, not %q", o.level)
	}
	split := func(all []string) (out []string) {
		for _, s := range all {
			for _, code := range strings.Split(s, ",") {
				if code = strings.TrimSpace(code); code != "" {
					out = append(out, code)
				}
			}
		}
		return out
	}
	o.on, err = lint.Select(split(o.only), split(o.enable), split(o.disable))
	return err
}

// The check of a unit makes much more garbage than it keeps. So the heap may grow by garbage times
// what the units keep before it is collected, within these limits in bytes. A small estate makes less garbage
// than minGarbage in all.
const (
	garbage    = 8
	minGarbage = 32 << 20
	maxGarbage = 128 << 20
)

// maxRounds is the number of times that -fix looks for findings that its own fixes cause.
const maxRounds = 20

func run(ctx context.Context, c *command.Call, o *options) int {
	var known format.Baseline
	if o.baseline != "" {
		text, err := readfile.Whole(c.ReportPath(o.baseline))
		if err == nil {
			known, err = format.ReadBaseline(text)
		}
		if err != nil {
			return c.Fail(diag.Errorf(diag.CodeCLIBaseline, nil, "Invalid baseline", "The baseline %s cannot be read: %s.", o.baseline, diag.Reason(err)))
		}
	}
	r, ds := look(ctx, c, o)
	if ds.HasErrors() {
		return c.Fail(shownErrors(c, ds))
	}
	r.Without(known)
	if o.fix {
		mended := 0
		mend := func(by func(context.Context, *command.Call, *options, *format.Report) (int, diag.List)) (int, diag.List) {
			n, more := by(ctx, c, o, r)
			ds = append(ds, more...).Once()
			if mended += n; n == 0 {
				return 0, nil
			}
			if r, more = look(ctx, c, o); !more.HasErrors() {
				r.Without(known)
			}
			return n, more.Errors()
		}
		if _, more := mend(rewrite); more.HasErrors() {
			return c.Fail(more)
		}
		// A fix can cause another finding, such as an unused local value that the removed one referred
		// to. So the command repeats until nothing is left, as the next call would.
		for range maxRounds {
			n, more := mend(fix)
			if more.HasErrors() {
				return c.Fail(more)
			}
			if n == 0 {
				break
			}
		}
		if mended > 0 && !o.json {
			c.Report.Say(fmt.Sprintf("Mended %s.\n", view.Numbered(mended, "finding")))
		}
	}
	if o.json {
		c.Report.AsideHere(ds)
	} else {
		c.Report.Tell(ds)
	}
	v := &result{Report: r, c: c}
	v.set, v.hidden = sources(c, r)
	v.relate()
	if o.json {
		if err := format.JSON(c.Stdout, r); err != nil {
			return c.Fail(diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write JSON", "The findings cannot be written: %s.", err))
		}
	} else {
		v.print(o.all)
	}
	if more := v.files(o); more.HasErrors() {
		return c.Fail(more)
	}
	if ds.HasErrors() || o.baselineOut == "" && r.Worst() >= o.fail {
		return 1
	}
	return 0
}

// shownErrors returns errors with the names of files as they are shown. It adds the text of the files to the
// sources of the report.
func shownErrors(c *command.Call, ds diag.List) diag.List {
	return ds.Rename(func(name string) string {
		if !filepath.IsAbs(name) {
			return name
		}
		short := shown(c, name)
		if c.Report.Set.File(short) == nil {
			if c.Report.Set.Adopt(short, c.Report.Set, name); c.Report.Set.File(short) == nil {
				if text, err := readfile.Whole(name); err == nil {
					c.Report.Set.Add(&source.File{Path: short, Bytes: text})
				}
			}
		}
		return short
	})
}

// look checks the working directory: its units, or its module if there are none.
func look(ctx context.Context, c *command.Call, o *options) (*format.Report, diag.List) {
	var all []*finding.Finding
	var ds diag.List
	var set *rulecheck.Rules
	partial := false
	if len(o.only) == 0 { // -only names lints
		of := c
		if o.plan != "" && units.IsUnit(c, &o.units.Selection) { // the plan names its unit to the rules
			n := *c
			n.UnitDir, of = c.Dir, &n
		}
		if set, ds = rulecheck.Load(of); ds.HasErrors() {
			return nil, ds
		}
	}
	switch {
	case o.plan != "":
		all, ds = planFindings(ctx, c, o, set)
	case overUnits(c, o):
		all, partial, ds = lintEstate(ctx, c, o, set)
	default:
		all, partial, ds = lintDirectory(ctx, c, o, set)
	}
	linked := map[string]bool{}
	for _, f := range all {
		f.Message = c.Report.Redactor.Text(f.Message)
		if len(f.Fix) > 0 && isLink(c, f.Fix[0].At.Filename, linked) {
			f.Fix = nil
		}
	}
	var rules []format.Rule
	for _, r := range lint.Rules() {
		if o.on[r.Code] && o.plan == "" {
			rules = append(rules, format.Rule{Name: r.Code, Finds: strings.ReplaceAll(r.Finds, "`", ""), Level: r.Level})
		}
	}
	if set != nil {
		for _, r := range set.Rules {
			rules = append(rules, format.Rule{Name: r.Name, Level: r.Level})
		}
	}
	r := format.New(all, rules)
	r.Partial = partial
	return r, ds
}

// isLink reports whether a file is a symbolic link. Another module has the file too, and may need what
// is of no use here, so that such a file is not mended. known contains earlier results.
func isLink(c *command.Call, path string, known map[string]bool) bool {
	is, ok := known[path]
	if !ok {
		info, err := os.Lstat(c.Path(path))
		is = err == nil && info.Mode()&fs.ModeSymlink != 0
		known[path] = is
	}
	return is
}

// overUnits reports whether units are checked, and not the configuration of one directory.
func overUnits(c *command.Call, o *options) bool {
	return units.IsUnit(c, &o.units.Selection) || !config.IsConfigDir(c.Dir, config.Options{})
}

// openEstate opens the units below the working directory. No program runs.
// l takes what it needs of the unit files while they are read; it may be nil.
func openEstate(ctx context.Context, c *command.Call, o *options, l *lint.Linter) (*estate.Estate, estate.Options, diag.List) {
	eo, ds := units.LookOptions(c, &o.units, "plan", nil)
	if ds.HasErrors() {
		return nil, eo, ds
	}
	eo.Discovery.Generate, eo.Discovery.Overlay = !o.units.NoStackGenerate, &stacks.Overlay{}
	eo.Discovery.Whole, eo.Checking = true, true
	if leave := c.System.LeaveHeap; leave != nil {
		eo.Discovery.Expect = func(bytes int64) { leave(min(max(garbage*bytes, minGarbage), maxGarbage)) }
	}
	if l != nil && !l.On.None() {
		eo.Parses = &syntax.Parses{Seen: l.Seen}
	}
	eo.Machine.Run = sys.RefusePrograms
	e, more := units.Open(ctx, c, eo)
	c.Report.Set.Include(e.Sources())
	return e, eo, append(ds, more...)
}

func lintEstate(ctx context.Context, c *command.Call, o *options, set *rulecheck.Rules) (_ []*finding.Finding, partial bool, _ diag.List) {
	l := &lint.Linter{On: o.on, Root: c.Dir}
	e, eo, ds := openEstate(ctx, c, o, l)
	defer e.Close(ctx)
	if ds.HasErrors() {
		return nil, false, ds
	}
	lints := l.Units(e)
	var res rules.Result
	var errs diag.List
	if set == nil {
		parallel.Each(len(e.Found.Units), 0, func(i int) {
			lints.Read(ctx, i)
			e.Release(e.Found.Units[i])
		})
	} else { // each unit is read once, for both
		res, errs = set.Estate(ctx, e, rulecheck.OfEstate{Schemas: units.KeptSchemas(c, func(dir string) string { return dir }), Also: func(i int) { lints.Read(ctx, i) }})
	}
	found, more := lints.Findings(ctx, eo.UnitEnv(c.Dir))
	found, more = append(found, res.Findings...), slices.Concat(more, errs, res.Diags)
	return found, res.Partial, slices.Concat(ds, e.Found.Ungenerated, more).Once()
}

func lintDirectory(ctx context.Context, c *command.Call, o *options, set *rulecheck.Rules) (_ []*finding.Finding, partial bool, _ diag.List) {
	m, ds := config.Load(".", config.Options{FS: c.OnDisk(), Set: c.Report.Set})
	if ds.HasErrors() {
		return nil, false, ds.Errors()
	}
	l := &lint.Linter{On: o.on, Root: c.Dir}
	found := l.Module(lint.NewModule(m, c.Path))
	if ds := l.Errors(); len(ds) > 0 {
		return nil, false, ds
	}
	if set == nil {
		return found, false, nil
	}
	loaded, ds := load(ctx, c)
	if loaded == nil {
		return nil, false, ds.Errors()
	}
	defer loaded.Close()
	res, more := set.Directory(ctx, loaded.Engine, rulecheck.Given{Explain: engine.ExplainOptions{Variables: loaded.Vars}, Schema: loaded.KeptSchemas(ctx)})
	return append(found, res.Findings...), res.Partial, append(more, res.Diags...)
}

// load loads the configuration of the working directory. Modules that are not installed are left
// out. The caller must close the result, which is nil if there are errors.
func load(ctx context.Context, c *command.Call) (*workdir.Loaded, diag.List) {
	d := c.Directory.In(c.Dir, c.Env, nil)
	d.Set = &source.Set{}
	loaded, ds := workdir.Load(ctx, d, workdir.LoadOptions{Partial: true})
	if loaded == nil {
		loaded, ds = workdir.Load(ctx, d, workdir.LoadOptions{Partial: true, RootOnly: true})
	}
	return loaded, ds
}

// result is a report with the texts of its files.
type result struct {
	*format.Report
	c           *command.Call
	set, hidden *source.Set // by the names that relate gives the files; see sources
}

// sources returns the files of the findings, by the names that are shown. hidden has the same files,
// and shows the text of none.
func sources(c *command.Call, r *format.Report) (set, hidden *source.Set) {
	set, hidden = &source.Set{}, &source.Set{}
	for _, f := range r.Findings {
		for _, at := range []source.Range{f.SetAt, f.Defined, f.RuleAt} {
			name := shown(c, at.Filename)
			if at.Filename == "" || set.File(name) != nil {
				continue
			}
			if set.Adopt(name, c.Report.Set, at.Filename); set.File(name) == nil {
				text, err := readfile.Whole(c.Path(at.Filename))
				if err != nil {
					continue
				}
				set.Add(&source.File{Path: name, Bytes: text})
				if strings.Contains(filepath.Base(name), ".tfvars") {
					set.Conceal(name) // its lines may be secret
				}
			}
			hidden.Add(&source.File{Path: name, Bytes: []byte{}})
			hidden.Conceal(name)
		}
	}
	return set, hidden
}

// shown returns the name of a file as it is shown: relative to the working directory.
func shown(c *command.Call, path string) string { return sys.RelativeTo(c.Dir, path) }

// relate replaces the paths in findings by the names that are shown.
func (v *result) relate() {
	for _, f := range v.Findings {
		for _, at := range []*source.Range{&f.SetAt, &f.Defined, &f.RuleAt} {
			if at.Filename != "" {
				at.Filename = shown(v.c, at.Filename)
			}
		}
	}
}

// sarif returns the options of the SARIF file.
func (v *result) sarif() format.SARIFOptions {
	root := git.Root(v.c.Dir)
	path := func(name string) string {
		if root == "" {
			return name
		}
		if rel, err := filepath.Rel(root, v.c.Path(name)); err == nil && filepath.IsLocal(rel) {
			return rel
		}
		return name
	}
	text := func(name string) []byte {
		if f := v.set.File(name); f != nil {
			return f.Bytes
		}
		return nil
	}
	return format.SARIFOptions{Program: view.Product, Version: release.Version, Path: path, Text: text}
}

// files writes the files that flags request.
func (v *result) files(o *options) (ds diag.List) {
	write := func(name, what string, do func(io.Writer) error) {
		if name == "" {
			return
		}
		if err := atomicfile.WriteFrom(v.c.ReportPath(name), 0o644, do); err != nil {
			ds = append(ds, diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write file", "The %s could not be written: %s.", what, err)...)
		}
	}
	write(o.sarif, "SARIF file", func(w io.Writer) error { return format.SARIF(w, v.Report, v.sarif()) })
	write(o.junit, "JUnit file", func(w io.Writer) error { return format.JUnit(w, v.Report, o.fail) })
	write(o.baselineOut, "baseline", func(w io.Writer) error { return format.WriteBaseline(w, v.Report) })
	if o.markdown.File != "" {
		ds = append(ds, flags.WriteMarkdown(v.c, o.markdown, v.document())...)
	}
	return ds
}
