package cli_test

import (
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
)

// TestBackendScripts runs testdata/backend: scripts with state on a service. In addition to
// the commands of TestScripts, scripts have these commands:
//
//	httpstate [NAME]   starts a service for the backend http and sets NAME, by default STATE, to its address
//	locked [-on NAME] [ID [INFO]]
//	                   locks the state of the service as another user; without ID, unlocks it
//	holder NAME FILE   writes the lock of a service to a file, empty if there is none
//	served FILE        writes the state on the service to a file
//	kubernetesstate    starts a fake Kubernetes and sets KUBE_HOST and related variables
//	stolen             takes the lock of the state "app" there as another user
//	awsstate [BUCKET]  starts a fake of S3, DynamoDB and STS, sets AWS to its address, and creates a bucket
//	                   and a table "locks"
//	azurestate [-versioning]
//	                   starts a fake of Azure's blobs, and sets the proxy to it and ARM_ACCESS_KEY
//	awsrole ARN        makes the fake accept only a role for states, whose keys expire after the requested time
//	bucketlog FILE     writes the requests to S3, and the buckets and objects, to a file
func TestBackendScripts(t *testing.T) {
	t.Parallel()
	var running sync.Map  // string, the script's directory and the name of the service, to *servers.HTTPServer
	var clusters sync.Map // the same, to *servers.KubernetesServer
	var amazon sync.Map   // the same, to *servers.AWSServer
	service := func(ts *testscript.TestScript, name string) *servers.HTTPServer {
		s, ok := running.Load(ts.Getenv("WORK") + " " + name)
		if !ok {
			ts.Fatalf("no service runs: httpstate starts one")
		}
		return s.(*servers.HTTPServer)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/backend",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		WorkdirRoot:         scriptRoot(t),
		Setup:               setup,
		Condition: func(cond string) (bool, error) {
			return cond == "tofu" && os.Getenv("TERRACE_TEST_TOFU") != "", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"terrace": terrace,
			"scrub":   scrub,
			"tofu":    tofu,
			"codes":   codes,
			"envfile": envfile,
			"httpstate": func(ts *testscript.TestScript, _ bool, args []string) {
				name := append(args, "STATE")[0]
				s := servers.HTTP(t)
				running.Store(ts.Getenv("WORK")+" "+name, s)
				ts.Setenv(name, s.URL)
			},
			"kubernetesstate": func(ts *testscript.TestScript, _ bool, _ []string) {
				s := servers.Kubernetes(t, "planted-token")
				clusters.Store(ts.Getenv("WORK"), s)
				ts.Setenv("KUBE_HOST", s.URL)
				ts.Setenv("KUBE_CLUSTER_CA_CERT_DATA", s.CA)
				ts.Setenv("KUBE_TOKEN", "planted-token")
			},
			"stolen": func(ts *testscript.TestScript, _ bool, _ []string) {
				s, ok := clusters.Load(ts.Getenv("WORK"))
				if !ok {
					ts.Fatalf("no service runs: kubernetesstate starts one")
				}
				s.(*servers.KubernetesServer).Edit("/apis/coordination.k8s.io/v1/namespaces/default/leases/lock-tfstate-default-app", func(o map[string]any) {
					o["spec"].(map[string]any)["holderIdentity"] = "other"
				})
			},
			"awsstate": func(ts *testscript.TestScript, _ bool, args []string) {
				s := servers.AWS(t)
				for _, name := range args {
					s.Bucket(name)
				}
				if len(args) > 0 {
					s.Table("locks")
				}
				amazon.Store(ts.Getenv("WORK"), s)
				for _, v := range [][2]string{{"AWS", s.URL}, {"AWS_ENDPOINT_URL", s.URL}, {"AWS_ACCESS_KEY_ID", servers.AccessKey}, {"AWS_SECRET_ACCESS_KEY", servers.SecretKey}, {"AWS_EC2_METADATA_DISABLED", "true"}} {
					ts.Setenv(v[0], v[1])
				}
			},
			"azurestate": func(ts *testscript.TestScript, _ bool, args []string) {
				s := servers.Blobs(t)
				s.Stand.Versioning = slices.Contains(args, "-versioning")
				for _, v := range [][2]string{{"ARM_ACCESS_KEY", s.Key}, {"HTTPS_PROXY", s.Proxy}, {"SSL_CERT_FILE", s.CAFile}} {
					ts.Setenv(v[0], v[1])
				}
			},
			"awsrole": func(ts *testscript.TestScript, _ bool, args []string) {
				s, ok := amazon.Load(ts.Getenv("WORK"))
				if !ok || len(args) != 1 {
					ts.Fatalf("usage: awsrole ARN, after awsstate")
				}
				s.(*servers.AWSServer).Role = args[0]
			},
			"bucketlog": func(ts *testscript.TestScript, _ bool, args []string) {
				s, ok := amazon.Load(ts.Getenv("WORK"))
				if !ok {
					ts.Fatalf("no service runs: awsstate starts one")
				}
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(s.(*servers.AWSServer).Text()), 0o666))
			},
			"locked": func(ts *testscript.TestScript, _ bool, args []string) {
				info, name := "", "STATE"
				if len(args) > 1 && args[0] == "-on" {
					name, args = args[1], args[2:]
				}
				if len(args) > 0 {
					info = `{"ID":"` + args[0] + `","Operation":"OperationTypeApply","Info":"` + append(args[1:], "")[0] + `","Who":"them@there","Version":"1.12.6","Created":"2026-11-22T14:16:41.440965307Z","Path":""}`
				}
				service(ts, name).SetLock(info)
			},
			"holder": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(service(ts, args[0]).Lock()), 0o666))
			},
			"served": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(service(ts, "STATE").State()), 0o666))
			},
		},
	})
}
