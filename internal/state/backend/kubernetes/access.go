package kubernetes

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	ctyyaml "github.com/zclconf/go-cty-yaml"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// serviceAccount is the directory with the credentials of a pod's service account.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// An access is the address of a cluster and the credentials for it.
type access struct {
	Server     string
	ServerName string
	Proxy      string
	Insecure   bool
	CA         string // PEM
	Cert, Key  string // PEM
	Token      string
	TokenFile  string // read again when it may have changed
	User, Pass string
	Exec       *execPlugin
	As         impersonation

	argument string // the argument that sets the credentials
}

// An execPlugin is a program that returns credentials.
type execPlugin struct {
	APIVersion         string
	Command            string
	Args               []string
	Env                []struct{ Name, Value string }
	ProvideClusterInfo bool
	Dir                string // its working directory, which relative commands are resolved from
}

type impersonation struct {
	User, UID string
	Groups    []string
	Extra     map[string][]string
}

// key returns a text that identifies the access.
func (x *access) key() string {
	b, err := json.Marshal(x)
	if err != nil {
		return fmt.Sprintf("%p", x)
	}
	return string(b)
}

// accessOf reads the arguments about the cluster: from the pod or the kubeconfig files,
// overridden by single arguments.
func accessOf(a *backend.Args, s backend.Services) *access {
	a.Bool("load_config_file", true, "KUBE_LOAD_CONFIG_FILE") // has no effect, as in OpenTofu and Terraform
	x := &access{argument: "token"}
	if a.Bool("in_cluster_config", false, "KUBE_IN_CLUSTER_CONFIG") {
		x = inCluster(a, s)
	} else {
		x.fromFiles(a, s)
	}
	set := func(to *string, name, env string) {
		if v := a.String(name, "", env); v != "" {
			*to = v
		}
	}
	set(&x.User, "username", "KUBE_USER")
	set(&x.Pass, "password", "KUBE_PASSWORD")
	set(&x.Cert, "client_certificate", "KUBE_CLIENT_CERT_DATA")
	set(&x.Key, "client_key", "KUBE_CLIENT_KEY_DATA")
	set(&x.CA, "cluster_ca_certificate", "KUBE_CLUSTER_CA_CERT_DATA")
	if token := a.String("token", "", "KUBE_TOKEN"); token != "" {
		x.Token, x.TokenFile = token, ""
	}
	x.Insecure = a.Bool("insecure", x.Insecure, "KUBE_INSECURE")
	if x.Insecure {
		x.CA = "" // the library of Kubernetes does not accept both
	}
	set(&x.Server, "host", "KUBE_HOST")
	if x.Server != "" && !strings.Contains(x.Server, "://") {
		scheme := "http://"
		if x.CA != "" || x.Cert != "" || x.Insecure {
			scheme = "https://"
		}
		x.Server = scheme + x.Server
	}
	x.Server = strings.TrimSuffix(x.Server, "/")
	if e := a.Block("exec"); e != nil {
		x.argument = "exec"
		x.Exec = &execPlugin{APIVersion: e.Required("api_version"), Command: e.Required("command"), Args: e.Strings("args"), Dir: s.Dir}
		for name, v := range e.Map("env") {
			x.Exec.Env = append(x.Exec.Env, struct{ Name, Value string }{name, v})
		}
		slices.SortFunc(x.Exec.Env, func(a, b struct{ Name, Value string }) int { return strings.Compare(a.Name, b.Name) })
	}
	if x.Server == "" {
		a.Fail("config_path", "Nothing says where the cluster is: set %q or KUBE_CONFIG_PATH, %q, or %q", "config_path", "host", "in_cluster_config")
		return x
	}
	if _, err := (backend.TLS{CA: x.CA, Cert: x.Cert, Key: x.Key}).Config(); err != nil {
		name := "client_certificate"
		if err == backend.ErrCA {
			name = "cluster_ca_certificate"
		}
		a.Fail(name, "The certificates for the cluster cannot be used: %s", err)
	}
	return x
}

func inCluster(a *backend.Args, s backend.Services) *access {
	x := &access{argument: "in_cluster_config", TokenFile: serviceAccount + "/token"}
	host, port := s.Env.Get("KUBERNETES_SERVICE_HOST"), s.Env.Get("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		a.Fail("in_cluster_config", "This does not run in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
		return x
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	x.Server = "https://" + host + ":" + port
	ca, err := readfile.Whole(serviceAccount + "/ca.crt")
	if err == nil {
		_, err = os.Stat(x.TokenFile)
	}
	if err != nil {
		a.Fail("in_cluster_config", "The credentials of the pod's service account cannot be read: %s", err)
	}
	x.CA = string(ca)
	return x
}

// A kubeconfig is a kubeconfig file, or the result of merging several.
type kubeconfig struct {
	CurrentContext string `json:"current-context"`
	Contexts       []struct {
		Name    string
		Context struct{ Cluster, User string }
	}
	Clusters []struct {
		Name    string
		Cluster struct {
			Server     string
			CA         string `json:"certificate-authority"`
			CAData     string `json:"certificate-authority-data"`
			Insecure   bool   `json:"insecure-skip-tls-verify"`
			ServerName string `json:"tls-server-name"`
			Proxy      string `json:"proxy-url"`
		}
		dir string
	}
	Users []struct {
		Name string
		User struct {
			Cert         string `json:"client-certificate"`
			CertData     string `json:"client-certificate-data"`
			Key          string `json:"client-key"`
			KeyData      string `json:"client-key-data"`
			Token        string
			TokenFile    string
			As           string
			AsUID        string              `json:"as-uid"`
			AsGroups     []string            `json:"as-groups"`
			AsExtra      map[string][]string `json:"as-user-extra"`
			Username     string
			Password     string
			Exec         *execPlugin
			AuthProvider *struct{ Name string } `json:"auth-provider"`
		}
		dir string
	}
}

// parseKubeconfig parses a file. Relative paths in it are resolved from its directory.
func parseKubeconfig(text []byte, dir string) (*kubeconfig, error) {
	t, err := ctyyaml.ImpliedType(text)
	if err != nil {
		return nil, err
	}
	v, err := ctyyaml.Unmarshal(text, t)
	if err != nil {
		return nil, err
	}
	j, err := ctyjson.Marshal(v, t)
	if err != nil {
		return nil, err
	}
	k := &kubeconfig{}
	if err := json.Unmarshal(j, k); err != nil {
		return nil, err
	}
	for i := range k.Clusters {
		k.Clusters[i].dir = dir
	}
	for i := range k.Users {
		k.Users[i].dir = dir
	}
	return k, nil
}

// fromFiles reads the kubeconfig files, if any are configured.
func (x *access) fromFiles(a *backend.Args, s backend.Services) {
	argument, paths := "config_path", []string{}
	if p := a.String("config_path", "", "KUBE_CONFIG_PATH"); p != "" {
		paths = append(paths, p)
	} else if list := a.Strings("config_paths"); len(list) > 0 {
		argument, paths = "config_paths", list
	} else if list := s.Env.Get("KUBE_CONFIG_PATHS"); list != "" {
		argument, paths = "config_paths", filepath.SplitList(list)
	}
	if len(paths) == 0 {
		return
	}
	x.argument = argument
	all := &kubeconfig{}
	read := 0
	for _, p := range paths {
		p = at(s, p)
		text, err := readfile.Whole(p)
		if err != nil {
			if len(paths) > 1 && os.IsNotExist(err) {
				continue
			}
			a.Fail(argument, "The kubeconfig file cannot be read: %s", err)
			return
		}
		k, err := parseKubeconfig(text, filepath.Dir(p))
		if err != nil { // the error may contain parts of the file
			a.Fail(argument, "The file %s is not a kubeconfig in YAML", p)
			return
		}
		read++
		if all.CurrentContext == "" {
			all.CurrentContext = k.CurrentContext
		}
		all.Contexts = append(all.Contexts, k.Contexts...) // the first of a name is used
		all.Clusters = append(all.Clusters, k.Clusters...)
		all.Users = append(all.Users, k.Users...)
	}
	if read == 0 {
		a.Fail(argument, "None of the kubeconfig files is there: %s", strings.Join(paths, ", "))
		return
	}
	x.pick(all, a, argument)
}

// pick selects one context of a kubeconfig.
func (x *access) pick(k *kubeconfig, a *backend.Args, argument string) {
	name := a.String("config_context", k.CurrentContext, "KUBE_CTX")
	var cluster, user string
	if i := indexOf(k.Contexts, func(i int) string { return k.Contexts[i].Name }, name); i >= 0 {
		cluster, user = k.Contexts[i].Context.Cluster, k.Contexts[i].Context.User
	} else if name != "" {
		a.Fail("config_context", "The kubeconfig has no context %q", name)
		return
	}
	cluster = a.String("config_context_cluster", cluster, "KUBE_CTX_CLUSTER")
	user = a.String("config_context_auth_info", user, "KUBE_CTX_AUTH_INFO")
	file := func(dir, path, data string) string {
		if data != "" {
			b, err := base64.StdEncoding.DecodeString(data)
			if err != nil {
				a.Fail(argument, "A certificate or key in the kubeconfig is not in base64")
			}
			return string(b)
		}
		if path == "" {
			return ""
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		b, err := readfile.Whole(path)
		if err != nil {
			a.Fail(argument, "A file that the kubeconfig names cannot be read: %s", err)
		}
		return string(b)
	}
	if cluster != "" {
		i := indexOf(k.Clusters, func(i int) string { return k.Clusters[i].Name }, cluster)
		if i < 0 {
			a.Fail("config_context_cluster", "The kubeconfig has no cluster %q", cluster)
			return
		}
		c := k.Clusters[i].Cluster
		x.Server, x.Insecure, x.ServerName, x.Proxy = c.Server, c.Insecure, c.ServerName, c.Proxy
		x.CA = file(k.Clusters[i].dir, c.CA, c.CAData)
	}
	if user != "" {
		i := indexOf(k.Users, func(i int) string { return k.Users[i].Name }, user)
		if i < 0 {
			a.Fail("config_context_auth_info", "The kubeconfig has no user %q", user)
			return
		}
		u, dir := k.Users[i].User, k.Users[i].dir
		if u.AuthProvider != nil {
			a.Fail(argument, "The user %q of the kubeconfig has the auth-provider %q; these were removed from Kubernetes: use a plugin with exec", user, u.AuthProvider.Name)
		}
		x.Cert, x.Key = file(dir, u.Cert, u.CertData), file(dir, u.Key, u.KeyData)
		x.Token, x.User, x.Pass = u.Token, u.Username, u.Password
		if u.TokenFile != "" {
			x.TokenFile = u.TokenFile
			if !filepath.IsAbs(x.TokenFile) {
				x.TokenFile = filepath.Join(dir, x.TokenFile)
			}
		}
		x.As = impersonation{User: u.As, UID: u.AsUID, Groups: u.AsGroups, Extra: u.AsExtra}
		if u.Exec != nil {
			x.Exec = u.Exec
			x.Exec.Dir = dir
		}
	}
}

func indexOf[T any](list []T, name func(int) string, want string) int {
	for i := range list {
		if want != "" && name(i) == want {
			return i
		}
	}
	return -1
}

// at returns the path of a configured file; "~" is the home directory.
func at(s backend.Services, path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') && s.Home != "" {
		return filepath.Join(s.Home, rest)
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.Dir, path)
}

// environment returns the environment of a plugin.
func (p *execPlugin) environment(env sys.Env, info string) sys.Env {
	for _, e := range p.Env {
		env = env.With(e.Name + "=" + e.Value)
	}
	return env.With("KUBERNETES_EXEC_INFO=" + info)
}
