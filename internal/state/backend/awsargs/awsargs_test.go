package awsargs_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/aws"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/awsargs"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

type vals = map[string]cty.Value

func read(t *testing.T, env sys.Env, set vals) (aws.Options, error) {
	t.Helper()
	b := &schema.Block{Attributes: backend.Optional(awsargs.Attributes())}
	all := b.Empty().AsValueMap()
	for name, v := range set {
		all[name] = v
	}
	v, err := b.Coerce(cty.ObjectVal(all))
	if err != nil {
		t.Fatal(err)
	}
	a := backend.NewArgs(v, env)
	return awsargs.Options(a), a.Err()
}

func text(s string) cty.Value { return cty.StringVal(s) }

func texts(s string) cty.Value { return cty.SetVal([]cty.Value{text(s)}) }

// object returns a value of a type, with some attributes set.
func object(ty cty.Type, set vals) cty.Value {
	all := vals{}
	for name, ty := range ty.AttributeTypes() {
		all[name] = cty.NullVal(ty)
	}
	for name, v := range set {
		all[name] = v
	}
	return cty.ObjectVal(all)
}

// Errors refer to the affected argument.
func TestRefused(t *testing.T) {
	role := func(set vals) cty.Value { return object(awsargs.Role(), set) }
	for _, tt := range []struct {
		argument string
		set      vals
	}{
		{"access_key", vals{"access_key": text("a")}},
		{"access_key", vals{"secret_key": text("a")}},
		{"shared_credentials_file", vals{"shared_credentials_file": text("a"), "shared_credentials_files": texts("b")}},
		{"allowed_account_ids", vals{"allowed_account_ids": texts("1"), "forbidden_account_ids": texts("2")}},
		{"retry_mode", vals{"retry_mode": text("often")}},
		{"ec2_metadata_service_endpoint_mode", vals{"ec2_metadata_service_endpoint_mode": text("IPv5")}},
		{"external_id", vals{"assume_role": role(vals{"role_arn": text("r")}), "external_id": text("e")}},
		{"assume_role", vals{"assume_role": role(nil)}},
		{"assume_role", vals{"assume_role": role(vals{"role_arn": text("r"), "duration": text("14m")})}},
		{"assume_role_with_web_identity", vals{"assume_role_with_web_identity": object(awsargs.WebIdentity(), vals{"role_arn": text("r")})}},
	} {
		_, err := read(t, nil, tt.set)
		var e *backend.Error
		if !errors.As(err, &e) || e.Argument != tt.argument {
			t.Errorf("%v: %v", tt.set, err)
		}
	}
	if _, err := read(t, nil, nil); err != nil {
		t.Errorf("nothing is set: %v", err)
	}
}

// The older form of a role has the same meaning as the block.
func TestOlderRole(t *testing.T) {
	older, err := read(t, nil, vals{
		"role_arn": text("r"), "session_name": text("s"), "external_id": text("e"), "assume_role_duration_seconds": cty.NumberIntVal(1800), "assume_role_policy": text("p"),
		"assume_role_policy_arns": texts("a"), "assume_role_tags": cty.MapVal(vals{"k": text("v")}), "assume_role_transitive_tag_keys": texts("k"),
	})
	if err != nil {
		t.Fatal(err)
	}
	newer, err := read(t, nil, vals{"assume_role": object(awsargs.Role(), vals{
		"role_arn": text("r"), "session_name": text("s"), "external_id": text("e"), "duration": text("30m"), "policy": text("p"),
		"policy_arns": texts("a"), "tags": cty.MapVal(vals{"k": text("v")}), "transitive_tag_keys": texts("k"),
	})})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(newer.AssumeRole, older.AssumeRole); diff != "" || len(older.AssumeRole) != 1 || older.AssumeRole[0].Duration != 30*time.Minute {
		t.Errorf("%+v\n%s", older.AssumeRole, diff)
	}
}

// A web identity uses the environment for arguments missing in its block.
func TestWebIdentity(t *testing.T) {
	o, err := read(t, sys.Env{"AWS_ROLE_ARN=r", "AWS_WEB_IDENTITY_TOKEN_FILE=f", "AWS_ROLE_SESSION_NAME=other"}, vals{
		"assume_role_with_web_identity": object(awsargs.WebIdentity(), vals{"session_name": text("s")}),
	})
	want := &aws.WebIdentity{Role: aws.Role{ARN: "r", SessionName: "s"}, TokenFile: "f"}
	if diff := cmp.Diff(want, o.WebIdentity); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// A proxy that is set to "" differs from one that is not set.
func TestProxy(t *testing.T) {
	o, err := read(t, nil, vals{"https_proxy": text("")})
	if err != nil || o.HTTPSProxy == nil || *o.HTTPSProxy != "" || o.HTTPProxy != nil {
		t.Errorf("%v %v, %v", o.HTTPSProxy, o.HTTPProxy, err)
	}
}
