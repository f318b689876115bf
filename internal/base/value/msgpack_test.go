package value

import (
	"strings"
	"testing"
)

func TestCheckMsgpack(t *testing.T) {
	deep := strings.Repeat("\x91", maxDepth-1) + "\xc0"
	for in, want := range map[string]string{
		"\xc0": "", "\x00": "", "\xe0": "", "\xa1x": "", "\xd9\x01x": "", "\xda\x00\x01x": "", "\xdb\x00\x00\x00\x01x": "",
		"\xc4\x01x": "", "\xc5\x00\x01x": "", "\xc6\x00\x00\x00\x01x": "", "\xc7\x01\x0cx": "", "\xc8\x00\x01\x0cx": "", "\xc9\x00\x00\x00\x01\x0cx": "",
		"\xca0000": "", "\xcb00000000": "", "\xcc0": "", "\xcd00": "", "\xce0000": "", "\xcf00000000": "", "\xd00": "", "\xd100": "", "\xd20000": "", "\xd300000000": "",
		"\xd40x": "", "\xd50xx": "", "\xd60xxxx": "", "\xd70xxxxxxxx": "", "\xd80xxxxxxxxxxxxxxxx": "",
		"\x90": "", "\x92\xc0\xc0": "", "\x80": "", "\x81\xa1k\xc3": "", "\xdc\x00\x01\xc2": "", "\xdd\x00\x00\x00\x01\xc2": "", "\xde\x00\x01\xc2\xc2": "", "\xdf\x00\x00\x00\x01\xc2\xc2": "",
		deep: "", "\x91" + deep: "nested",
		"": "cut off", "\xa1": "cut off", "\xd9": "cut off", "\xd9\x02x": "cut off", "\x92\xc0": "cut off", "\xdd\xff\xff\xff\xff\xc0": "cut off", "\xdf\xff\xff\xff\xff": "cut off",
		"\xdb\xff\xff\xff\xffx": "cut off", "\xcb000": "cut off", "\xd4": "cut off", "\xc7\x01": "cut off", "\xc1": "0xc1", "\xc0\xc0": "more follows",
	} {
		err := CheckMsgpack([]byte(in))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%x: %v, want %q", in, err, want)
		}
	}
}
