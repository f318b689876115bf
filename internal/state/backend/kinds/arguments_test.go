package kinds

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/schema"
)

// documented contains the arguments, blocks and environment variables that the documentation of
// OpenTofu and Terraform lists for each kind. An argument begins with its type (s, b, n, m:
// map, l: list, set, o: object), a block with "block", and the contents of an object or block
// follow in braces. The packages that read the variables follow the kind's own.
var documented = map[string]struct {
	arguments string
	variables string
	packages  []string
}{
	"local": {arguments: "s path, s workspace_dir"},
	"inmem": {arguments: "s lock_id"},
	"http": {
		arguments: `s address, s update_method, s lock_address, s unlock_address, s lock_method, s unlock_method, s username, s password, b skip_cert_verification,
			n retry_max, n retry_wait_min, n retry_wait_max, s client_ca_certificate_pem, s client_certificate_pem, s client_private_key_pem, m headers`,
		variables: `TF_HTTP_ADDRESS TF_HTTP_UPDATE_METHOD TF_HTTP_LOCK_ADDRESS TF_HTTP_UNLOCK_ADDRESS TF_HTTP_LOCK_METHOD TF_HTTP_UNLOCK_METHOD TF_HTTP_USERNAME TF_HTTP_PASSWORD
			TF_HTTP_RETRY_MAX TF_HTTP_RETRY_WAIT_MIN TF_HTTP_RETRY_WAIT_MAX TF_HTTP_CLIENT_CA_CERTIFICATE_PEM TF_HTTP_CLIENT_CERTIFICATE_PEM TF_HTTP_CLIENT_PRIVATE_KEY_PEM`,
		packages: []string{"httpstore"},
	},
	"s3": {
		arguments: `s bucket, s key, s region, s workspace_key_prefix, s acl, b encrypt, s kms_key_id, s sse_customer_key, m state_tags, m lock_tags, s dynamodb_table, b use_lockfile, b skip_s3_checksum,
			o endpoints {s3 iam sts dynamodb}, s endpoint, s iam_endpoint, s sts_endpoint, s dynamodb_endpoint, b use_path_style, b force_path_style, b use_dualstack_endpoint, b use_fips_endpoint,
			b insecure, s custom_ca_bundle, s http_proxy, s https_proxy, s no_proxy, n max_retries, s retry_mode, b skip_region_validation,
			s access_key, s secret_key, s token, s profile, set shared_config_files, set shared_credentials_files, s shared_credentials_file, s sts_region,
			b skip_credentials_validation, b skip_requesting_account_id, b skip_metadata_api_check, s ec2_metadata_service_endpoint, s ec2_metadata_service_endpoint_mode,
			set allowed_account_ids, set forbidden_account_ids,
			o assume_role {role_arn duration external_id policy policy_arns session_name tags transitive_tag_keys},
			s role_arn, s session_name, s external_id, n assume_role_duration_seconds, s assume_role_policy, set assume_role_policy_arns, m assume_role_tags, set assume_role_transitive_tag_keys,
			o assume_role_with_web_identity {role_arn duration policy policy_arns session_name web_identity_token web_identity_token_file}`,
		variables: `AWS_REGION AWS_DEFAULT_REGION AWS_SSE_CUSTOMER_KEY AWS_ENDPOINT_URL_S3 AWS_S3_ENDPOINT AWS_ENDPOINT_URL_IAM AWS_IAM_ENDPOINT AWS_ENDPOINT_URL_STS AWS_STS_ENDPOINT
			AWS_ENDPOINT_URL_DYNAMODB AWS_DYNAMODB_ENDPOINT AWS_CA_BUNDLE AWS_SHARED_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE AWS_EC2_METADATA_SERVICE_ENDPOINT AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE
			AWS_ROLE_ARN AWS_ROLE_SESSION_NAME AWS_WEB_IDENTITY_TOKEN AWS_WEB_IDENTITY_TOKEN_FILE AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_PROFILE`,
		packages: []string{"s3", "awsargs", "../../net/aws"},
	},
	"azurerm": {
		arguments: `s storage_account_name, s container_name, s key, s environment, s metadata_host, s resource_group_name, s subscription_id, s tenant_id, b snapshot, n timeout_seconds,
			s customer_provided_key, s encryption_scope, s endpoint, s access_key, s sas_token, s client_certificate, s client_certificate_path, s client_certificate_password,
			s client_id, s client_id_file_path, s client_secret, s client_secret_file_path, b use_oidc, s ado_service_connection_id, s oidc_token, s oidc_token_file_path,
			s oidc_request_url, s oidc_request_token, b use_msi, s msi_endpoint, b use_aks_workload_identity, b use_cli, b use_azuread_auth`,
		variables: `ARM_ENVIRONMENT ARM_METADATA_HOST ARM_SUBSCRIPTION_ID ARM_TENANT_ID ARM_SNAPSHOT ARM_TIMEOUT_SECONDS ARM_CUSTOMER_PROVIDED_KEY ARM_ENCYRPTION_SCOPE ARM_ENCRYPTION_SCOPE ARM_ACCESS_KEY ARM_SAS_TOKEN
			ARM_CLIENT_CERTIFICATE ARM_CLIENT_CERTIFICATE_PATH ARM_CLIENT_CERTIFICATE_PASSWORD ARM_CLIENT_SECRET ARM_CLIENT_SECRET_FILE_PATH ARM_CLIENT_ID ARM_CLIENT_ID_FILE_PATH
			ARM_ADO_PIPELINE_SERVICE_CONNECTION_ID ARM_OIDC_AZURE_SERVICE_CONNECTION_ID AZURESUBSCRIPTION_SERVICE_CONNECTION_ID SYSTEM_OIDCREQUESTURI SYSTEM_ACCESSTOKEN
			ARM_USE_OIDC ARM_OIDC_TOKEN ARM_OIDC_TOKEN_FILE_PATH AZURE_FEDERATED_TOKEN_FILE ARM_OIDC_REQUEST_URL ACTIONS_ID_TOKEN_REQUEST_URL ARM_OIDC_REQUEST_TOKEN ACTIONS_ID_TOKEN_REQUEST_TOKEN
			ARM_USE_MSI MSI_ENDPOINT ARM_USE_AKS_WORKLOAD_IDENTITY ARM_USE_CLI ARM_USE_AZUREAD`,
		packages: []string{"azurerm", "azureargs", "../../net/azure"},
	},
	"gcs": {
		arguments: `s bucket, s prefix, s credentials, s access_token, s impersonate_service_account, l impersonate_service_account_delegates, s encryption_key, s kms_encryption_key, s storage_custom_endpoint, s universe_domain`,
		variables: `GOOGLE_BACKEND_CREDENTIALS GOOGLE_CREDENTIALS GOOGLE_APPLICATION_CREDENTIALS GOOGLE_OAUTH_ACCESS_TOKEN GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT GOOGLE_IMPERSONATE_SERVICE_ACCOUNT
			GOOGLE_ENCRYPTION_KEY GOOGLE_KMS_ENCRYPTION_KEY GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT GOOGLE_STORAGE_CUSTOM_ENDPOINT GOOGLE_BACKEND_UNIVERSE_DOMAIN`,
		packages: []string{"gcs", "../../net/gcp"},
	},
	"consul": {
		arguments: `s path, s access_token, s address, s scheme, s datacenter, s http_auth, b gzip, b lock, s ca_file, s cert_file, s key_file`,
		variables: `CONSUL_HTTP_TOKEN CONSUL_HTTP_ADDR CONSUL_HTTP_SSL CONSUL_HTTP_AUTH CONSUL_CACERT CONSUL_CLIENT_CERT CONSUL_CLIENT_KEY CONSUL_NAMESPACE CONSUL_PARTITION CONSUL_HTTP_SSL_VERIFY CONSUL_TLS_SERVER_NAME`,
		packages:  []string{"consul"},
	},
	"pg": {
		arguments: `s conn_str, s schema_name, s table_name, s index_name, b skip_schema_creation, b skip_table_creation, b skip_index_creation`,
		variables: `PG_CONN_STR PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE PGSSLMODE PG_SCHEMA_NAME PG_TABLE_NAME PG_INDEX_NAME PG_SKIP_SCHEMA_CREATION PG_SKIP_TABLE_CREATION PG_SKIP_INDEX_CREATION`,
		packages:  []string{"pg"},
	},
	"kubernetes": {
		arguments: `s secret_suffix, m labels, s namespace, b in_cluster_config, b load_config_file, s host, s username, s password, b insecure, s client_certificate, s client_key, s cluster_ca_certificate,
			s config_path, l config_paths, s config_context, s config_context_auth_info, s config_context_cluster, s token, block exec {api_version command args env}`,
		variables: `KUBE_NAMESPACE KUBE_IN_CLUSTER_CONFIG KUBE_LOAD_CONFIG_FILE KUBE_HOST KUBE_USER KUBE_PASSWORD KUBE_INSECURE KUBE_CLIENT_CERT_DATA KUBE_CLIENT_KEY_DATA KUBE_CLUSTER_CA_CERT_DATA
			KUBE_CONFIG_PATH KUBE_CONFIG_PATHS KUBE_CTX KUBE_CTX_AUTH_INFO KUBE_CTX_CLUSTER KUBE_TOKEN`,
		packages: []string{"kubernetes"},
	},
	"cos": {
		arguments: `s region, s bucket, s secret_id, s secret_key, s security_token, s prefix, s key, b encrypt, s acl, b accelerate, block assume_role {role_arn session_name session_duration policy}`,
		variables: `TENCENTCLOUD_REGION TENCENTCLOUD_SECRET_ID TENCENTCLOUD_SECRET_KEY TENCENTCLOUD_SECURITY_TOKEN TENCENTCLOUD_ASSUME_ROLE_ARN TENCENTCLOUD_ASSUME_ROLE_SESSION_NAME TENCENTCLOUD_ASSUME_ROLE_SESSION_DURATION`,
		packages:  []string{"cos", "bucket"},
	},
	"oss": {
		arguments: `s bucket, s access_key, s secret_key, s security_token, s ecs_role_name, s region, s endpoint, s sts_endpoint, s tablestore_endpoint, s tablestore_table, s prefix, s key, b encrypt, s acl,
			s shared_credentials_file, s profile, s assume_role_role_arn, s assume_role_session_name, s assume_role_policy, n assume_role_session_expiration,
			block assume_role {role_arn session_name policy session_expiration}`,
		variables: `ALICLOUD_ACCESS_KEY ALICLOUD_ACCESS_KEY_ID ALICLOUD_SECRET_KEY ALICLOUD_ACCESS_KEY_SECRET ALICLOUD_SECURITY_TOKEN ALICLOUD_ECS_ROLE_NAME ALICLOUD_REGION ALICLOUD_DEFAULT_REGION
			ALICLOUD_OSS_ENDPOINT OSS_ENDPOINT ALICLOUD_STS_ENDPOINT ALICLOUD_TABLESTORE_ENDPOINT ALICLOUD_SHARED_CREDENTIALS_FILE ALICLOUD_PROFILE ALICLOUD_ASSUME_ROLE_ARN ALICLOUD_ASSUME_ROLE_SESSION_NAME
			ALICLOUD_ASSUME_ROLE_SESSION_EXPIRATION`,
		packages: []string{"oss", "bucket"},
	},
	"remote": {arguments: `s hostname, s organization, s token, block workspaces {name prefix}`, variables: `TF_FORCE_LOCAL_BACKEND`, packages: []string{"tfe"}},
	"cloud": {
		arguments: `s hostname, s organization, s token, block workspaces {name tags project}`,
		variables: `TF_CLOUD_HOSTNAME TF_CLOUD_ORGANIZATION TF_CLOUD_PROJECT TF_WORKSPACE TF_FORCE_LOCAL_BACKEND`,
		packages:  []string{"tfe"},
	},
	"etcdv3": {
		arguments: `l endpoints, s username, s password, s prefix, s cacert_path, s cert_path, s key_path, n max_request_bytes, b lock`,
		variables: `ETCDV3_USERNAME ETCDV3_PASSWORD`,
		packages:  []string{"etcdv3"},
	},
}

// Every kind has exactly the documented arguments, since the record of init depends on them,
// and it reads the documented variables.
func TestArguments(t *testing.T) {
	for _, k := range All() {
		t.Run(k.Name, func(t *testing.T) {
			d, ok := documented[k.Name]
			if !ok {
				t.Fatal("not documented")
			}
			var want []string
			for line := range strings.SplitSeq(d.arguments, ",") {
				want = append(want, strings.Join(strings.Fields(line), " "))
			}
			slices.Sort(want)
			if got := described(k); !slices.Equal(got, want) {
				for _, s := range want {
					if !slices.Contains(got, s) {
						t.Errorf("missing: %s", s)
					}
				}
				for _, s := range got {
					if !slices.Contains(want, s) {
						t.Errorf("not documented: %s", s)
					}
				}
			}
			var read []string
			for _, p := range d.packages {
				read = append(read, literals(t, filepath.Join("..", p))...)
			}
			for name := range strings.FieldsSeq(d.variables) {
				// No request is sent to the IAM service, so that its endpoint is not needed.
				if !slices.Contains(read, name) && !strings.HasSuffix(name, "_IAM") && name != "AWS_IAM_ENDPOINT" {
					t.Errorf("%s is not read", name)
				}
			}
		})
	}
}

// described returns the arguments and blocks of a kind in the form of documented.
func described(k backend.Kind) []string {
	var out []string
	for name, a := range k.Schema.Attributes {
		t := a.Type
		switch {
		case t.IsObjectType():
			inner := t.AttributeTypes()
			out = append(out, "o "+name+" "+braces(sortedAs(k.Name, name, inner)))
		case t.IsMapType():
			out = append(out, "m "+name)
		case t.IsListType():
			out = append(out, "l "+name)
		case t.IsSetType():
			out = append(out, "set "+name)
		default:
			out = append(out, map[string]string{"string": "s", "bool": "b", "number": "n"}[t.FriendlyName()]+" "+name)
		}
	}
	for name, b := range k.Schema.Blocks {
		out = append(out, "block "+name+" "+braces(sortedAs[*schema.Attribute](k.Name, name, b.Attributes)))
	}
	slices.Sort(out)
	return out
}

func braces(names []string) string { return "{" + strings.Join(names, " ") + "}" }

// sortedAs returns the names in documented order, followed by all others.
func sortedAs[T any](kind, of string, in map[string]T) []string {
	var out []string
	text := documented[kind].arguments
	if _, rest, ok := strings.Cut(text, of+" {"); ok {
		inner, _, _ := strings.Cut(rest, "}")
		for name := range strings.FieldsSeq(inner) {
			if _, ok := in[name]; ok {
				out = append(out, name)
			}
		}
	}
	for name := range in {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// literals returns the string literals in the source of a package.
func literals(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if s, err := strconv.Unquote(l.Value); err == nil {
					out = append(out, s)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
