package cliconfig

import (
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/source"
)

// A Config contains the user's settings. The zero Config has all defaults. A Config is not
// changed after Load.
type Config struct {
	PluginCacheDir          string // "" means none; may be relative to the working directory
	PluginCacheMayBreakLock bool
	NoExec                  bool // no programs may be run
	JournalInStore          bool // journals of applies are also stored next to the state, if its store supports that

	Silenced  []string // codes of suppressed warnings
	ShowCodes bool     // messages for users end with their code

	Hosts       map[string]map[string]any    // services by normalized host name, which replace discovery
	Credentials map[string]map[string]string // by normalized host name, from files; only "token" is used
	EnvTokens   map[string]string            // by normalized host name, from TF_TOKEN_*
	Helper      *Helper                      // nil means none

	Installation *Installation // nil means the default methods

	Temporal Temporal // engine of runs on other machines

	Registry Registry
	OCI      []OCICredentials
	OCIPlain *OCIDefaults // nil means that ambient credentials are searched

	Dir   string // directory of credentials and further settings; "" without a home directory
	Files []string

	manual map[string]bool // hosts whose credentials the user wrote to a file
}

// CredentialsFile is the name of the file in Dir that "login" writes tokens to.
const CredentialsFile = "credentials.tfrc.json"

// Manual reports whether the credentials for a host, given by its normalized name, are in a file
// that the user wrote. Programs must not change such a file. c may be nil.
func (c *Config) Manual(host string) bool { return c != nil && c.manual[host] }

// Token returns the access token that is configured for a host, without running a helper. An
// environment variable takes precedence over files. c may be nil.
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

// A Helper is the credentials_helper block. It names the program terraform-credentials-NAME.
type Helper struct {
	Name string
	Args []string
	At   source.Range
}

// Temporal is the temporal block: the address of the engine for runs on other machines. "" means
// that a setting is missing.
type Temporal struct {
	Address, Namespace, Queue, Blobs      string
	TLSCert, TLSKey, TLSCA, TLSServerName string // names of files, and a server name
	APIKey                                string
}

// Registry configures requests to registries.
type Registry struct {
	Retries         int           // number of retries after the first attempt
	Timeout         time.Duration // timeout of one request
	DownloadRetries int           // number of retries when downloading a provider package
}

// An Installation is the provider_installation block.
type Installation struct {
	DevOverrides map[addr.Provider]string
	Methods      []Method
	At           source.Range
}

// A MethodKind is a type of installation method.
type MethodKind string

// The installation methods.
const (
	Direct           MethodKind = "direct"
	FilesystemMirror MethodKind = "filesystem_mirror"
	NetworkMirror    MethodKind = "network_mirror"
	OCIMirror        MethodKind = "oci_mirror"
)

// A Method is one block in provider_installation.
type Method struct {
	Kind           MethodKind
	Location       string    // path of a filesystem mirror, or URL of a network mirror, which ends with a slash
	Template       *OCIRepo  // address of an OCI mirror
	Include        []Pattern // nil means all providers
	Exclude        []Pattern // takes precedence over Include
	Retries        int       // retries of a download; below 0 means Registry.DownloadRetries
	TrustAllHashes bool      // for a network mirror
	At             source.Range
}

// Allows reports whether the method may install a provider.
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
	Ambient      bool // search Docker's configuration files in their default locations
	Files        []string
	DockerHelper string
}
