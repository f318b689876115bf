package rpc

import (
	"context"
	"os/exec"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

// A process that is killed before its start, as by an interrupt, ends after the start.
func TestKilledBeforeStart(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	cmd, err := sys.Prepare(sys.Command{Path: sh, Args: []string{"-c", "exec sleep 600"}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := newProcess(cmd, &tail{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(t.Context()); err == nil {
		t.Error("it ended by itself")
	}
}
