package oci

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
)

// A Store finds the credentials for repositories in the CLI configuration and, unless that
// disables it, in the files of Docker and similar programs.
type Store struct {
	Config  *cliconfig.Config
	Env     sys.Env
	Home    string
	WorkDir string
	Run     func(context.Context, sys.Command) error // nil means that helpers are not run
}

// Find returns the credentials for a repository. The zero value means that there are none.
func (s *Store) Find(ctx context.Context, host, repository string) (Credentials, error) {
	if c, ok, err := s.configured(ctx, host, repository); ok || err != nil {
		return c, err
	}
	var plain *cliconfig.OCIDefaults
	if s.Config != nil {
		plain = s.Config.OCIPlain
	}
	if plain == nil {
		plain = &cliconfig.OCIDefaults{Ambient: true}
	}
	files := plain.Files
	if files == nil && plain.Ambient {
		files = s.ambient()
	}
	for _, f := range files {
		if c, ok, err := s.docker(ctx, f, host, repository); ok || err != nil {
			return c, err
		}
	}
	if plain.DockerHelper != "" {
		return s.helper(ctx, plain.DockerHelper, host)
	}
	return Credentials{}, nil
}

// configured returns the credentials of the most specific oci_credentials block. ok is false if
// there is none.
func (s *Store) configured(ctx context.Context, host, repository string) (Credentials, bool, error) {
	if s.Config == nil {
		return Credentials{}, false, nil
	}
	var best *cliconfig.OCICredentials
	for i, c := range s.Config.OCI {
		fits := c.Host == host && (c.Path == "" || c.Path == repository || strings.HasPrefix(repository, c.Path+"/"))
		if fits && (best == nil || len(c.Path) > len(best.Path)) {
			best = &s.Config.OCI[i]
		}
	}
	if best == nil {
		return Credentials{}, false, nil
	}
	if best.DockerHelper != "" {
		c, err := s.helper(ctx, best.DockerHelper, host)
		return c, true, err
	}
	return Credentials{Username: best.Username, Password: best.Password, AccessToken: best.AccessToken, RefreshToken: best.RefreshToken}, true, nil
}

// ambient returns the paths of the credentials files of Docker and podman.
func (s *Store) ambient() []string {
	var out []string
	if d := s.Env.Get("XDG_RUNTIME_DIR"); d != "" {
		out = append(out, filepath.Join(d, "containers", "auth.json"))
	}
	if d := s.Env.Get("XDG_CONFIG_HOME"); d != "" {
		out = append(out, filepath.Join(d, "containers", "auth.json"))
	} else if s.Home != "" {
		out = append(out, filepath.Join(s.Home, ".config", "containers", "auth.json"))
	}
	if d := s.Env.Get("DOCKER_CONFIG"); d != "" {
		return append(out, filepath.Join(d, "config.json"))
	}
	if s.Home != "" {
		out = append(out, filepath.Join(s.Home, ".docker", "config.json"))
	}
	return out
}

type dockerConfig struct {
	Auths map[string]struct {
		Auth          string
		Username      string
		Password      string
		IdentityToken string
		RegistryToken string
	}
	CredsStore  string
	CredHelpers map[string]string
}

// docker searches a Docker-style configuration file.
func (s *Store) docker(ctx context.Context, file, host, repository string) (Credentials, bool, error) {
	text, err := readfile.Whole(file)
	if errors.Is(err, os.ErrNotExist) {
		return Credentials{}, false, nil
	}
	if err != nil {
		return Credentials{}, false, fmt.Errorf("cannot read credentials: %w", err)
	}
	var doc dockerConfig
	if err := json.Unmarshal(text, &doc); err != nil {
		return Credentials{}, false, fmt.Errorf("%s is not valid JSON: %w", file, err)
	}
	if h := doc.CredHelpers[host]; h != "" {
		c, err := s.helper(ctx, h, host)
		return c, true, err
	}
	for key := host + "/" + repository; key != "."; key = filepath.ToSlash(filepath.Dir(key)) {
		for _, k := range []string{key, "https://" + key, "https://" + key + "/v1/", "https://" + key + "/v2/"} {
			a, ok := doc.Auths[k]
			if !ok {
				continue
			}
			c := Credentials{Username: a.Username, Password: a.Password, RefreshToken: a.IdentityToken, AccessToken: a.RegistryToken}
			if raw, err := base64.StdEncoding.DecodeString(a.Auth); err == nil && a.Auth != "" {
				c.Username, c.Password, _ = strings.Cut(strings.TrimRight(string(raw), "\x00"), ":")
			}
			if c != (Credentials{}) {
				return c, true, nil
			}
		}
	}
	if doc.CredsStore != "" {
		c, err := s.helper(ctx, doc.CredsStore, host)
		return c, err == nil && c != (Credentials{}), err
	}
	return Credentials{}, false, nil
}

// helper gets the credentials from the program docker-credential-NAME.
func (s *Store) helper(ctx context.Context, name, host string) (Credentials, error) {
	if s.Run == nil {
		return Credentials{}, nil
	}
	program := "docker-credential-" + name
	var out, problem bytes.Buffer
	err := s.Run(ctx, sys.Command{Path: program, Args: []string{"get"}, Dir: s.WorkDir, Env: s.Env, Stdin: strings.NewReader(host), Stdout: &out, Stderr: &problem})
	if err != nil {
		if _, ran := sys.ExitCode(err); !ran {
			return Credentials{}, fmt.Errorf("the credentials helper %s cannot be started: %w", program, err)
		}
		if strings.Contains(out.String()+problem.String(), "not found") {
			return Credentials{}, nil
		}
		return Credentials{}, fmt.Errorf("the credentials helper %s failed: %s", program, strings.TrimSpace(out.String()+problem.String()))
	}
	var doc struct{ Username, Secret string }
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		return Credentials{}, fmt.Errorf("the credentials helper %s answered something else than a JSON object", program)
	}
	if doc.Username == "<token>" {
		return Credentials{RefreshToken: doc.Secret}, nil
	}
	return Credentials{Username: doc.Username, Password: doc.Secret}, nil
}
