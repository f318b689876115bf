package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/rogpeppe/go-internal/testscript"
)

// editor is a command of scripts: "editor COMMAND FILE RESULT" starts the language server in the directory,
// gives each of its questions the first answer, executes a command for a file, and writes the result, or the
// error, and the questions to the file RESULT.
func editor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: editor COMMAND FILE RESULT")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	path := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if name := filepath.Join(dir, "terrace"); path == "" {
			if _, err := os.Stat(name); err == nil {
				path = name
			}
		}
	}
	cmd := exec.CommandContext(ctx, path, "lsp")
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TF_CLI_CONFIG_FILE", "TEST_CALLS", "XDG_CACHE_HOME"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	var said []string
	rpc := jrpc2.NewClient(channel.LSP(out, in), &jrpc2.ClientOptions{OnCallback: func(_ context.Context, r *jrpc2.Request) (any, error) {
		var p struct {
			Message string
			Actions []struct {
				Title string `json:"title"`
			}
		}
		if err := r.UnmarshalParams(&p); err != nil || len(p.Actions) == 0 {
			return nil, err
		}
		said = append(said, p.Message)
		return p.Actions[0], nil
	}})
	uri := func(path string) string { return "file://" + filepath.ToSlash(path) }
	_, err = rpc.Call(ctx, "initialize", map[string]any{"rootUri": uri(cmd.Dir), "capabilities": map[string]any{}})
	ts.Check(err)
	ts.Check(rpc.Notify(ctx, "initialized", map[string]any{}))
	rsp, err := rpc.Call(ctx, "workspace/executeCommand", map[string]any{"command": args[0], "arguments": []string{uri(ts.MkAbs(args[1]))}})
	if err != nil {
		said = append(said, "error: "+err.Error())
	} else {
		var result json.RawMessage
		ts.Check(rsp.UnmarshalResult(&result))
		said = append(said, "result: "+string(result))
	}
	hover, err := rpc.Call(ctx, "textDocument/hover", map[string]any{"textDocument": map[string]any{"uri": uri(ts.MkAbs(args[1]))}, "position": map[string]int{"line": 1, "character": 2}})
	if err == nil {
		said = append(said, "hover: "+hover.ResultString())
	}
	_, _ = rpc.Call(ctx, "shutdown", nil)
	_ = rpc.Notify(ctx, "exit", nil)
	_ = rpc.Close()
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(strings.Join(said, "\n")+"\n"), 0o644))
}
