package servers

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"testing"
)

// Etcd starts etcd and returns the address for clients.
func Etcd(t testing.TB) string {
	etcd := program(t, "etcd", "on Debian it is in the package etcd-server")
	dir := folder(t, nil)
	client, peer := "http://"+local(freePort(t)), "http://"+local(freePort(t))
	ready := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, "GET", client+"/health", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("its health is %s", resp.Status)
		}
		return nil
	}
	run(t, nil, syscall.SIGTERM, ready, etcd, "--data-dir", dir+"/data", "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	return client
}
