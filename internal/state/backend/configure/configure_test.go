package configure_test

import (
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/state/backend/configure"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

var role = cty.Object(map[string]cty.Type{"arn": cty.String, "session": cty.String})

func block() *schema.Block {
	return &schema.Block{Attributes: map[string]*schema.Attribute{
		"bucket": {Type: cty.String, Required: true}, "role": {Type: role, Optional: true},
	}}
}

// An object argument may lack attributes in any syntax. An unknown attribute is an error.
func TestObjects(t *testing.T) {
	want := cty.ObjectVal(map[string]cty.Value{"arn": cty.StringVal("a"), "session": cty.NullVal(cty.String)})
	given := cty.ObjectVal(map[string]cty.Value{"bucket": cty.StringVal("b"), "role": cty.ObjectVal(map[string]cty.Value{"arn": cty.StringVal("a")})})
	v, err := configure.Value("s3", block(), given)
	if err != nil || !v.GetAttr("role").RawEquals(want) {
		t.Errorf("of a value: %#v, %v", v, err)
	}
	v, err = configure.With(block(), v, "role", `{ arn = "a" }`)
	if err != nil || !v.GetAttr("role").RawEquals(want) {
		t.Errorf("of an option: %#v, %v", v, err)
	}
	wrong := cty.ObjectVal(map[string]cty.Value{"bucket": cty.StringVal("b"), "role": cty.ObjectVal(map[string]cty.Value{"arm": cty.StringVal("a")})})
	if _, err := configure.Value("s3", block(), wrong); err == nil || !strings.Contains(err.Error(), `no attribute "arm"`) {
		t.Errorf("an attribute that does not exist: %v", err)
	}
}
