package tracelog

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

func clock() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 6e6, time.UTC) }

func TestWhatIsWanted(t *testing.T) {
	for env, want := range map[string]string{
		"":                                   "",
		"TF_LOG=off":                         "",
		"TF_LOG=":                            "",
		"TF_LOG=error":                       "2030-01-02T03:04:05.006Z [ERROR] bad\n",
		"TF_LOG=INFO":                        "2030-01-02T03:04:05.006Z [ERROR] bad\n2030-01-02T03:04:05.006Z [INFO]  begun\n2030-01-02T03:04:05.006Z [INFO]  provider.x: said n=1\n",
		"TF_LOG_CORE=INFO":                   "2030-01-02T03:04:05.006Z [ERROR] bad\n2030-01-02T03:04:05.006Z [INFO]  begun\n",
		"TF_LOG=INFO TF_LOG_CORE=ERROR":      "2030-01-02T03:04:05.006Z [ERROR] bad\n2030-01-02T03:04:05.006Z [INFO]  provider.x: said n=1\n",
		"TF_LOG_PROVIDER=debug":              "2030-01-02T03:04:05.006Z [DEBUG] provider.x: plain\n2030-01-02T03:04:05.006Z [INFO]  provider.x: said n=1\n",
		"TF_LOG=ERROR TF_LOG_PROVIDER=INFO":  "2030-01-02T03:04:05.006Z [ERROR] bad\n2030-01-02T03:04:05.006Z [INFO]  provider.x: said n=1\n",
		"TF_LOG=JSON TF_LOG_PROVIDER=off":    `{"@level":"error","@message":"bad","@timestamp":"2030-01-02T03:04:05.006000Z"}` + "\n" + `{"@level":"info","@message":"begun","@timestamp":"2030-01-02T03:04:05.006000Z"}` + "\n",
		"TF_LOG_CORE=off TF_LOG=json":        `{"@level":"debug","@message":"plain","@module":"provider.x","@timestamp":"2030-01-02T03:04:05.006000Z"}` + "\n" + `{"@level":"info","@message":"said","n":1}` + "\n",
		"TF_LOG_CORE=loud":                   "2030-01-02T03:04:05.006Z [WARN]  \"loud\" is no level of the log. Those that there are: TRACE, DEBUG, INFO, WARN, ERROR, OFF and JSON. It is taken for TRACE.\n2030-01-02T03:04:05.006Z [ERROR] bad\n2030-01-02T03:04:05.006Z [INFO]  begun\n",
		"TF_LOG_PATH=nowhere TF_LOG_OTHER=1": "",
	} {
		var out bytes.Buffer
		l, end := Open(sys.Env(strings.Fields(env)), t.TempDir(), &out, clock)
		l.Printf(Error, "%s", "bad")
		l.Printf(Info, "begun")
		if w := l.Provider("x"); w != nil {
			_, _ = io.WriteString(w, "pla")
			_, _ = io.WriteString(w, "in\r\n{\"@level\":\"info\",\"@message\":\"said\",\"n\":1}\nwithout an end")
		}
		end()
		if got := out.String(); got != want {
			t.Errorf("with %q the log is\n%s\nwant\n%s", env, got, want)
		}
	}
}

func TestItGoesToTheEndOfAFile(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		var out bytes.Buffer
		l, end := Open(sys.Env{"TF_LOG=TRACE", "TF_LOG_PATH=log.txt"}, dir, &out, clock)
		l.Printf(Trace, "once")
		end()
		if out.Len() > 0 {
			t.Errorf("written beside the file: %s", &out)
		}
	}
	got, err := os.ReadFile(filepath.Join(dir, "log.txt"))
	if want := strings.Repeat("2030-01-02T03:04:05.006Z [TRACE] once\n", 2); err != nil || string(got) != want {
		t.Errorf("the file holds %q, %v", got, err)
	}
	var out bytes.Buffer
	l, end := Open(sys.Env{"TF_LOG=TRACE", "TF_LOG_PATH=" + filepath.Join(dir, "no", "folder")}, dir, &out, clock)
	l.Printf(Info, "still")
	end()
	if !strings.HasPrefix(out.String(), "Error opening log file: ") || !strings.HasSuffix(out.String(), "[INFO]  still\n") {
		t.Errorf("without a directory: %s", &out)
	}
}
