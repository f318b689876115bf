package estate

import (
	"context"
	"path/filepath"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
)

// Skipped returns the reason why a command on this one unit does nothing, or "" if it runs.
func (e *Estate) Skipped(ctx context.Context, u *discovery.Unit) (string, diag.List) {
	t := e.loader.Task(ctx)
	x, ds := u.Exclude(t)
	if x != nil && x.Late {
		x, ds = u.ExcludeNow(t)
	}
	if x != nil && x.If && x.NoRun && discovery.Excludes(x, e.o.Request.Command) {
		return discovery.ByItself, ds
	}
	return "", ds
}

// Protected reports whether prevent_destroy protects a unit.
func (e *Estate) Protected(ctx context.Context, u *discovery.Unit) (bool, diag.List) {
	return discovery.Protected(e.static.Task(ctx), u.In(e.static))
}

// An InputsReport lists the differences between the inputs of a unit and the variables of its
// module.
type InputsReport struct {
	Unused  []string // names of inputs that the module does not declare
	Missing []string // names of required variables without a value
}

// CompareInputs compares the inputs of a unit, and values from other sources, with the variables
// that its module declares. It fetches the module if necessary. The report is nil if the module's
// location is unknown.
func (e *Estate) CompareInputs(ctx context.Context, u *discovery.Unit) (*InputsReport, diag.List) {
	t := e.loader.Task(ctx)
	d, ds := e.dirs.Dir(t, u.Unit, true)
	if d == nil || ds.HasErrors() || d.Waits != "" {
		return nil, ds
	}
	root, more := config.Load(".", config.Options{FS: d.Files})
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	settings, more := u.Inputs(t, nil)
	ds = append(ds, more...)
	given, more := e.runner.Given(t, u, d, root.Variables)
	if ds = append(ds, more...); ds.HasErrors() {
		return nil, ds
	}
	out, have := &InputsReport{}, map[string]bool{}
	for _, s := range settings {
		if s.Name == "" {
			return out, ds // the inputs depend on unknown values
		}
		have[s.Name] = true
		if root.Variables[s.Name] == nil {
			out.Unused = append(out.Unused, s.Name)
		}
	}
	for _, v := range engine.Missing(given, root.Variables) {
		if !have[v.Name] {
			out.Missing = append(out.Missing, v.Name)
		}
	}
	return out, ds
}

// Info is the environment of a unit, with the field names of `info print`.
type Info struct {
	ConfigPath       string `json:"config_path"`
	DownloadDir      string `json:"download_dir"`
	IAMRole          string `json:"iam_role"`
	TerraformBinary  string `json:"terraform_binary"`
	TerraformCommand string `json:"terraform_command"`
	WorkingDir       string `json:"working_dir"`
}

// Info returns the environment of a unit. It writes nothing. Fields that cannot be determined
// have their defaults, and the errors are returned too. TerraformBinary is the unit's own
// setting, or "" if it has none.
func (e *Estate) Info(ctx context.Context, u *discovery.Unit) (*Info, diag.List) {
	t := e.loader.Task(ctx)
	sc, ds := u.Scalars(t)
	out := &Info{ConfigPath: u.Path, TerraformCommand: e.o.Request.Command, WorkingDir: u.Dir, DownloadDir: filepath.Join(u.Dir, ".terragrunt-cache")}
	if sc != nil {
		out.IAMRole, out.TerraformBinary = sc.IAMRole.Text(), sc.TerraformBinary.Text()
	}
	if down := e.dirs.DownloadDir(t, u.Unit); down != "" {
		if !filepath.IsAbs(down) {
			down = filepath.Join(u.Dir, down)
		}
		out.DownloadDir = filepath.Clean(down)
	}
	d, more := e.dirs.Dir(t, u.Unit, true)
	if ds = append(ds, more...); d == nil || ds.HasErrors() || d.Waits != "" {
		return out, ds
	}
	out.WorkingDir = d.Path
	return out, ds
}
