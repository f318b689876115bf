package install

import (
	"context"
	"fmt"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/cliconfig"
)

// network is what the sources on the network share.
type network struct{}

func (in *installer) network(m cliconfig.Method) source { return offline{m} }

type offline struct{ m cliconfig.Method }

func (o offline) where(p addr.Provider) string { return p.Host }

func (o offline) versions(context.Context, addr.Provider) ([]versions.Version, []string, error) {
	return nil, nil, fmt.Errorf("could not connect to %s", o.m.Kind)
}

func (o offline) find(context.Context, addr.Provider, versions.Version, platform) (found, error) {
	return nil, errPlatform
}
