// Package credentials gets the credentials of units: those that the program of
// --auth-provider-cmd prints, and those of a role that a flag, that program or the unit's
// iam_role attribute names. They become part of the environment of that unit's providers, hooks
// and programs, and of no other unit's.
//
// Main types: Settings and Credentials. The one rule: the output of programs is never shown,
// since it may contain secrets.
package credentials

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Settings configures how credentials are obtained.
type Settings struct {
	Command []string // program that prints credentials as JSON, with its arguments; empty means none
	Role    Role     // overrides the roles of units
	Later   bool     // functions in unit files do not get the credentials
	// AssumeRole returns the credentials of a role as environment variables. env is the
	// environment in which the role is assumed. It may be nil.
	AssumeRole func(ctx context.Context, env sys.Env, r Role) ([]string, error)
}

// Credentials gets and caches the credentials of all units. Create it with New. Its methods may
// be called concurrently.
type Credentials struct {
	s     Settings
	m     unit.Machine
	given parallel.Cache[string, given]   // by directory
	roles parallel.Cache[string, assumed] // by role and the environment that assumes it
}

// New returns Credentials.
func New(s Settings, m unit.Machine) *Credentials {
	c := &Credentials{s: s, m: m}
	c.given.Stale = func(g given) bool { return g.session && m.Now().Sub(g.at) >= sessionLife }
	c.roles.Stale = func(a assumed) bool { return !m.Now().Before(a.half) }
	return c
}

// A Role is a role to assume. An empty ARN means none.
type Role struct {
	ARN     string
	Session string
	Seconds int
	Token   string // web identity token, or the absolute path of a file that contains one; may be empty
}

// given is the answer of the program of --auth-provider-cmd for a directory. The program does not
// report when session credentials expire, so they are requested again after sessionLife.
type given struct {
	env     []string
	role    Role
	session bool
	at      time.Time
	ds      diag.List
}

// sessionLife is the minimum lifetime that the keys of a session are assumed to have.
const sessionLife = 15 * time.Minute

// assumed contains the credentials of a role. All units with the role use the same ones, so that
// it is assumed once and the units share providers. After half of their lifetime new ones are
// requested.
type assumed struct {
	env  []string
	half time.Time // when half of the lifetime is over
	ds   diag.List
}

// answer is the JSON output of the program of --auth-provider-cmd.
type answer struct {
	AWSCredentials *struct {
		ID     string `json:"ACCESS_KEY_ID"`
		Secret string `json:"SECRET_ACCESS_KEY"`
		Token  string `json:"SESSION_TOKEN"`
	} `json:"awsCredentials"`
	AWSRole *struct {
		ARN     string `json:"roleARN"`
		Session string `json:"roleSessionName"`
		Seconds int    `json:"duration"`
		Token   string `json:"webIdentityToken"`
	} `json:"awsRole"`
	Envs map[string]string `json:"envs"`
}

// For returns the credentials of a unit as environment variables.
func (c *Credentials) For(t *demand.Task, u *unit.Unit) ([]string, diag.List) {
	env, _, ds := c.Until(t, u)
	return env, ds
}

// Until returns the credentials of a unit, and the time until which they may be used without
// requesting them again. A zero time means the duration of the run.
func (c *Credentials) Until(t *demand.Task, u *unit.Unit) (env []string, until time.Time, ds diag.List) {
	sc, ds := u.Scalars(t)
	if ds.HasErrors() {
		return nil, until, ds
	}
	role, at := c.s.Role, (*source.Range)(nil)
	if role.ARN == "" && sc != nil {
		role, at = ownRole(sc)
	}
	if role.ARN == "" && len(c.s.Command) == 0 {
		return nil, until, ds
	}
	env, until, more := c.get(t.Context(), u.Dir, role)
	return env, until, append(ds, more.Under(at)...)
}

// Renewing returns a function that returns the current environment of a unit, with the variables
// in extra after its credentials. Operations that outlive the credentials call it again.
func (c *Credentials) Renewing(l *unit.Loader, u *unit.Unit, extra ...string) func(ctx context.Context) (sys.Env, time.Time, error) {
	return func(ctx context.Context) (sys.Env, time.Time, error) {
		own, until, ds := c.Until(l.Task(ctx), u)
		return c.m.Environ.With(slices.Concat(own, extra)...), until, ds.Err()
	}
}

// Environ returns a function that returns the environment of programs and cloud functions that
// the unit file in a directory calls. nil means that all use the environment of the machine.
func (c *Credentials) Environ() func(t *demand.Task, dir string) (sys.Env, diag.List) {
	if c.s.Later || len(c.s.Command) == 0 && c.s.Role.ARN == "" {
		return nil
	}
	return func(t *demand.Task, dir string) (sys.Env, diag.List) {
		env, _, ds := c.get(t.Context(), dir, c.s.Role)
		return c.m.Environ.With(env...), ds
	}
}

// ownRole returns the role in a unit's file.
func ownRole(sc *unit.Scalars) (Role, *source.Range) {
	r := Role{ARN: sc.IAMRole.Text(), Session: sc.IAMAssumeRoleSessionName.Text(), Token: sc.IAMWebIdentityToken.Text()}
	if s := sc.IAMAssumeRoleDuration; s != nil {
		if v, err := convert.Convert(s.Value, cty.String); err == nil && value.IsText(v) {
			r.Seconds, _ = strconv.Atoi(v.AsString())
		}
	}
	if r.ARN == "" {
		return Role{}, nil
	}
	return r, sc.IAMRole.At
}

// get runs the program, unless its answer for the directory is still valid, and assumes the role.
func (c *Credentials) get(ctx context.Context, dir string, role Role) (env []string, until time.Time, ds diag.List) {
	if len(c.s.Command) > 0 {
		g, err := c.given.Do(ctx, dir, func() (given, bool) {
			g := given{at: c.m.Now()}
			g.env, g.role, g.session, g.ds = c.asked(ctx, dir)
			return g, !g.ds.HasErrors()
		})
		if err != nil {
			return nil, until, diag.Errorf(diag.CodeEstateCredentials, nil, "Failed to get credentials", "The program %s, which is to give credentials, was not waited for: %s.", c.s.Command[0], err)
		}
		if g.ds.HasErrors() {
			return nil, until, slices.Clone(g.ds)
		}
		if g.role.ARN != "" {
			role = g.role
		}
		if env = g.env; g.session {
			until = g.at.Add(sessionLife)
		}
	}
	if role.ARN == "" {
		return env, until, nil
	}
	more, half, ds := c.assume(ctx, c.m.Environ.With(env...), role)
	if until.IsZero() || half.Before(until) {
		until = half
	}
	return slices.Concat(env, more), until, ds
}

// asked runs the program in a directory and converts its answer.
func (c *Credentials) asked(ctx context.Context, dir string) (env []string, role Role, session bool, ds diag.List) {
	var a answer
	if ds = c.ask(ctx, c.s.Command, dir, c.m.Environ, &a); ds.HasErrors() {
		return nil, role, false, ds
	}
	if k := a.AWSCredentials; k != nil {
		session = k.Token != ""
		env = append(env, "AWS_ACCESS_KEY_ID="+k.ID, "AWS_SECRET_ACCESS_KEY="+k.Secret, "AWS_SESSION_TOKEN="+k.Token, "AWS_SECURITY_TOKEN="+k.Token)
	}
	for k, v := range a.Envs {
		env = append(env, k+"="+v)
	}
	slices.Sort(env)
	if r := a.AWSRole; r != nil && r.ARN != "" {
		role = Role{ARN: r.ARN, Session: r.Session, Seconds: r.Seconds, Token: r.Token}
	}
	return env, role, session, nil
}

// assume returns the credentials of a role, and the time when half of their lifetime is over.
func (c *Credentials) assume(ctx context.Context, env sys.Env, r Role) (out []string, half time.Time, ds diag.List) {
	if c.s.AssumeRole == nil {
		return nil, half, diag.Errorf(diag.CodeEstateRole, nil, "Role cannot be assumed", "The unit needs the role %q, and this program assumes none.", r.ARN)
	}
	if r.Seconds <= 0 {
		r.Seconds = 3600
	}
	who := append([]string{r.ARN, r.Session, strconv.Itoa(r.Seconds), r.Token}, env...)
	a, err := c.roles.Do(ctx, strings.Join(who, "\x00"), func() (assumed, bool) {
		now := c.m.Now()
		if r.Session == "" {
			r.Session = "terrace-" + strconv.FormatInt(now.Unix(), 10)
		}
		env, err := c.s.AssumeRole(ctx, env, r)
		if err != nil {
			return assumed{ds: notAssumed(r, err)}, false
		}
		return assumed{env: env, half: now.Add(time.Duration(r.Seconds) * time.Second / 2)}, true
	})
	if err != nil {
		return nil, half, notAssumed(r, err)
	}
	return a.env, a.half, slices.Clone(a.ds)
}

func notAssumed(r Role, err error) diag.List {
	return diag.Errorf(diag.CodeEstateRole, nil, "Role cannot be assumed", "The role %q, which the unit needs, cannot be assumed: %s.", r.ARN, err)
}

// ask runs a program that prints JSON. Messages never contain its standard output, which may
// contain secrets.
func (c *Credentials) ask(ctx context.Context, words []string, dir string, env sys.Env, into any) diag.List {
	if c.m.Run == nil {
		return diag.Errorf(diag.CodeEstateNoExec, nil, "Programs cannot be run", "%s cannot run here, so there are no credentials.", words[0])
	}
	var out, said sys.Buffer
	err := c.m.Run(ctx, sys.Command{Path: words[0], Args: words[1:], Dir: dir, Env: env, Stdout: &out, Stderr: &said})
	if err != nil {
		return diag.Errorf(diag.CodeEstateCredentials, nil, "Failed to get credentials", "The program %s, which is to give credentials, failed: %s.%s", words[0], err, tail(said.String()))
	}
	if err := json.Unmarshal([]byte(out.String()), into); err != nil {
		return diag.Errorf(diag.CodeEstateCredentials, nil, "Failed to get credentials", "What the program %s printed is not the JSON object that was expected.", words[0])
	}
	return nil
}

// tail returns the last 500 bytes of a program's output, as part of a message.
func tail(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	const most = 500
	return fmt.Sprintf(" It wrote: %s", s[max(0, len(s)-most):])
}
