package source

import "testing"

func TestHideCredentials(t *testing.T) {
	for in, want := range map[string]string{
		"git::https://user:pw@host.example/x.git?ref=v1":              "git::https://(hidden)@host.example/x.git?ref=v1",
		"https://ghp_token@host.example/x":                            "https://(hidden)@host.example/x",
		"https://user:p@w@host.example/x":                             "https://(hidden)@host.example/x",
		"git::ssh://git@host.example/x":                               "git::ssh://git@host.example/x",
		"git::ssh://git:pw@host.example/x":                            "git::ssh://(hidden)@host.example/x",
		"git@host.example:x/y.git?sshkey=AAAA&ref=v1":                 "git@host.example:x/y.git?sshkey=(hidden)&ref=v1",
		"https://host.example/x.zip?X-Amz-Signature=ab12&archive=zip": "https://host.example/x.zip?X-Amz-Signature=(hidden)&archive=zip",
		"s3::https://s3.example/b/k?aws_access_key_id=A&aws_access_key_secret=B&aws_access_token=C&region=r": "s3::https://s3.example/b/k?aws_access_key_id=(hidden)&aws_access_key_secret=(hidden)&aws_access_token=(hidden)&region=r",
		`source = "https://host.example/x?private_token=abc" # ref`:                                          `source = "https://host.example/x?private_token=(hidden)" # ref`,
		`{"a":"https://host.example/x?a=b\u0026sig=abc"}`:                                                    `{"a":"https://host.example/x?a=b\u0026sig=(hidden)"}`,
		"https://host.example/x?token=a%2Fb, and more":                                                       "https://host.example/x?token=(hidden) and more",
		"https://host.example/a and somebody@host.example":                                                   "https://host.example/a and somebody@host.example",
		"https://${var.u}:${var.p}@host.example/x?token=${var.t}":                                            "https://${var.u}:${var.p}@host.example/x?token=${var.t}",
		"https://oauth2:${var.p}@host.example/x?token=a${var.t}":                                             "https://oauth2:${var.p}@host.example/x?token=(hidden)",
		"https://user:pw${var.p}@host.example/x":                                                             "https://(hidden)@host.example/x",
		"registry.example/a/b/c":                                                                             "registry.example/a/b/c",
		"a = b ? c.key : d@e":                                                                                "a = b ? c.key : d@e",
	} {
		if got := HideCredentials(in); got != want {
			t.Errorf("%s:\n%s, want\n%s", in, got, want)
		}
	}
}
