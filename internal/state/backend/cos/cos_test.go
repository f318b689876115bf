package cos

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/zclconf/go-cty/cty"
)

var ctx = context.Background()

func place(t *testing.T, s *servers.COSServer) backendtest.Place {
	p := backendtest.Place{
		Config: map[string]cty.Value{
			"bucket": cty.StringVal(s.Bucket), "region": cty.StringVal(s.Region), "prefix": cty.StringVal("team/a b"),
			"secret_id": cty.StringVal(s.ID), "secret_key": cty.StringVal(s.Key),
		},
		Services: backendtest.Services(t),
		Locks:    true, Workspaces: true,
		Steal:   func(*testing.T) { s.Put("team/a b/terraform.tfstate.tflock", `{"ID":"other"}`) },
		Secrets: []string{s.Key},
	}
	p.Services.Transport = s.Transport(t)
	return p
}

func TestSuite(t *testing.T) {
	backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place { return place(t, servers.COS(t)) })
}

func open0(t *testing.T, p backendtest.Place, workspace string) *object {
	t.Helper()
	st, err := backendtest.Open(t, Kind(), p).Store(workspace, backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return st.(*backend.Store).Object().(*object)
}

func TestLayout(t *testing.T) {
	for _, c := range []struct{ prefix, workspace, want string }{
		{"", "", "terraform.tfstate"}, {"", "dev", "dev/terraform.tfstate"}, {"p/q", "", "p/q/terraform.tfstate"}, {"p/q", "dev", "p/q/dev/terraform.tfstate"},
	} {
		s := servers.COS(t)
		p := place(t, s)
		p.Config["prefix"] = cty.StringVal(c.prefix)
		o := open0(t, p, c.workspace)
		id, err := o.Lock(ctx, store.LockInfo{ID: "x", Operation: "op", Created: time.Unix(0, 1).UTC()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Absent: true}, id); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.Objects(), " "); got != c.want+" "+c.want+".tflock" || len(s.Tags()) != 0 {
			t.Errorf("%s %v", got, s.Tags())
		}
		text, header := s.Object(c.want + ".tflock")
		sum := md5.Sum([]byte(text))
		if text != `{"ID":"x","Operation":"op","Info":"","Who":"","Version":"","Created":"1970-01-01T00:00:00.000000001Z","Path":"`+c.want+`.tflock"}` || id != hex.EncodeToString(sum[:]) {
			t.Errorf("%s %s", id, text)
		}
		if header.Get("X-Cos-Meta-Md5") != id || header.Get("X-Cos-Acl") != "private" || header.Get("X-Cos-Server-Side-Encryption") != "AES256" {
			t.Errorf("%v", header)
		}
		if err := o.Unlock(ctx, id); err != nil {
			t.Error(err)
		}
	}
}

// A process that ends while it takes the lock leaves a tag, which force-unlock removes.
func TestTagOfTheDead(t *testing.T) {
	s := servers.COS(t)
	o := open0(t, place(t, s), "")
	s.SetTag(lockTag, o.tag(), true)
	_, err := o.Lock(ctx, store.LockInfo{ID: "1"})
	var locked *backend.LockedError
	if !errors.As(err, &locked) || locked.Holder == nil || !strings.Contains(err.Error(), "force-unlock "+o.tag()) {
		t.Fatalf("%v", err)
	}
	if err := o.Unlock(ctx, locked.Holder.ID); err != nil {
		t.Fatal(err)
	}
	if id, err := o.Lock(ctx, store.LockInfo{ID: "1"}); err != nil {
		t.Error(err)
	} else if err := o.Unlock(ctx, id); err != nil {
		t.Error(err)
	}
}

func TestDamage(t *testing.T) {
	s := servers.COS(t)
	o := open0(t, place(t, s), "")
	if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Absent: true}, ""); err != nil {
		t.Fatal(err)
	}
	s.Put(o.File, "x")
	_, header := s.Object(o.File)
	for _, sum := range []string{"", "0123456789abcdef0123456789abcdef"} {
		header.Set("X-Cos-Meta-Md5", sum)
		var e *backend.Error
		if _, err := o.Read(ctx); !errors.As(err, &e) || e.Argument != "key" {
			t.Errorf("%v", err)
		}
	}
}

func TestCredentials(t *testing.T) {
	s := servers.COS(t)
	p := place(t, s)
	delete(p.Config, "secret_id")
	delete(p.Config, "secret_key")
	delete(p.Config, "region")
	p.Services.Env = sys.Env{"TENCENTCLOUD_SECRET_ID=" + s.ID, "TENCENTCLOUD_SECRET_KEY=" + s.Key, "TENCENTCLOUD_REGION=" + s.Region}
	role := map[string]cty.Value{"role_arn": cty.StringVal(s.Role), "session_name": cty.StringVal("me"), "session_duration": cty.NumberIntVal(900), "policy": cty.NullVal(cty.String)}
	for _, roles := range [][]cty.Value{nil, {cty.ObjectVal(role)}} {
		if roles != nil {
			p.Config["assume_role"] = cty.SetVal(roles)
		}
		if _, err := open0(t, p, "").Write(ctx, []byte("{}\n"), backend.Prior{Unknown: true}, ""); err != nil {
			t.Error(err)
		}
	}
	role["role_arn"] = cty.StringVal("other")
	p.Config["assume_role"] = cty.SetVal([]cty.Value{cty.ObjectVal(role)})
	var e *backend.Error
	if _, err := open0(t, p, "").Read(ctx); !errors.As(err, &e) || e.Argument != "assume_role" || !strings.Contains(e.Answer, "RoleNotExist") {
		t.Errorf("%#v", e)
	}
	delete(p.Config, "assume_role")
	p.Config["secret_key"] = cty.StringVal("planted-wrong")
	if _, err := open0(t, p, "").Read(ctx); !errors.As(err, &e) || e.Argument != "secret_id" || strings.Contains(err.Error(), "wrong") {
		t.Errorf("%#v", e)
	}
	p = place(t, s)
	p.Config["bucket"] = cty.StringVal("none-1")
	if _, err := open0(t, p, "").Read(ctx); !errors.As(err, &e) || e.Argument != "bucket" || !strings.Contains(e.Advice, "none-1") {
		t.Errorf("%#v", e)
	}
}

func TestBadConfiguration(t *testing.T) {
	for argument, config := range map[string]map[string]cty.Value{
		"region":    {"region": cty.NullVal(cty.String)},
		"bucket":    {"bucket": cty.StringVal("a/b")},
		"prefix":    {"prefix": cty.StringVal("./x")},
		"key":       {"key": cty.StringVal("/x")},
		"acl":       {"acl": cty.StringVal("public-read-write")},
		"secret_id": {"secret_key": cty.NullVal(cty.String)},
	} {
		for name, v := range map[string]string{"region": "r", "bucket": "b-1", "secret_id": "i", "secret_key": "k"} {
			if config[name] == cty.NilVal {
				config[name] = cty.StringVal(v)
			}
		}
		_, err := Kind().Open(ctx, backendtest.Config(t, Kind(), config), backendtest.Services(t))
		var e *backend.Error
		if !errors.As(err, &e) || e.Argument != argument {
			t.Errorf("%s: %v", argument, err)
		}
	}
}

func TestBeside(t *testing.T) {
	s := servers.COS(t)
	backendtest.Beside(t, Kind(), place(t, s), fmt.Sprintf(`
    bucket = %q
    region = %q
    prefix = "team/a b"`, s.Bucket, s.Region),
		"TENCENTCLOUD_SECRET_ID="+s.ID, "TENCENTCLOUD_SECRET_KEY="+s.Key, "HTTPS_PROXY="+s.Proxy, "SSL_CERT_FILE="+s.CAFile)
}
