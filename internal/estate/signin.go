package estate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// # Signing in
//
// A unit may need credentials of its own: those that the program of
// --auth-provider-cmd prints, and those of a role, which a flag, that program or the
// unit's iam_role names. They become part of the unit's environment, for its
// providers, hooks and programs, and of no other's.

// SignIn says how units come by credentials.
type SignIn struct {
	Command []string // that prints them as JSON; none if empty
	Role    Role     // goes before the units' own
	Later   bool     // functions that unit files call do without
}

// A Role is one that is assumed; none if its ARN is empty.
type Role struct {
	ARN     string
	Session string
	Seconds int
	Token   string // a web identity token, or the absolute path of a file with one; may be empty
}

// signedIn is what the program of --auth-provider-cmd gave for a folder.
type signedIn struct {
	env  []string
	role Role
	ds   diag.List
}

// assumed are the credentials of a role. All units that need it have the same ones,
// so that it is asked for once and they share their providers; after half the time
// for which they hold, new ones are asked for.
type assumed struct {
	mu  sync.Mutex
	env []string
	at  time.Time
}

// answer is what the program of --auth-provider-cmd prints.
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

// signIn gets the credentials of a unit.
func (e *Estate) signIn(t *demand.Task, u *Unit) diag.List {
	sc, ds := u.Scalars(t)
	if ds.HasErrors() {
		return ds
	}
	role, at := e.o.SignIn.Role, (*source.Range)(nil)
	if role.ARN == "" && sc != nil {
		role, at = ownRole(sc)
	}
	if role.ARN == "" && len(e.o.SignIn.Command) == 0 {
		return ds
	}
	env, more := e.credentials(t.Context(), u.Dir, role)
	u.signed = env
	return append(ds, more.Under(at)...)
}

// functionEnv is the environment of programs and cloud functions that the unit
// file in a folder calls; nil if it is everybody's.
func (e *Estate) functionEnv() func(t *demand.Task, dir string) (sys.Env, diag.List) {
	s := e.o.SignIn
	if s.Later || len(s.Command) == 0 && s.Role.ARN == "" {
		return nil
	}
	return func(t *demand.Task, dir string) (sys.Env, diag.List) {
		env, ds := e.credentials(t.Context(), dir, s.Role)
		return e.o.Machine.Environ.With(env...), ds
	}
}

// ownRole is the role that a unit's file names.
func ownRole(sc *unit.Scalars) (Role, *source.Range) {
	r := Role{ARN: settingText(sc.IAMRole), Session: settingText(sc.IAMAssumeRoleSessionName), Token: settingText(sc.IAMWebIdentityToken)}
	if s := sc.IAMAssumeRoleDuration; s != nil {
		if v, err := convert.Convert(s.Value, cty.String); err == nil && isText(v) {
			r.Seconds, _ = strconv.Atoi(v.AsString())
		}
	}
	if r.ARN == "" {
		return Role{}, nil
	}
	return r, sc.IAMRole.At
}

// credentials asks the program, once for a folder, and assumes the role.
func (e *Estate) credentials(ctx context.Context, dir string, role Role) ([]string, diag.List) {
	var got signedIn
	if len(e.o.SignIn.Command) > 0 {
		if got = e.shared.signed.Do(dir, func() signedIn { return e.asked(ctx, dir) }); got.ds.HasErrors() {
			return nil, got.ds
		}
	}
	if got.role.ARN != "" {
		role = got.role
	}
	if role.ARN == "" {
		return got.env, nil
	}
	more, ds := e.assume(ctx, e.o.Machine.Environ.With(got.env...), role)
	return slices.Concat(got.env, more), ds
}

// asked runs the program in a folder.
func (e *Estate) asked(ctx context.Context, dir string) (out signedIn) {
	var a answer
	if out.ds = e.ask(ctx, e.o.SignIn.Command, dir, e.o.Machine.Environ, &a); out.ds.HasErrors() {
		return out
	}
	if c := a.AWSCredentials; c != nil {
		out.env = append(out.env, "AWS_ACCESS_KEY_ID="+c.ID, "AWS_SECRET_ACCESS_KEY="+c.Secret, "AWS_SESSION_TOKEN="+c.Token, "AWS_SECURITY_TOKEN="+c.Token)
	}
	for k, v := range a.Envs {
		out.env = append(out.env, k+"="+v)
	}
	slices.Sort(out.env)
	if r := a.AWSRole; r != nil && r.ARN != "" {
		out.role = Role{ARN: r.ARN, Session: r.Session, Seconds: r.Seconds, Token: r.Token}
	}
	return out
}

// assume gets the credentials of a role.
func (e *Estate) assume(ctx context.Context, env sys.Env, r Role) ([]string, diag.List) {
	if e.o.Host.AssumeRole == nil {
		return nil, diag.Errorf(nil, "Role cannot be assumed", "The unit needs the role %q, and this program assumes none.", r.ARN)
	}
	if r.Seconds <= 0 {
		r.Seconds = 3600
	}
	who := append([]string{r.ARN, r.Session, strconv.Itoa(r.Seconds), r.Token}, env...)
	a := e.shared.roles.Do(strings.Join(who, "\x00"), func() *assumed { return &assumed{} })
	a.mu.Lock()
	defer a.mu.Unlock()
	now := e.o.Machine.Now()
	if a.env != nil && now.Sub(a.at) < time.Duration(r.Seconds)*time.Second/2 {
		return a.env, nil
	}
	if r.Session == "" {
		r.Session = "terrace-" + strconv.FormatInt(now.Unix(), 10)
	}
	out, err := e.o.Host.AssumeRole(ctx, env, r)
	if err != nil {
		return nil, diag.Errorf(nil, "Role cannot be assumed", "The role %q, which the unit needs, cannot be assumed: %s.", r.ARN, err)
	}
	a.env, a.at = out, now
	return out, nil
}

// ask runs a program that prints JSON. What it printed is never shown: it may hold
// secrets.
func (e *Estate) ask(ctx context.Context, words []string, dir string, env sys.Env, into any) diag.List {
	if e.o.Machine.Run == nil {
		return diag.Errorf(nil, "Programs cannot be run", "%s cannot run here, so there are no credentials.", words[0])
	}
	var out, said sys.Buffer
	err := e.o.Machine.Run(ctx, sys.Command{Path: words[0], Args: words[1:], Dir: dir, Env: env, Stdout: &out, Stderr: &said})
	if err != nil {
		return diag.Errorf(nil, "Failed to get credentials", "The program %s, which is to give credentials, failed: %s.%s", words[0], err, tail(said.String()))
	}
	if err := json.Unmarshal([]byte(out.String()), into); err != nil {
		return diag.Errorf(nil, "Failed to get credentials", "What the program %s printed is not the JSON object that was expected.", words[0])
	}
	return nil
}

// tail is the end of what a program wrote, as a part of a message.
func tail(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	const most = 500
	return fmt.Sprintf(" It wrote: %s", s[max(0, len(s)-most):])
}
