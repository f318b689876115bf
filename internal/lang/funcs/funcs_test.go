package funcs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// documented is the function index of OpenTofu 1.12, with the functions of the console, and convert and
// the assume functions of 1.13.
const documented = `
abs abspath alltrue anytrue assumeequal assumelistlength assumelistlengthmax assumelistlengthmin assumemaplength
assumemaplengthmax assumemaplengthmin assumenotnull assumesetlength assumesetlengthmax assumesetlengthmin
assumestringprefix base64decode base64encode base64gunzip base64gzip base64sha256 base64sha512 basename bcrypt
can ceil chomp chunklist cidrcontains cidrhost cidrnetmask cidrsubnet cidrsubnets coalesce coalescelist compact concat
contains convert csvdecode dirname distinct element endswith ephemeralasnull file filebase64 filebase64sha256 filebase64sha512
fileexists filemd5 fileset filesha1 filesha256 filesha512 flatten floor format formatdate formatlist indent index
issensitive join jsondecode jsonencode keys length list log lookup lower map matchkeys max md5 merge min nonsensitive one
parseint pathexpand plantimestamp pow range regex regexall replace reverse rsadecrypt sensitive setintersection setproduct
setsubtract setunion sha1 sha256 sha512 signum slice sort split startswith strcontains strrev substr sum templatefile
templatestring textdecodebase64 textencodebase64 timeadd timecmp timestamp title tobool tolist tomap tonumber toset
tostring transpose trim trimprefix trimspace trimsuffix try type upper urldecode urlencode uuid uuidv5 values yamldecode
yamlencode zipmap`

func TestNames(t *testing.T) {
	if d := cmp.Diff(strings.Fields(documented), Names()); d != "" {
		t.Error(d)
	}
}

func TestTable(t *testing.T) {
	for _, console := range []bool{false, true} {
		table := Table(Config{Console: console})
		for _, name := range append(Names(), "defaults") {
			_, short := table[name]
			_, long := table["core::"+name]
			want := name != "type" || console
			if name == "plantimestamp" {
				want = !console
			}
			if short != want || long != want {
				t.Errorf("console %v: %s is there: %v, core::%s: %v; want %v", console, name, short, name, long, want)
			}
			if want && table[name].Description() == "" {
				t.Errorf("%s has no description", name)
			}
		}
		if len(table) != 2*len(Names()) { // defaults more, type or plantimestamp less
			t.Errorf("console %v: %d functions", console, len(table))
		}
	}
}

func BenchmarkTable(b *testing.B) {
	Table(Config{})
	b.ReportAllocs()
	for b.Loop() {
		Table(Config{BaseDir: "/x"})
	}
}

// Configured finds each function that depends on a Config, and no other.
func TestConfigured(t *testing.T) {
	for name, want := range map[string]bool{
		`file("x")`: true, `core::file("x")`: true, "templatefile (a, b)": true, "timestamp/* now */()": true, "abspath # c\n(x)": true, "plantimestamp()": true, "uuid()": true,
		"profile(x)": false, "file": false, "files(x)": false, `upper("a")`: false, "local.file": false, "description = \"a file of (x)\"": false,
	} {
		if got := Configured([]byte("a = " + name)); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
