// Command temporal is a Temporal server for trying runs on other machines. It is one
// process with all of its data in one SQLite file, so that it can be stopped and restarted.
//
// It prints HOST:PORT NAMESPACE when it is ready. For production see the compose file and
// the Kubernetes example in this directory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:7233", "where clients and workers reach it; port 0 takes any")
	namespace := flag.String("namespace", "default", "the namespace that it has")
	db := flag.String("db", "temporal.db", "the SQLite file")
	flag.Parse()
	if err := run(*listen, *namespace, *db); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// cell is the name of the only cluster.
const cell = "active"

func run(listen, namespace, db string) error {
	host, port, err := address(listen)
	if err != nil {
		return err
	}
	c, at, err := settings(host, port, db)
	if err != nil {
		return err
	}
	sql := c.Persistence.DataStores[sqliteplugin.PluginName].SQL
	if _, err := os.Stat(db); errors.Is(err, os.ErrNotExist) {
		if err := sqlite.SetupSchema(sql); err != nil {
			return fmt.Errorf("%s cannot be made: %w", db, err)
		}
	}
	ns, err := sqlite.NewNamespaceConfig(cell, namespace, false, nil)
	if err != nil {
		return err
	}
	if err := sqlite.CreateNamespaces(sql, ns); err != nil {
		return err
	}
	s, err := temporal.NewServer(
		temporal.WithConfig(c),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(at),
		temporal.WithLogger(log.NewNoopLogger()),
		temporal.WithDynamicConfigClient(dynamicconfig.StaticClient{
			dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): []dynamicconfig.ConstrainedValue{{Value: true}},
			// A queue has one partition, because there is only one process.
			dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  []dynamicconfig.ConstrainedValue{{Value: 1}},
			dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): []dynamicconfig.ConstrainedValue{{Value: 1}},
		}),
	)
	if err != nil {
		return err
	}
	if err := s.Start(); err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, os.Interrupt)
	if err := answers(net.JoinHostPort(host, strconv.Itoa(port)), namespace); err != nil {
		return errors.Join(err, s.Stop())
	}
	fmt.Println(net.JoinHostPort(host, strconv.Itoa(port)), namespace)
	<-ended
	return s.Stop()
}

func address(listen string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(text); err == nil && port == 0 {
		port, err = free()
	}
	return host, port, err
}

// free returns an unused port.
func free() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// settings returns the configuration of a single-process server, and the addresses of
// its parts.
func settings(host string, port int, db string) (*config.Config, map[primitives.ServiceName]static.Hosts, error) {
	const loopback = "127.0.0.1"
	c := &config.Config{
		Global: config.Global{Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: loopback}},
		Persistence: config.Persistence{
			DefaultStore: sqliteplugin.PluginName, VisibilityStore: sqliteplugin.PluginName, NumHistoryShards: 1,
			DataStores: map[string]config.DataStore{sqliteplugin.PluginName: {SQL: &config.SQL{
				PluginName: sqliteplugin.PluginName, DatabaseName: db,
				ConnectAttributes: map[string]string{"mode": "rwc", "_journal_mode": "wal", "_synchronous": "normal"},
			}}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: cell, CurrentClusterName: cell,
			ClusterInformation: map[string]cluster.ClusterInformation{
				cell: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: net.JoinHostPort(loopback, strconv.Itoa(port)), ClusterID: "terrace-example"},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Archival:            config.Archival{History: config.HistoryArchival{State: "disabled"}, Visibility: config.VisibilityArchival{State: "disabled"}},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History: config.HistoryArchivalNamespaceDefaults{State: "disabled"}, Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
		PublicClient: config.PublicClient{HostPort: net.JoinHostPort(loopback, strconv.Itoa(port))},
		Services:     map[string]config.Service{},
	}
	at := map[primitives.ServiceName]static.Hosts{}
	for _, name := range []primitives.ServiceName{primitives.FrontendService, primitives.HistoryService, primitives.MatchingService, primitives.WorkerService} {
		rpc, own := config.RPC{BindOnLocalHost: true, GRPCPort: port}, loopback
		if name == primitives.FrontendService {
			rpc.BindOnLocalHost, rpc.BindOnIP, own = false, host, host
			if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
				own = loopback
			}
		} else {
			var err error
			if rpc.GRPCPort, err = free(); err != nil {
				return nil, nil, err
			}
		}
		c.Services[string(name)] = config.Service{RPC: rpc}
		at[name] = static.SingleLocalHost(net.JoinHostPort(own, strconv.Itoa(rpc.GRPCPort)))
	}
	return c, at, nil
}

// answers waits until the server has the namespace.
func answers(address, namespace string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := ask(ctx, address, namespace)
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func ask(ctx context.Context, address, namespace string) error {
	c, err := client.DialContext(ctx, client.Options{HostPort: address, Namespace: namespace, Logger: quiet{}})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.DescribeTaskQueue(ctx, "none", 1)
	return err
}

type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
