package oss

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

func place(t *testing.T, s *servers.OSSServer) backendtest.Place {
	return backendtest.Place{
		Config: map[string]cty.Value{
			"bucket": cty.StringVal(s.Bucket), "endpoint": cty.StringVal(s.URL), "tablestore_endpoint": cty.StringVal(s.URL), "tablestore_table": cty.StringVal(s.Table),
			"access_key": cty.StringVal(s.ID), "secret_key": cty.StringVal(s.Key),
		},
		Services: backendtest.Services(t),
		Locks:    true, Workspaces: true,
		Steal:   func(*testing.T) { s.SetRow("states/env:/terraform.tfstate", "Info", `{"ID":"other"}`) },
		Secrets: []string{s.Key},
	}
}

func TestSuite(t *testing.T) {
	backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place { return place(t, servers.OSS(t)) })
	t.Run("without locks", func(t *testing.T) {
		backendtest.Run(t, Kind(), func(t *testing.T) backendtest.Place {
			p := place(t, servers.OSS(t))
			p.Locks, p.Steal = false, nil
			delete(p.Config, "tablestore_table")
			return p
		})
	})
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
	s := servers.OSS(t)
	p := place(t, s)
	for workspace, file := range map[string]string{"": "env:/terraform.tfstate", "dev": "env:/dev/terraform.tfstate"} {
		o := open0(t, p, workspace)
		id, err := o.Lock(ctx, store.LockInfo{ID: "x", Operation: "op", Created: time.Unix(0, 1).UTC()})
		if err != nil || id != "x" {
			t.Fatal(id, err)
		}
		if _, err := o.Write(ctx, []byte("{}\n"), backend.Prior{Absent: true}, id); err != nil {
			t.Fatal(err)
		}
		rows := s.Rows()
		if got := rows["states/"+file]["Info"]; got != `{"ID":"x","Operation":"op","Info":"","Who":"","Version":"","Created":"1970-01-01T00:00:00.000000001Z","Path":"states/`+file+`"}` {
			t.Error(got)
		}
		if got := rows["states/"+file+"-md5"]["Digest"]; got != "8a80554c91d9fca8acb82f023de02f11" {
			t.Error(got)
		}
		if err := o.Unlock(ctx, id); err != nil {
			t.Error(err)
		}
		if s.Rows()["states/"+file] != nil {
			t.Error("the lock is left")
		}
	}
	if got := strings.Join(s.Objects(), " "); got != "env:/dev/terraform.tfstate env:/terraform.tfstate" {
		t.Error(got)
	}
	// A state other than the last one written is not returned.
	s.Put("env:/terraform.tfstate", "older")
	var e *backend.Error
	if _, err := open0(t, p, "").Read(ctx); !errors.As(err, &e) || e.Argument != "tablestore_table" || !strings.Contains(e.Advice, "Digest") {
		t.Errorf("%v", err)
	}
}

// The encoding equals that of the vendor's client for the same rows.
func TestPlainBuffer(t *testing.T) {
	for _, c := range []struct {
		column, value string
		remove        bool
		want          string
	}{
		{"", "", false, "75000000010304060000004c6f636b494405080000000303000000622f6b0a000900"}, {"", "", true, "75000000010304060000004c6f636b494405080000000303000000622f6b0a00080907"}, {"Info", "{}", false, "75000000010304060000004c6f636b494405080000000303000000622f6b0a0002030404000000496e666f050700000003020000007b7d0a4909e6"},
	} {
		if got := hex.EncodeToString(encodeRow("b/k", []column{{c.column, c.value}}, c.remove)); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if _, err := decodeRow([]byte{0x75, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0x7f}); err == nil {
		t.Error("a name that is longer than the row was read")
	}
	for n := range 40 {
		decodeRow(encodeRow("b/k", []column{{"Info", "{}"}}, false)[:n]) // must not panic
	}
}

func TestCredentials(t *testing.T) {
	s := servers.OSS(t)
	p := place(t, s)
	delete(p.Config, "access_key")
	delete(p.Config, "secret_key")
	p.Config["sts_endpoint"] = cty.StringVal(s.URL)
	profile := filepath.Join(p.Services.Home, ".aliyun/config.json")
	os.MkdirAll(filepath.Dir(profile), 0o700)
	text := fmt.Sprintf(`{"current":"x","profiles":[{"name":"x","mode":"AK","access_key_id":%q,"access_key_secret":%q},{"name":"r","mode":"RamRoleArn","access_key_id":%q,"access_key_secret":%q,"ram_role_arn":%q,"ram_session_name":"me","expired_seconds":900}]}`, s.ID, s.Key, s.ID, s.Key, s.Role)
	if err := os.WriteFile(profile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  sys.Env
		role string
	}{
		"environment":     {sys.Env{"ALICLOUD_ACCESS_KEY=" + s.ID, "ALICLOUD_SECRET_KEY=" + s.Key}, ""},
		"other names":     {sys.Env{"ALICLOUD_ACCESS_KEY_ID=" + s.ID, "ALICLOUD_ACCESS_KEY_SECRET=" + s.Key}, ""},
		"profile":         {sys.Env{"ALICLOUD_PROFILE=x"}, ""},
		"profile of role": {sys.Env{"ALICLOUD_PROFILE=r"}, ""},
		"role":            {sys.Env{"ALICLOUD_PROFILE=x"}, s.Role},
	} {
		p.Services.Env = c.env
		delete(p.Config, "assume_role_role_arn")
		if c.role != "" {
			p.Config["assume_role_role_arn"] = cty.StringVal(c.role)
		}
		o := open0(t, p, "")
		id, err := o.Lock(ctx, store.LockInfo{ID: "1"})
		if err == nil {
			_, err = o.Write(ctx, []byte("{}\n"), backend.Prior{Unknown: true}, id)
		}
		if err == nil {
			err = o.Unlock(ctx, id)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var e *backend.Error
	p.Config["assume_role_role_arn"] = cty.StringVal("other")
	if _, err := open0(t, p, "").Read(ctx); !errors.As(err, &e) || e.Argument != "assume_role_role_arn" {
		t.Errorf("%v", err)
	}
	p = place(t, s)
	p.Config["secret_key"] = cty.StringVal("planted-wrong")
	if _, err := open0(t, p, "").Read(ctx); !errors.As(err, &e) || e.Argument != "access_key" || strings.Contains(err.Error(), "wrong") {
		t.Errorf("%v", err)
	}
	p = place(t, s)
	p.Config["tablestore_table"] = cty.StringVal("none")
	if _, err := open0(t, p, "").Lock(ctx, store.LockInfo{ID: "1"}); !errors.As(err, &e) || e.Argument != "tablestore_table" || !strings.Contains(e.Advice, "LockID") {
		t.Errorf("%v", err)
	}
}

func TestBeside(t *testing.T) {
	s := servers.OSS(t)
	backendtest.Beside(t, Kind(), place(t, s), fmt.Sprintf(`
    bucket              = %q
    region              = "cn-hangzhou"
    endpoint            = %q
    tablestore_endpoint = %q
    tablestore_table    = %q`, s.Bucket, s.URL, s.URL, s.Table),
		"ALICLOUD_ACCESS_KEY="+s.ID, "ALICLOUD_SECRET_KEY="+s.Key)
}

// If a run ends between writing the state and its checksum, the state can still be read,
// because the checksum was announced before.
func TestDigestIsAnnounced(t *testing.T) {
	s := servers.OSS(t)
	p := place(t, s)
	const id = "states/env:/terraform.tfstate-md5"
	md5Of := func(text string) string { return fmt.Sprintf("%x", md5.Sum([]byte(text))) }
	for i, text := range []string{"1\n", "2\n", "3\n"} {
		before := s.Rows()[id]["Digest"]
		if _, err := open0(t, p, "").Write(ctx, []byte(text), backend.Prior{Unknown: true}, ""); err != nil {
			t.Fatal(err)
		}
		row := s.Rows()[id]
		if row["Digest"] != md5Of(text) || row["NextDigest"] != "" {
			t.Errorf("after a write the row is %v", row)
		}
		if i == 1 { // as if the last request had failed
			s.SetRow(id, "Digest", before, "NextDigest", md5Of(text))
			if got, err := open0(t, p, "").Read(ctx); err != nil || string(got.Data) != text {
				t.Errorf("%q %v", got.Data, err)
			}
		}
	}
	s.Put("env:/terraform.tfstate", "other")
	if _, err := open0(t, p, "").Read(ctx); err == nil {
		t.Error("a state that nobody announced is read")
	}
}
