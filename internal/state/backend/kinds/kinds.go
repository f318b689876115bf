// Package kinds contains the list of backend kinds.
//
// The one rule: no other package knows all kinds. Callers that open backends receive this list.
package kinds

import (
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/azurerm"
	"github.com/terrace-iac/terrace/internal/state/backend/consul"
	"github.com/terrace-iac/terrace/internal/state/backend/cos"
	"github.com/terrace-iac/terrace/internal/state/backend/etcdv3"
	"github.com/terrace-iac/terrace/internal/state/backend/gcs"
	"github.com/terrace-iac/terrace/internal/state/backend/httpstore"
	"github.com/terrace-iac/terrace/internal/state/backend/inmem"
	"github.com/terrace-iac/terrace/internal/state/backend/kubernetes"
	"github.com/terrace-iac/terrace/internal/state/backend/local"
	"github.com/terrace-iac/terrace/internal/state/backend/oss"
	"github.com/terrace-iac/terrace/internal/state/backend/pg"
	"github.com/terrace-iac/terrace/internal/state/backend/s3"
	"github.com/terrace-iac/terrace/internal/state/backend/tfe"
)

// All returns the kinds, sorted by name.
func All() []backend.Kind {
	return []backend.Kind{
		azurerm.Kind(),
		tfe.Cloud(),
		consul.Kind(),
		cos.Kind(),
		etcdv3.Kind(),
		gcs.Kind(),
		httpstore.Kind(),
		inmem.Kind(),
		kubernetes.Kind(),
		local.Kind(),
		oss.Kind(),
		pg.Kind(),
		tfe.Remote(),
		s3.Kind(),
	}
}

// Default is the kind of a configuration without a backend.
const Default = "local"

// dropped contains the replacement for each kind that OpenTofu or Terraform has dropped.
var dropped = map[string]string{
	"artifactory": `Artifactory has no locks for this. Keep the state in "http", which can use a generic repository of Artifactory by its address, or in "s3" or "pg"`,
	"etcd":        `The version 2 interface of etcd is gone. Keep the state in "etcdv3"`,
	"manta":       `The service was ended. Keep the state in "s3"`,
	"swift":       `Most OpenStack object stores speak the protocol of S3: keep the state in "s3" with endpoints and skip_credentials_validation, or in "http"`,
	"azure":       `The backend goes by the name "azurerm" now, with the same arguments`,
}

// Unknown returns the message for the name of an unknown kind.
func Unknown(name string) diag.List {
	m := &diag.Message{Code: diag.CodeBackendUnknown, Severity: diag.Error, Summary: "Unsupported backend type"}
	if instead, ok := dropped[name]; ok {
		m.Code = diag.CodeBackendDropped
		m.Detail = fmt.Sprintf("The backend type %q is not supported. %s. To move: with the last version that had it, save the state with \"state pull > moved.tfstate\"; write the other backend's block and run \"init -reconfigure\"; then bring the state in with \"state push moved.tfstate\".", name, instead)
		return diag.List{m}
	}
	m.Detail = fmt.Sprintf("There is no backend type named %q. The types are: %s.", name, strings.Join(names(), ", "))
	return diag.List{m}
}

func names() []string {
	var out []string
	for _, k := range All() {
		if !k.Settings {
			out = append(out, k.Name)
		}
	}
	return out
}
