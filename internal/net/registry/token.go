package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
)

type tokenAnswer struct {
	token string
	err   error
}

// Token returns the access token for a host, or "" if there is none. The order is: TF_TOKEN_*,
// the settings, the credentials helper.
func (c *Client) Token(ctx context.Context, host string) (string, error) {
	name, err := c.host(host)
	if err != nil {
		return "", err
	}
	if t, ok := c.Config.Token(name); ok {
		return t, nil
	}
	if c.Config == nil || c.Config.Helper == nil || c.Run == nil {
		return "", nil
	}
	a, err := c.tokens.Do(ctx, name, func() (tokenAnswer, bool) {
		out, err := c.helper(ctx, "get", name, nil)
		if err != nil {
			return tokenAnswer{err: err}, false
		}
		var doc struct {
			Token string `json:"token"`
		}
		if err := json.Unmarshal(out, &doc); err != nil {
			return tokenAnswer{err: fmt.Errorf("the credentials helper %q answered something else than a JSON object", c.Config.Helper.Name)}, false
		}
		return tokenAnswer{token: doc.Token}, true
	})
	if err != nil {
		return "", err
	}
	return a.token, a.err
}

// authorize adds the token for a host to the headers of a request.
func (c *Client) authorize(ctx context.Context, host string, h http.Header) error {
	t, err := c.Token(ctx, host)
	if err != nil {
		return err
	}
	if t != "" {
		h.Set("Authorization", "Bearer "+t)
	}
	return nil
}

// helper runs the credentials helper with a verb and returns its standard output.
func (c *Client) helper(ctx context.Context, verb, host string, stdin []byte) ([]byte, error) {
	h := c.Config.Helper
	program := "terraform-credentials-" + h.Name
	path := program
	for _, dir := range c.HelperDirs {
		for _, ext := range map[bool][]string{true: {".exe", ""}, false: {""}}[runtime.GOOS == "windows"] {
			if st, err := os.Stat(filepath.Join(dir, program+ext)); err == nil && !st.IsDir() && path == program {
				path = filepath.Join(dir, program+ext)
			}
		}
	}
	var out, problem bytes.Buffer
	err := c.Run(ctx, sys.Command{Path: path, Args: append(append([]string{}, h.Args...), verb, host), Dir: c.WorkDir, Env: c.Env, Stdin: bytes.NewReader(stdin), Stdout: &out, Stderr: &problem})
	if err == nil {
		return out.Bytes(), nil
	}
	if _, ran := sys.ExitCode(err); !ran {
		return nil, fmt.Errorf("the credentials helper %s cannot be started: %w", program, err)
	}
	return nil, fmt.Errorf("the credentials helper %s failed: %s", program, strings.TrimSpace(problem.String()))
}

// HelperDirs returns the directories in which credentials helpers are searched.
func HelperDirs(configDir, programDir string) []string {
	var out []string
	if programDir != "" {
		out = append(out, programDir)
	}
	if configDir != "" {
		plugins := filepath.Join(configDir, "plugins")
		out = append(out, plugins, filepath.Join(plugins, runtime.GOOS+"_"+runtime.GOARCH))
	}
	return out
}

// Where returns the location in which Store stores a token: a path, or the name of the helper.
func (c *Client) Where() (place string, helper bool, err error) {
	if c.Config != nil && c.Config.Helper != nil && c.Run != nil {
		return c.Config.Helper.Name, true, nil
	}
	if c.Config == nil || c.Config.Dir == "" {
		return "", false, errors.New("there is no home directory to keep credentials in")
	}
	return filepath.Join(c.Config.Dir, cliconfig.CredentialsFile), false, nil
}

// Stored reports whether the file that Where returns contains credentials for a host.
func (c *Client) Stored(host string) bool {
	name, err := normalHost(host)
	if err != nil || c.Config == nil {
		return false
	}
	_, ok := c.Config.Credentials[name]
	return ok && !c.Config.Manual(name)
}

// Manual reports whether credentials for a host are in a file that the user wrote.
func (c *Client) Manual(host string) bool {
	name, err := normalHost(host)
	return err == nil && c.Config.Manual(name)
}

// Store stores a token for a host: with the helper if there is one, otherwise in the file
// credentials.tfrc.json, which only the user may read.
func (c *Client) Store(ctx context.Context, host, token string) error {
	name, err := normalHost(host)
	if err != nil {
		return err
	}
	place, helper, err := c.Where()
	if err != nil {
		return err
	}
	if helper {
		doc, err := json.Marshal(map[string]string{"token": token})
		if err != nil {
			return err
		}
		_, err = c.helper(ctx, "store", name, doc)
		return err
	}
	return editCredentials(place, func(m map[string]any) { m[name] = map[string]any{"token": token} })
}

// Forget deletes the token for a host.
func (c *Client) Forget(ctx context.Context, host string) error {
	name, err := normalHost(host)
	if err != nil {
		return err
	}
	place, helper, err := c.Where()
	if err != nil {
		return err
	}
	if helper {
		_, err := c.helper(ctx, "forget", name, nil)
		return err
	}
	return editCredentials(place, func(m map[string]any) { delete(m, name) })
}

// editCredentials changes the credentials in a file and keeps its other content.
func editCredentials(file string, edit func(map[string]any)) error {
	doc := map[string]any{}
	text, err := readfile.Whole(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &doc); err != nil {
			return fmt.Errorf("%s is not valid JSON: %w", file, err)
		}
	}
	creds, _ := doc["credentials"].(map[string]any)
	if creds == nil {
		creds = map[string]any{}
	}
	edit(creds)
	doc["credentials"] = creds
	if text, err = json.MarshalIndent(doc, "", "  "); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteMode(file, append(text, '\n'), 0o600)
}
