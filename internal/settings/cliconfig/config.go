package cliconfig

import (
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/source"
)

// A Config is the user's settings. The zero Config has all defaults; a Config
// is not changed after Load.
type Config struct {
	PluginCacheDir          string // "" if there is none; may be relative to the working folder
	PluginCacheMayBreakLock bool
	NoExec                  bool // no programs are run
	JournalInStore          bool // journals of applies are kept beside the state too, where its store has room

	Silenced  []string // codes of warnings that are not shown
	ShowCodes bool     // messages for people end with their code

	Hosts       map[string]map[string]any    // services by normalized host name, instead of discovery
	Credentials map[string]map[string]string // by normalized host name, from files; "token" is the one that counts
	EnvTokens   map[string]string            // by normalized host name, from TF_TOKEN_*
	Helper      *Helper                      // nil if there is none

	Installation *Installation // nil: the implied methods

	Temporal Temporal // where runs on other machines go

	Registry Registry
	OCI      []OCICredentials
	OCIPlain *OCIDefaults // nil: ambient credentials are looked for

	Dir   string // where credentials and further settings are kept; "" without a home folder
	Files []string

	manual map[string]bool // hosts whose credentials are written by hand
}

// CredentialsFile is the file in Dir that "login" writes tokens to.
const CredentialsFile = "credentials.tfrc.json"

// Manual reports whether the credentials for a host, by its normalized name,
// stand in a file that the user wrote, which programs leave alone.
func (c *Config) Manual(host string) bool { return c != nil && c.manual[host] }

// Token is the access token that is set for a host, without asking a helper.
// An environment variable goes before files.
func (c *Config) Token(host string) (token string, ok bool) {
	if c == nil {
		return "", false
	}
	if t, ok := c.EnvTokens[host]; ok {
		return t, true
	}
	t, ok := c.Credentials[host]["token"]
	return t, ok
}

// A Helper is the credentials_helper block: the program terraform-credentials-NAME.
type Helper struct {
	Name string
	Args []string
	At   source.Range
}

// Temporal is the temporal block: how the engine is reached that runs on other machines go
// by. What is "" is not said.
type Temporal struct {
	Address, Namespace, Queue, Blobs      string
	TLSCert, TLSKey, TLSCA, TLSServerName string // files, and a name
	APIKey                                string
}

// Registry says how requests to registries are made.
type Registry struct {
	Retries         int           // after the first attempt
	Timeout         time.Duration // of one request
	DownloadRetries int           // of a provider package, after the first attempt
}

// An Installation is the provider_installation block.
type Installation struct {
	DevOverrides map[addr.Provider]string
	Methods      []Method
	At           source.Range
}

// A MethodKind is a way to get provider packages.
type MethodKind string

// The ways.
const (
	Direct           MethodKind = "direct"
	FilesystemMirror MethodKind = "filesystem_mirror"
	NetworkMirror    MethodKind = "network_mirror"
	OCIMirror        MethodKind = "oci_mirror"
)

// A Method is one block in provider_installation.
type Method struct {
	Kind           MethodKind
	Location       string    // path of a filesystem mirror, URL of a network mirror, with a slash at its end
	Template       *OCIRepo  // of an OCI mirror
	Include        []Pattern // nil: all providers
	Exclude        []Pattern // goes before Include
	Retries        int       // of a download; below 0: as Registry.DownloadRetries says
	TrustAllHashes bool      // of a network mirror
	At             source.Range
}

// Allows reports whether the method is to be asked for a provider.
func (m *Method) Allows(p addr.Provider) bool {
	for _, pat := range m.Exclude {
		if pat.Matches(p) {
			return false
		}
	}
	if m.Include == nil {
		return true
	}
	for _, pat := range m.Include {
		if pat.Matches(p) {
			return true
		}
	}
	return false
}

// OCICredentials is an oci_credentials block.
type OCICredentials struct {
	Host, Path   string // Path may be ""
	Username     string
	Password     string
	AccessToken  string
	RefreshToken string
	DockerHelper string // name of a docker-credential-NAME program
}

// OCIDefaults is the oci_default_credentials block.
type OCIDefaults struct {
	Ambient      bool // look for Docker's configuration files where they usually are
	Files        []string
	DockerHelper string
}
