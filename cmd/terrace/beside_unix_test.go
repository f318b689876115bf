//go:build unix

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"

	"github.com/jackc/pgx/v5/pgconn"
)

// besideConfig has an object that exists before the apply (old), one that the apply has
// created when the other commands run (a), and one that it is creating until the file go
// exists.
const besideConfig = `
variable "root" { default = "%s" }
resource "terraform_data" "old" { input = "old" }
resource "terraform_data" "a" { input = "new" }
resource "terraform_data" "b" {
  depends_on = [terraform_data.a]
  provisioner "local-exec" {
    command = "touch ${var.root}/started; for i in $(seq 24000); do test -e ${var.root}/go && break; sleep 0.05; done"
  }
}
output "old" { value = terraform_data.old.output }
`

// A besider is a command that runs concurrently with an apply.
type besider struct {
	args  string
	stdin string
	// locks means that the command supports -lock=false. Without this flag, it must be
	// refused.
	locks bool
	// want is the expected result without the lock. "reads": it ends with 0 or 2 and sees
	// what the apply has done so far. "works": it ends with 0 and is independent of the
	// apply. "refused": it ends with 1 and reports that another run is working or that the
	// state is locked.
	want string
}

const (
	reads   = "reads"
	works   = "works"
	refused = "refused"
	looks   = "looks" // any result is accepted
)

// besiders are the commands that read or write the state of a directory. {} is replaced by
// the directory.
var besiders = []besider{
	{args: "plan", locks: true, want: reads},
	{args: "plan -refresh-only", locks: true, want: works},
	{args: "plan -destroy", locks: true, want: reads},
	{args: "plan -refresh=false -detailed-exitcode", locks: true, want: reads},
	{args: "plan -replace=terraform_data.a", locks: true, want: reads},
	{args: "plan -json", locks: true, want: reads},
	{args: "plan -out={}/saved", locks: true, want: reads},
	{args: "drift", locks: true, want: works},
	{args: "apply -auto-approve", locks: true, want: refused},
	{args: "apply -auto-approve -refresh-only", locks: true, want: refused},
	{args: "apply -auto-approve -json", locks: true, want: refused},
	{args: "apply -auto-approve -replace=terraform_data.old", locks: true, want: refused},
	{args: "apply {}/saved", locks: true, want: refused},
	{args: "destroy -auto-approve", locks: true, want: refused},
	{args: "refresh", locks: true, want: refused},
	{args: "import terraform_data.b x", locks: true, want: refused},
	{args: "taint terraform_data.old", locks: true, want: refused},
	{args: "taint terraform_data.a", locks: true, want: refused},
	{args: "untaint terraform_data.old", locks: true, want: refused},
	{args: "state list", want: reads},
	{args: "state show terraform_data.a", want: reads},
	{args: "state pull", want: reads},
	{args: "state mv terraform_data.old terraform_data.other", locks: true, want: refused},
	{args: "state mv terraform_data.a terraform_data.other", locks: true, want: refused},
	{args: "state rm terraform_data.old", locks: true, want: refused},
	{args: "state rm terraform_data.a", locks: true, want: refused},
	{args: "state push {}/pushed", locks: true, want: refused},
	{args: "state push -force {}/pushed", locks: true, want: refused},
	{args: "state replace-provider -auto-approve terraform.io/builtin/terraform registry.opentofu.org/x/y", locks: true, want: refused},
	{args: "output", want: works},
	{args: "output -json", want: works},
	{args: "output -raw old", want: works},
	{args: "show", want: reads},
	{args: "show -json", want: reads},
	{args: "console", stdin: "terraform_data.a.output\n", want: works},
	{args: "graph", want: works},
	{args: "providers", want: works},
	{args: "explain output.old", want: works},
	{args: "validate", want: works},
	{args: "test", want: works},
	{args: "get", want: works},
	{args: "init", want: works},
	{args: "init -reconfigure", want: works},
	{args: "force-unlock -force 11111111-2222-3333-4444-555555555555", want: refused},
	{args: "force-unlock -force {lock}", want: refused},
	{args: "run plan", locks: true, want: reads},
	{args: "run --all plan", locks: true, want: reads},
	{args: "run --all apply --non-interactive", locks: true, want: refused},
	{args: "run --all apply --non-interactive -refresh-only", locks: true, want: refused},
	{args: "run --all destroy --non-interactive", locks: true, want: refused},
	{args: "run --all refresh --non-interactive", locks: true, want: refused},
	{args: "run --all output", want: works},
	{args: "run --all show", want: reads},
	{args: "run --all validate", want: works},
	{args: "run state list", want: reads},
	{args: "run state rm terraform_data.old", locks: true, want: refused},
	{args: "run taint terraform_data.old", locks: true, want: refused},
	{args: "run --all init", want: works},
	{args: "run --all drift", locks: true, want: works},
	{args: "run --all plan -out={}/estateplan", locks: true, want: reads},
	{args: "run --all apply -auto-approve {}/estateplan", locks: true, want: refused},
	{args: "backend doctor", want: looks},
	{args: "workspace new other", want: works},
	{args: "workspace select default", want: works},
	{args: "workspace list", want: works},
	{args: "workspace delete other", want: works},
	{args: "workspace delete -force default", want: looks},
}

// untrue matches texts that are false while the apply is working.
var untrue = regexp.MustCompile(`(?i)earlier run|was interrupted|interrupted run|may have happened|was killed`)

// mayBe is the text if a journal is in the store and it is unknown whether its run is
// working.
const mayBe = "A run that has not ended, or was interrupted"

// atWork matches the messages of a command that is refused.
var atWork = regexp.MustCompile(`(?s)Another run is still running|Error acquiring the state lock|state is (already )?locked|State locked by another local process|Failed to unlock`)

// lockLost matches the message of an apply whose lock was taken away.
var lockLost = regexp.MustCompile(`not\s+held\s+any\s+more`)

// A besideStore is a store for the state of the apply.
type besideStore struct {
	backend  string            // the backend block
	env      []string          // of the commands in the directory
	touched  func() string     // the content of the store, with its lock
	lockID   func() string     // the ID of the apply's lock
	mirrored bool              // the store also has the journal
	remote   bool              // its lock can be released by its ID
	skip     func(string) bool // commands with another meaning there; may be nil
}

var besideAll = flag.Bool("beside", false, "commands beside an apply also on S3 and PostgreSQL, and with a configuration that changes meanwhile")

// TestBesideApply runs every command that reads or writes state during an apply, with and
// without -lock=false. The commands change nothing of the apply, do not report that it has
// ended, and it ends as if it had been alone. Finally its lock is taken away, and the apply
// overwrites nothing.
func TestBesideApply(t *testing.T) {
	terrace := testkit.Terrace(t)
	for name, open := range map[string]func(t *testing.T, dir string) besideStore{
		"local": besideFiles,
		"http":  besideHTTP,
		"s3":    besideS3,
		"pg":    besidePG,
	} {
		if (name == "pg" || name == "s3") && !*besideAll {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir)
			b := &beside{killer: killer{t: t, terrace: terrace, dir: dir}, store: s}
			b.env = environ(append(s.env, "TF_CLI_CONFIG_FILE="+os.DevNull, "TMPDIR="+b.tmp(), "TF_STATE_PERSIST_INTERVAL=3600")...)
			b.run(s.backend)
		})
	}
}

func besideFiles(_ *testing.T, dir string) besideStore {
	return besideStore{
		backend: fmt.Sprintf("terraform {\n  backend \"local\" {\n    path = %q\n  }\n}\n", filepath.Join(dir, "terraform.tfstate")),
		touched: func() string { return "" },
		lockID: func() string {
			var info struct{ ID string }
			raw, _ := os.ReadFile(filepath.Join(dir, ".terraform.tfstate.lock.info"))
			_ = json.Unmarshal(raw, &info)
			return info.ID
		},
	}
}

func besideHTTP(t *testing.T, _ string) besideStore {
	service := servers.HTTP(t)
	return besideStore{
		backend: fmt.Sprintf("terraform {\n  backend \"http\" {\n    address = \"%[1]s/state\"\n    lock_address = \"%[1]s/lock\"\n    unlock_address = \"%[1]s/lock\"\n  }\n}\n", service.URL),
		touched: func() string { return service.State() + service.Lock() },
		lockID: func() string {
			var info struct{ ID string }
			_ = json.Unmarshal([]byte(service.Lock()), &info)
			return info.ID
		},
		// A process with the ID may release this lock, which unlock tests at the end.
		skip: func(args string) bool {
			return strings.Contains(args, "{lock}") || strings.HasPrefix(args, "workspace ")
		},
		remote: true,
	}
}

func besideS3(t *testing.T, _ string) besideStore {
	service := servers.AWS(t)
	service.Bucket("states")
	return besideStore{
		backend: fmt.Sprintf(inStore, service.URL),
		env:     []string{"AWS_ACCESS_KEY_ID=" + servers.AccessKey, "AWS_SECRET_ACCESS_KEY=" + servers.SecretKey, "AWS_EC2_METADATA_DISABLED=true", "TERRACE_JOURNAL=store"},
		touched: func() string {
			var b strings.Builder
			for _, key := range service.Objects("states") {
				if strings.HasPrefix(key, "env:/") { // another workspace
					continue
				}
				fmt.Fprintf(&b, "%s\n%s\n", key, service.Object("states", key))
			}
			return b.String()
		},
		lockID:   func() string { return "" },
		mirrored: true,
		skip:     func(args string) bool { return strings.Contains(args, "{lock}") },
	}
}

func besidePG(t *testing.T, _ string) besideStore {
	url := servers.Postgres(t)
	return besideStore{
		backend: fmt.Sprintf("terraform {\n  backend \"pg\" {\n    conn_str = %q\n  }\n}\n", url),
		touched: func() string {
			ctx := context.Background()
			c, err := pgconn.Connect(ctx, url)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close(ctx)
			return fmt.Sprintf("%s", c.ExecParams(ctx, "SELECT id, data FROM terraform_remote_state.states WHERE name = 'default'", nil, nil, nil, nil).Read().Rows)
		},
		lockID: func() string { return "" },
		skip:   func(args string) bool { return strings.Contains(args, "{lock}") },
	}
}

type beside struct {
	killer
	store besideStore
}

func (b *beside) write(name, text string) {
	b.t.Helper()
	b.must(os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644))
}

func (b *beside) run(backend string) {
	b.write("main.tf", fmt.Sprintf(besideConfig, b.dir))
	b.write("backend.tf", backend)
	b.write("terragrunt.hcl", "")
	b.write("x.tftest.hcl", "run \"r\" {\n  command = plan\n}\n")
	// The expected results are those of a plain directory, but with run.
	b.env = append(b.env, "TERRACE_AS=tofu")
	b.ok("init")
	b.ok("apply", "-auto-approve", "-target=terraform_data.old")
	pushed := b.ok("state", "pull")
	b.write("pushed", string(pushed))

	apply := b.command("apply", "-auto-approve")
	var out bytes.Buffer
	apply.Stdout, apply.Stderr = &out, &out
	b.must(apply.Start())
	ended := make(chan error, 1)
	go func() { ended <- apply.Wait() }()
	stopped := false
	end := func() {
		if !stopped {
			stopped = true
			b.write("go", "")
			<-ended
		}
	}
	defer end()
	for {
		if _, err := os.Stat(filepath.Join(b.dir, "started")); err == nil && b.noted() {
			break
		}
		select {
		case err := <-ended:
			stopped = true
			b.t.Fatalf("the apply ended by itself: %v\n%s", err, out.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	b.all(out.String)
	if *besideAll {
		b.meanwhile()
	}
	b.migrate(backend)
	b.unlock()
	stopped = true
	b.write("go", "")
	err := <-ended
	if b.store.remote {
		b.lost(err, out.String())
		return
	}
	if err != nil {
		b.t.Fatalf("the apply beside which others ran: %v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "2 added") || untrue.MatchString(out.String()) {
		b.t.Errorf("the apply says:\n%s", out.String())
	}
	if got := string(b.ok("plan", "-detailed-exitcode")); strings.Contains(got, "Warning") || untrue.MatchString(got) {
		b.t.Errorf("after the apply:\n%s", got)
	}
	if got := b.left(); len(got) > 0 {
		b.t.Errorf("the apply left %v", got)
	}
}

// all runs the commands, and checks after each that the files of the apply are unchanged.
func (b *beside) all(said func() string) {
	b.t.Helper()
	before := b.seen()
	for _, c := range besiders {
		if b.store.skip != nil && b.store.skip(c.args) {
			continue
		}
		for _, lock := range []bool{true, false} {
			if !lock && !c.locks {
				continue
			}
			want := c.want
			if lock && c.locks {
				want = refused
			}
			b.one(c, lock, want)
			if now := b.seen(); now != before {
				b.t.Fatalf("%s (lock: %t) changed what belongs to the apply.\nbefore:\n%s\nafter:\n%s\nthe apply: %s", c.args, lock, before, now, said())
			}
		}
	}
}

// meanwhiles are changes of the configuration during the apply: the replacement of a
// resource, and an addition.
var meanwhiles = []struct{ name, instead, by, more string }{
	{"moved", `"terraform_data" "old"`, `"terraform_data" "other"`, "moved {\n  from = terraform_data.old\n  to   = terraform_data.other\n}\n"},
	{"moved that the apply has made", `"terraform_data" "a"`, `"terraform_data" "other"`, "moved {\n  from = terraform_data.a\n  to   = terraform_data.other\n}\n"},
	{"removed", "resource \"terraform_data\" \"old\" { input = \"old\" }\n", "", "removed {\n  from = terraform_data.old\n  lifecycle {\n    destroy = false\n  }\n}\n"},
	{"import", "", "", "resource \"terraform_data\" \"c\" {}\nimport {\n  to = terraform_data.c\n  id = \"x\"\n}\n"},
}

// meanwhile changes the configuration during the apply, and runs commands with it.
func (b *beside) meanwhile() {
	b.t.Helper()
	written := fmt.Sprintf(besideConfig, b.dir)
	before := b.seen()
	for i, m := range meanwhiles {
		text := strings.ReplaceAll(strings.Replace(written, m.instead, m.by, 1)+m.more, "terraform_data.old.output", "1")
		if m.instead == `"terraform_data" "a"` {
			text = strings.Replace(text, "[terraform_data.a]", "[terraform_data.other]", 1)
		}
		b.write("main.tf", text)
		more := [][]besider{
			{{args: "plan -out={}/saved", want: reads}, {args: "apply {}/saved", want: refused}},
			{{args: "destroy -auto-approve", want: refused}},
			{{args: "apply -auto-approve -refresh-only", want: refused}},
			{{args: "run --all plan", want: reads}, {args: "run --all apply --non-interactive", want: refused}},
		}[i%4]
		for _, c := range append(more, besider{args: "plan", want: reads}, besider{args: "apply -auto-approve", want: refused}) {
			b.one(c, true, refused)
			b.one(c, false, c.want)
			if now := b.seen(); now != before {
				b.t.Fatalf("%s written meanwhile: %s changed what belongs to the apply.\nbefore:\n%s\nafter:\n%s", m.name, c.args, before, now)
			}
		}
	}
	b.write("main.tf", written)
	b.write("x.tftest.hcl", "run \"p\" {\n  command = plan\n}\nrun \"a\" {\n  plan_options {\n    target = [terraform_data.old]\n  }\n}\n")
	b.one(besider{args: "test"}, true, works)
	if now := b.seen(); now != before {
		b.t.Fatalf("test written meanwhile changed what belongs to the apply.\nbefore:\n%s\nafter:\n%s", before, now)
	}
}

// migrate moves the state to another backend, or tries to.
func (b *beside) migrate(backend string) {
	b.t.Helper()
	before := b.seen()
	record := filepath.Join(b.dir, ".terraform", "terraform.tfstate")
	noted, err := os.ReadFile(record)
	b.must(err)
	b.write("backend.tf", "terraform {\n  backend \"local\" {\n    path = \"elsewhere/x.tfstate\"\n  }\n}\n")
	b.one(besider{args: "init -migrate-state -force-copy"}, true, refused)
	b.one(besider{args: "init -migrate-state -force-copy"}, false, refused)
	if now := b.seen(); now != before {
		b.t.Errorf("init -migrate-state changed what belongs to the apply.\nbefore:\n%s\nafter:\n%s", before, now)
	}
	b.write("backend.tf", backend)
	b.must(os.WriteFile(record, noted, 0o644))
}

// lost checks an apply whose lock was taken away: it does not overwrite what another run
// may have written, and the next command has everything that it did.
func (b *beside) lost(err error, said string) {
	b.t.Helper()
	if err == nil || !lockLost.MatchString(said) {
		b.t.Errorf("the apply without its lock: %v, left %v\n%s", err, b.left(), said)
	}
	said = strings.Join(strings.Fields(said), " ") // lines may be wrapped anywhere
	if strings.Contains(said, "state push") || !strings.Contains(said, "undo what somebody else has written") {
		b.t.Errorf("the apply without its lock says what to do with its state as if nobody else had written: %s", said)
	}
	if err := os.Remove(filepath.Join(b.dir, "errored.tfstate")); err != nil {
		b.t.Error(err)
	}
	b.ok("apply", "-auto-approve")
	b.ok("plan", "-detailed-exitcode")
	if got := b.left(); len(got) > 0 {
		b.t.Errorf("after the next command, there are %v", got)
	}
}

// unlock releases the lock of the apply, if that is possible. On this machine, the journal
// then keeps other runs from writing.
func (b *beside) unlock() {
	b.t.Helper()
	if !b.store.remote {
		return
	}
	id := b.store.lockID()
	b.ok("force-unlock", "-force", id)
	if now := b.store.lockID(); id == "" || now != "" {
		b.t.Errorf("force-unlock %q left the lock %q", id, now)
	}
	before := b.seen()
	b.one(besider{args: "plan"}, true, reads)
	b.one(besider{args: "state list"}, true, reads)
	for _, args := range []string{"apply -auto-approve", "apply -auto-approve -refresh-only", "destroy -auto-approve", "state rm terraform_data.a", "taint terraform_data.old"} {
		b.one(besider{args: args}, true, refused)
	}
	if now := b.seen(); now != before {
		b.t.Errorf("without the lock, what belongs to the apply was changed.\nbefore:\n%s\nafter:\n%s", before, now)
	}
}

func (b *beside) one(c besider, lock bool, want string) {
	b.t.Helper()
	args := strings.Fields(strings.NewReplacer("{}", b.dir, "{lock}", b.store.lockID()).Replace(c.args))
	if !lock {
		at := len(args)
		for i, a := range args { // after the last word of the command
			if i > 0 && (strings.HasPrefix(a, "-") && a != "--all" || strings.ContainsAny(a, "./")) {
				at = i
				break
			}
		}
		args = slices.Insert(args, at, "-lock=false")
	}
	cmd := b.command(args...)
	if args[0] == "run" || args[0] == "backend" {
		cmd.Env = append(slices.Clone(b.env), "TERRACE_AS=terragrunt")
	}
	cmd.Stdin = strings.NewReader(c.stdin)
	got, err := cmd.CombinedOutput()
	code := cmd.ProcessState.ExitCode()
	switch {
	case untrue.Match(bytes.ReplaceAll(got, []byte(mayBe), nil)):
		b.t.Errorf("%v: says of the apply what is not true:\n%s", args, got)
	case want == refused && (code == 0 || !atWork.Match(got)):
		b.t.Errorf("%v: status %d (%v), want that it is refused:\n%s", args, code, err, got)
	case want != refused && want != looks && code != 0 && (code != 2 || !slices.Contains(args, "-detailed-exitcode")):
		b.t.Errorf("%v: status %d (%v), want 0:\n%s", args, code, err, got)
	case want == reads && !bytes.Contains(got, []byte("terraform_data.a")) && !bytes.Contains(got, []byte(`"name": "a"`)) && !bytes.Contains(got, []byte("2 to add")) && !bytes.Contains(got, []byte("1 to add")):
		b.t.Errorf("%v: knows nothing of what the apply has done:\n%s", args, got)
	case want == reads && bytes.Contains(got, []byte("terraform_data.a will be created")):
		b.t.Errorf("%v: does not know what the apply has made:\n%s", args, got)
	}
}

// seen returns the data of the apply: its local files with their inodes, and the content of
// the store.
func (b *beside) seen() string {
	b.t.Helper()
	out, err := exec.CommandContext(context.Background(), "sh", "-c", "cd '"+b.dir+"' && ls -i -d terraform.tfstate .terraform.* 2>/dev/null; cksum terraform.tfstate .terraform.*journal .terraform.*.lock.info 2>/dev/null; true").CombinedOutput()
	b.must(err)
	return string(out) + b.store.touched()
}

// noted reports whether the journals contain everything that the apply must have recorded
// by then.
func (b *beside) noted() bool {
	const made = `"name":"b"`
	names, err := filepath.Glob(filepath.Join(b.dir, ".terraform.*journal"))
	b.must(err)
	for _, name := range names {
		raw, _ := os.ReadFile(name)
		if !bytes.Contains(raw, []byte(made)) {
			return false
		}
	}
	return len(names) > 0 && (!b.store.mirrored || strings.Contains(b.store.touched(), made))
}

// left returns the files that a failed run leaves.
func (b *beside) left() []string {
	b.t.Helper()
	var out []string
	for _, pattern := range []string{".terraform.*", "errored*"} {
		names, err := filepath.Glob(filepath.Join(b.dir, pattern))
		b.must(err)
		for _, name := range names {
			if base := filepath.Base(name); base != ".terraform.lock.hcl" {
				out = append(out, base)
			}
		}
	}
	return out
}

func (b *beside) ok(args ...string) []byte {
	b.t.Helper()
	out, err := b.command(args...).CombinedOutput()
	if err != nil {
		b.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}
