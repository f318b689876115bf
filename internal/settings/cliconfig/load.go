package cliconfig

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opentofu/svchost"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/source"
)

// Load reads the settings from the files that env and home specify, and from env. If home is "",
// only files that env names are read. Relative file names in env are relative to dir. files reads
// the files and may be nil.
//
// The main file is the one in TF_CLI_CONFIG_FILE or TERRAFORM_CONFIG. Without these variables it
// is the first of ~/.tofurc, ~/.terraformrc and $XDG_CONFIG_HOME/opentofu/tofurc, and every
// *.tfrc and *.tfrc.json of the configuration directory is read too.
func Load(files *readfile.Kept, env sys.Env, home, dir string) (*Config, diag.List) {
	c := &Config{}
	c.Dir = configDir(env, home)
	c.Registry = Registry{Retries: 1, Timeout: 10 * time.Second, DownloadRetries: 2}
	main, explicit := mainFile(env, home, dir)
	l := &loader{c: c, env: env, files: files}
	var ds diag.List
	if main != "" {
		ds = append(ds, l.file(main, explicit)...)
	}
	if !explicit && c.Dir != "" {
		entries, err := os.ReadDir(c.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, nil, summary, "The configuration directory cannot be read: %s.", err)...)
		}
		for _, e := range entries {
			if name := e.Name(); !e.IsDir() && !strings.HasPrefix(name, ".") && (strings.HasSuffix(name, ".tfrc") || strings.HasSuffix(name, ".tfrc.json")) {
				ds = append(ds, l.file(filepath.Join(c.Dir, name), false)...)
			}
		}
	}
	ds = append(ds, l.once()...)
	return c, append(ds, l.environment(dir)...)
}

func mainFile(env sys.Env, home, dir string) (path string, explicit bool) {
	for _, name := range []string{"TF_CLI_CONFIG_FILE", "TERRAFORM_CONFIG"} {
		if v := env.Get(name); v != "" {
			if !filepath.IsAbs(v) {
				v = filepath.Join(dir, v)
			}
			return v, true
		}
	}
	var tries []string
	if runtime.GOOS == "windows" {
		if appData := env.Get("APPDATA"); appData != "" {
			tries = []string{filepath.Join(appData, "tofu.rc"), filepath.Join(appData, "terraform.rc")}
		}
	} else if home != "" {
		tries = []string{filepath.Join(home, ".tofurc"), filepath.Join(home, ".terraformrc")}
	}
	if xdg := env.Get("XDG_CONFIG_HOME"); xdg != "" {
		tries = append(tries, filepath.Join(xdg, "opentofu", "tofurc"))
	}
	for _, t := range tries {
		if st, err := os.Stat(t); err == nil && !st.IsDir() {
			return t, false
		}
	}
	return "", false
}

func configDir(env sys.Env, home string) string {
	if runtime.GOOS == "windows" {
		if appData := env.Get("APPDATA"); appData != "" {
			return filepath.Join(appData, "terraform.d")
		}
	}
	legacy := ""
	if home != "" {
		legacy = filepath.Join(home, ".terraform.d")
		if _, err := os.Stat(legacy); err == nil {
			return legacy
		}
	}
	if xdg := env.Get("XDG_CONFIG_HOME"); xdg != "" {
		return filepath.Join(xdg, "opentofu")
	}
	return legacy
}

// loader collects the content of the files.
type loader struct {
	c               *Config
	env             sys.Env
	files           *readfile.Kept
	install         []block
	helpers         []block
	ociAll          []block
	protos, engines []block
}

func (l *loader) file(path string, explicit bool) diag.List {
	src, err := readBounded(l.files, path)
	if errors.Is(err, fs.ErrNotExist) {
		if explicit {
			return diag.Warnf(diag.CodeFilesRead, nil, "Unable to open CLI configuration file", "The CLI configuration file at %q does not exist.", path)
		}
		return nil
	}
	if err != nil {
		return diag.Errorf(diag.CodeFilesRead, nil, "Unable to open CLI configuration file", "The CLI configuration file cannot be read: %s.", err)
	}
	l.c.Files = append(l.c.Files, path)
	return l.parse(src, path)
}

func readBounded(files *readfile.Kept, path string) ([]byte, error) {
	const limit = 4 << 20
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() || st.Size() > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a configuration file: it is a directory or larger than 4 MiB")}
	}
	return files.Whole(path)
}

func (l *loader) parse(src []byte, path string) diag.List {
	root, serr := parseText(src, path)
	if serr != nil {
		return diag.Errorf(diag.CodeCLIConfiguration, &serr.at, "Error parsing CLI configuration", "%s", serr.msg)
	}
	if root == nil || root.kind != objectNode {
		return diag.Errorf(diag.CodeCLIConfiguration, &source.Range{Filename: path}, "Error parsing CLI configuration", "The file must hold an object.")
	}
	a := settings("", root.items)
	if l.c.PluginCacheDir == "" {
		l.c.PluginCacheDir = os.Expand(a.str("plugin_cache_dir"), l.env.Get)
	}
	l.c.PluginCacheMayBreakLock = a.boolean("plugin_cache_may_break_dependency_lock_file") || l.c.PluginCacheMayBreakLock
	l.c.NoExec = a.boolean("no_exec") || l.c.NoExec
	switch where := a.str("journal"); where {
	case "", "file":
	case "store":
		l.c.JournalInStore = true
	default:
		a.bad(a.m["journal"], "journal", "\"file\" or \"store\"")
	}
	l.c.ShowCodes = a.boolean("show_codes") || l.c.ShowCodes
	for _, code := range a.list("silence_warnings") {
		if _, ok := diag.FindCode(code); !ok {
			at := a.m["silence_warnings"].at
			a.ds = append(a.ds, diag.Warnf(diag.CodeCLIConfiguration, &at, summary, "There are no messages with the code %q, so silence_warnings has no use for it. A warning's code stands in -json output; show_codes = true adds it to the text.", code)...)
			continue
		}
		l.c.Silenced = append(l.c.Silenced, code)
	}
	ds := a.ds
	collect := func(name string, labels int, to *[]block) {
		bs, more := blocks(root.items, name, labels)
		*to = append(*to, bs...)
		ds = append(ds, more...)
	}
	var hosts, creds, oci []block
	collect("host", 1, &hosts)
	collect("credentials", 1, &creds)
	collect("oci_credentials", 1, &oci)
	collect("credentials_helper", 1, &l.helpers)
	collect("oci_default_credentials", 0, &l.ociAll)
	collect("registry_protocols", 0, &l.protos)
	collect("temporal", 0, &l.engines)
	ds = append(ds, checkInstallationForm(root.items)...)
	if !ds.HasErrors() {
		collect("provider_installation", 0, &l.install)
	}
	for _, b := range hosts {
		ds = append(ds, l.host(b)...)
	}
	for _, b := range creds {
		ds = append(ds, l.credentials(b)...)
	}
	for _, b := range oci {
		ds = append(ds, l.oci(b)...)
	}
	return ds
}

// once reads the blocks that may occur only once in all files together.
func (l *loader) once() diag.List {
	var ds diag.List
	single := func(name string, bs []block, read func(block) diag.List) {
		if len(bs) > 1 {
			ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, &bs[1].at, summary, "No more than one %s block may be specified.", name).Note(&bs[0].at, "specified here")...)
		}
		if len(bs) > 0 {
			ds = append(ds, read(bs[0])...)
		}
	}
	single("provider_installation", l.install, l.installation)
	single("credentials_helper", l.helpers, l.helper)
	single("oci_default_credentials", l.ociAll, l.ociDefaults)
	single("registry_protocols", l.protos, l.registry)
	single("temporal", l.engines, l.temporal)
	return ds
}

// environment applies the variables that override or extend the files.
func (l *loader) environment(dir string) diag.List {
	c, env := l.c, l.env
	if v := env.Get("TF_PLUGIN_CACHE_DIR"); v != "" {
		c.PluginCacheDir = v
	}
	if v := env.Get("TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE"); v != "" {
		c.PluginCacheMayBreakLock = v != "0"
	}
	if n, err := strconv.Atoi(env.Get("TF_REGISTRY_DISCOVERY_RETRY")); err == nil && n >= 0 {
		c.Registry.Retries = n
	}
	if n, err := strconv.Atoi(env.Get("TF_REGISTRY_CLIENT_TIMEOUT")); err == nil && n > 0 {
		c.Registry.Timeout = time.Duration(n) * time.Second
	}
	if n, err := strconv.Atoi(env.Get("TF_PROVIDER_DOWNLOAD_RETRY")); err == nil && n >= 0 {
		c.Registry.DownloadRetries = n
	}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		enc, ok := strings.CutPrefix(name, "TF_TOKEN_")
		if !ok {
			continue
		}
		const dash = "\x00"
		host := strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(enc, "__", dash), "_", "."), dash, "-")
		if h, err := svchost.ForComparison(host); err == nil {
			if c.EnvTokens == nil {
				c.EnvTokens = make(map[string]string)
			}
			c.EnvTokens[string(h)] = value
		}
	}
	if c.PluginCacheDir == "" {
		return nil
	}
	path := c.PluginCacheDir
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		if err == nil {
			err = errors.New("it is not a directory")
		}
		if errors.Is(err, fs.ErrNotExist) {
			return diag.Warnf(diag.CodeCLIConfiguration, nil, summary, "The specified plugin cache dir %s does not exist yet. It is made when a provider is installed.", c.PluginCacheDir)
		}
		return diag.Errorf(diag.CodeCLIConfiguration, nil, summary, "The specified plugin cache dir %s cannot be opened: %s. Create it, or correct the setting.", c.PluginCacheDir, err)
	}
	return nil
}

func (l *loader) host(b block) diag.List {
	name, err := svchost.ForComparison(b.labels[0])
	if err != nil {
		return diag.Errorf(diag.CodeCLIConfiguration, &b.at, summary, "The host %q block has an invalid hostname: %s.", b.labels[0], err)
	}
	a := settings("host", b.items, "services")
	services := make(map[string]any)
	if n := a.m["services"]; n != nil {
		m, ok := plain(n).(map[string]any)
		if !ok {
			a.bad(n, "services", "an object")
		}
		services = m
	}
	if l.c.Hosts == nil {
		l.c.Hosts = make(map[string]map[string]any)
	}
	l.c.Hosts[string(name)] = services
	return a.ds
}

func (l *loader) credentials(b block) diag.List {
	name, err := svchost.ForComparison(b.labels[0])
	if err != nil {
		return diag.Errorf(diag.CodeCLIConfiguration, &b.at, summary, "The credentials %q block has an invalid hostname: %s.", b.labels[0], err)
	}
	a := settings("credentials", b.items)
	m := make(map[string]string, len(a.m))
	for k, n := range a.m {
		if n.kind <= boolNode {
			m[k] = n.text
		}
	}
	if l.c.Credentials == nil {
		l.c.Credentials = make(map[string]map[string]string)
	}
	l.c.Credentials[string(name)] = m
	if l.c.manual == nil {
		l.c.manual = make(map[string]bool)
	}
	l.c.manual[string(name)] = b.at.Filename != filepath.Join(l.c.Dir, CredentialsFile)
	return a.ds
}

func (l *loader) helper(b block) diag.List {
	a := settings("credentials_helper", b.items)
	l.c.Helper = &Helper{Name: b.labels[0], Args: a.list("args"), At: b.at}
	if n := b.labels[0]; n == "" || strings.ContainsAny(n, `/\`) {
		return append(a.ds, diag.Errorf(diag.CodeCLIConfiguration, &b.at, summary, "%q is not the name of a credentials helper.", n)...)
	}
	return a.ds
}

func (l *loader) registry(b block) diag.List {
	a := settings("registry_protocols", b.items, "retry_count", "request_timeout_seconds")
	l.c.Registry.Retries = a.number("retry_count", l.c.Registry.Retries)
	if s := a.number("request_timeout_seconds", 0); s > 0 {
		l.c.Registry.Timeout = time.Duration(s) * time.Second
	}
	return a.ds
}

func (l *loader) temporal(b block) diag.List {
	a := settings("temporal", b.items, "address", "namespace", "queue", "blobs", "tls_cert", "tls_key", "tls_ca", "tls_server_name", "api_key")
	l.c.Temporal = Temporal{
		Address: a.str("address"), Namespace: a.str("namespace"), Queue: a.str("queue"), Blobs: a.str("blobs"),
		TLSCert: a.str("tls_cert"), TLSKey: a.str("tls_key"), TLSCA: a.str("tls_ca"), TLSServerName: a.str("tls_server_name"), APIKey: a.str("api_key"),
	}
	return a.ds
}

func (l *loader) oci(b block) diag.List {
	const sum = "Invalid oci_credentials block"
	a := settings("oci_credentials", b.items, "username", "password", "access_token", "refresh_token", "docker_credentials_helper")
	host, path, _ := strings.Cut(b.labels[0], "/")
	cr := OCICredentials{
		Host: host, Path: path,
		Username: a.str("username"), Password: a.str("password"),
		AccessToken: a.str("access_token"), RefreshToken: a.str("refresh_token"),
		DockerHelper: a.str("docker_credentials_helper"),
	}
	ds := a.ds
	basic, oauth, helper := a.has("username") || a.has("password"), a.has("access_token") || a.has("refresh_token"), a.has("docker_credentials_helper")
	groups := 0
	for _, g := range []bool{basic, oauth, helper} {
		if g {
			groups++
		}
	}
	switch {
	case groups != 1:
		ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, &b.at, sum, "An oci_credentials block must set exactly one group out of username and password, access_token and refresh_token, or docker_credentials_helper.")...)
	case basic && !(a.has("username") && a.has("password")):
		ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, &b.at, sum, "An oci_credentials block must set both username and password together when using static credentials.")...)
	case oauth && !(a.has("access_token") && a.has("refresh_token")):
		ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, &b.at, sum, "An oci_credentials block must set both access_token and refresh_token together when using OAuth-style credentials.")...)
	case helper && path != "":
		ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, &b.at, sum, "A Docker-style credentials helper serves a whole host: leave out the path after the host name.")...)
	}
	if slices.ContainsFunc(l.c.OCI, func(o OCICredentials) bool { return o.Host == host && o.Path == path }) {
		ds = append(ds, diag.Errorf(diag.CodeCLIConfiguration, &b.at, sum, "There are two oci_credentials blocks for %q.", b.labels[0])...)
	}
	l.c.OCI = append(l.c.OCI, cr)
	return ds
}

func (l *loader) ociDefaults(b block) diag.List {
	a := settings("oci_default_credentials", b.items, "discover_ambient_credentials", "docker_style_config_files", "docker_credentials_helper")
	d := &OCIDefaults{Ambient: true, Files: a.list("docker_style_config_files"), DockerHelper: a.str("docker_credentials_helper")}
	if a.has("discover_ambient_credentials") {
		d.Ambient = a.boolean("discover_ambient_credentials")
	}
	l.c.OCIPlain = d
	return a.ds
}
