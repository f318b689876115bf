package provisioner

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

func TestValidate(t *testing.T) {
	null := cty.NullVal(cty.String)
	s := cty.StringVal
	list := func(v ...cty.Value) cty.Value { return cty.ListVal(v) }
	type object = map[string]cty.Value
	host := object{"host": s("h")}
	tests := []struct {
		name   string
		typ    string
		config object
		conn   object
		want   string // "" for none
	}{
		{"command", "local-exec", object{"command": s("x")}, nil, ""},
		{"empty command", "local-exec", object{"command": s("")}, nil, "must be a non-empty string"},
		{"unknown command", "local-exec", object{"command": cty.UnknownVal(cty.String)}, nil, ""},
		{"null in interpreter", "local-exec", object{"command": s("x"), "interpreter": list(s("a"), null)}, nil, "must be strings, not null"},
		{"nothing to run", "remote-exec", object{"inline": cty.NullVal(cty.List(cty.String))}, host, `Exactly one of "inline", "script" and "scripts"`},
		{"two to run", "remote-exec", object{"inline": list(s("x")), "script": s("x")}, host, `Exactly one of "inline", "script" and "scripts"`},
		{"perhaps two to run", "remote-exec", object{"inline": list(s("x")), "script": cty.UnknownVal(cty.String)}, host, ""},
		{"empty path", "remote-exec", object{"scripts": list(s(""))}, host, "not empty"},
		{"empty line", "remote-exec", object{"inline": list(s(""))}, host, ""},
		{"no connection yet", "remote-exec", object{"inline": list(s(""))}, nil, ""},
		{"source and content", "file", object{"destination": s("d"), "source": s("s"), "content": s("c")}, host, `Exactly one of "source" and "content"`},
		{"neither", "file", object{"destination": s("d"), "source": null}, host, `Exactly one of "source" and "content"`},
		{"no destination", "file", object{"destination": s(""), "source": s("s")}, host, "destination must be a non-empty"},
		{"marked", "file", object{"destination": s("").Mark("m"), "source": s("s")}, host, "destination must be a non-empty"},
		{"winrm", "file", object{"destination": s("d"), "source": s("s")}, object{"host": s("h"), "type": s("winrm")}, `use type = "ssh" with target_platform = "windows"`},
		{"winrm unused", "local-exec", object{"command": s("d")}, object{"host": s("h"), "type": s("winrm")}, ""},
		{"telnet", "file", object{"destination": s("d"), "source": s("s")}, object{"host": s("h"), "type": s("telnet")}, `no connection type "telnet"`},
		{"no host", "file", object{"destination": s("d"), "source": s("s")}, object{"host": s("")}, "The host must be"},
		{"timeout", "file", object{"destination": s("d"), "source": s("s")}, object{"host": s("h"), "timeout": s("5")}, "must be a duration"},
		{"negative timeout", "file", object{"destination": s("d"), "source": s("s")}, object{"host": s("h"), "timeout": s("-5s")}, "must be a duration"},
		{"port", "file", object{"destination": s("d"), "source": s("s")}, object{"host": s("h"), "port": cty.NumberFloatVal(2.5)}, "whole number"},
		{"platform", "file", object{"destination": s("d"), "source": s("s")}, object{"host": s("h"), "target_platform": s("vms")}, `"unix" or "windows"`},
		{"proxy", "file", object{"destination": s("d"), "source": s("s")}, object{"host": s("h"), "proxy_scheme": s("gopher")}, `"http", "https" or "socks5"`},
		{"path as key", "file", object{"destination": s("d"), "source": s("s")}, object{"host": s("h"), "private_key": s("~/.ssh/id")}, "contents of a key file, not its path"},
		{"locked key", "file", object{"destination": s("d"), "source": s("s")}, object{"host": s("h"), "bastion_private_key": s(lockedKey)}, "protected by a passphrase"},
		{"certificate", "file", object{"destination": s("d"), "source": s("s")}, object{"host": s("h"), "certificate": s("x")}, "certificate cannot be used"},
		{"host key", "file", object{"destination": s("d"), "source": s("s")}, object{"host": s("h"), "host_key": s("x")}, "host key cannot be used"},
		{"nothing known", "file", object{"destination": cty.UnknownVal(cty.String), "source": cty.UnknownVal(cty.String)}, object{"host": cty.UnknownVal(cty.String), "private_key": cty.UnknownVal(cty.String)}, ""},
		{"chef", "chef", nil, nil, `The "chef" provisioner has been removed`},
		{"foreign", "ansible", nil, nil, "terraform-provisioner-ansible are not run"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conn := cty.NilVal
			if tt.conn != nil {
				conn = cty.ObjectVal(tt.conn)
			}
			ds := Validate(tt.typ, cty.ObjectVal(tt.config), conn)
			switch {
			case tt.want == "" && len(ds) > 0:
				t.Error(ds[0].Summary, ds[0].Detail)
			case tt.want != "" && (len(ds) == 0 || !strings.Contains(ds[0].Summary+" "+ds[0].Detail, tt.want)):
				t.Errorf("%v", ds.Err())
			}
		})
	}
}

func TestSchemas(t *testing.T) {
	for _, typ := range Types() {
		if Schema(typ) == nil {
			t.Error(typ)
		}
	}
	if Schema("chef") != nil || !ConnectionSchema().Attributes["host"].Required {
		t.Error("wrong schema")
	}
	if ds := Validate("file", cty.DynamicVal, cty.DynamicVal); len(ds) > 0 {
		t.Error(ds.Err())
	}
}

// lockedKey was created for this test with ssh-keygen -N secret. It is used nowhere else.
const lockedKey = `-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABAUFqWnU6
xPRZmpMlYxNYNRAAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIM3cY1VcX7451zPA
cJ3ef7rG/nfyIREcTGuMqr/as+BUAAAAkN1avIm4xEZPBLRUr3Yjq2+IRh8+VBhlh3gwec
kvsUlGGMAIGH5qBqCh6FpyqvKFofViwNgkkMWiTwyT9C1Qu3ge1ncbD7nItCO78qXLJVih
5hZbNshRWspyFzNMXYrtUBWAj0532ANeQNGHnRRSCJe0PI9rgcXBmccF+/wLlvVYr1J0yN
TtqqUJIpyXO/eVlg==
-----END OPENSSH PRIVATE KEY-----
`
