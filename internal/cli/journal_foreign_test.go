package cli_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
)

// foreignJournal returns a journal in format 2, as anyone can write it. Each body begins with
// its kind.
func foreignJournal(bodies ...string) string {
	out := []byte("terrace journal 2\n")
	table := crc32.MakeTable(crc32.Castagnoli)
	for i, body := range bodies {
		head := append([]byte{0xff, 'T', 'r', 'J', 0xfe, '\r', '\n', 0}, make([]byte, 16)...)
		binary.LittleEndian.PutUint32(head[8:], uint32(i+1))
		binary.LittleEndian.PutUint32(head[12:], uint32(len(body)))
		binary.LittleEndian.PutUint32(head[16:], crc32.Checksum([]byte(body), table))
		binary.LittleEndian.PutUint32(head[20:], crc32.Checksum(head[:20], table))
		out = append(append(out, head...), body...)
	}
	return string(out)
}

// removal returns the body of a response after which terraform_data.x does not exist.
func removal() string {
	change := `{"mode":"managed","type":"terraform_data","name":"x","provider":"provider[\"terraform.io/builtin/terraform\"]","remove":{"deposed":""}}`
	return "A\x02" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(change)))) + change
}

// TestJournalOfACheckout checks that a journal from a repository neither deletes a file of the
// user nor removes anything from the state. Every command reports and keeps the journal.
func TestJournalOfACheckout(t *testing.T) {
	const header = `H{"Lineage":"lin","Serial":4,"Run":{"Operation":"OperationTypeApply","Who":"them@there","Process":1,"Since":"2026-01-02T03:04:05Z"}}`
	const tfstate = `{"version":4,"terraform_version":"1.12.6","serial":4,"lineage":"lin","outputs":{},"resources":[{"mode":"managed","type":"terraform_data","name":"x","provider":"provider[\"terraform.io/builtin/terraform\"]","instances":[{"schema_version":0,"attributes":{"id":"1","input":null,"output":null,"triggers_replace":null}}]}]}`
	for _, kind := range []string{"transfer", "answer"} {
		for _, remote := range []bool{false, true} {
			for _, line := range []string{"plan", "--no-exec plan", "plan -lock=false", "refresh", "apply -auto-approve", "destroy -auto-approve", "drift", "state rm terraform_data.x", "state list", "output"} {
				t.Run(fmt.Sprintf("%s, remote %t, %s", kind, remote, line), func(t *testing.T) {
					t.Parallel()
					dir, home := t.TempDir(), t.TempDir()
					write := func(path, text string) string {
						if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
							t.Fatal(err)
						}
						return path
					}
					read := func(path string) string {
						b, _ := os.ReadFile(path)
						return string(b)
					}
					victim := write(filepath.Join(home, "victim"), "mine")
					content := foreignJournal(header, header, removal())
					if kind == "transfer" {
						note := fmt.Sprintf(`T{"ID":"1","Decision":%q,"Other":"none"}`, filepath.ToSlash(victim))
						content = foreignJournal(header, header, note, note, removal())
					}
					env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
					main, name := "resource \"terraform_data\" \"x\" {}\n", ".terraform.tfstate.journal"
					held := func() string { return read(filepath.Join(dir, "terraform.tfstate")) }
					if remote {
						s := servers.HTTP(t)
						s.SetState(tfstate)
						held = s.State
						main += fmt.Sprintf("terraform {\n  backend \"http\" {\n    address = \"%s/state\"\n  }\n}\n", s.URL)
						sum := sha256.Sum256([]byte(s.URL + "/state\x00default"))
						name = ".terraform." + hex.EncodeToString(sum[:6]) + ".journal"
					} else {
						write(filepath.Join(dir, "terraform.tfstate"), tfstate)
					}
					write(filepath.Join(dir, "main.tf"), main)
					if remote {
						combined(t, dir, env, "init", "-input=false")
					}
					journal := write(filepath.Join(dir, name), content)
					var out strings.Builder
					code, err := runProgram(t.Context(), dir, env, strings.NewReader(""), &out, &out, strings.Fields(line)...)
					if err != nil {
						t.Fatal(err)
					}
					shows := line == "state list" || line == "output"
					if (code == 0) != shows || !strings.Contains(out.String(), "Journal of unknown origin") || !strings.Contains(out.String(), "them@there") {
						t.Errorf("status %d\n%s", code, &out)
					}
					if read(victim) != "mine" {
						t.Error("a file of the user was deleted")
					}
					if read(journal) != content {
						t.Error("the journal was touched")
					}
					if held() != tfstate {
						t.Errorf("the state was written: %s", held())
					}
				})
			}
		}
	}
}
