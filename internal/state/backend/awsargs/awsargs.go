// Package awsargs reads the arguments about credentials of AWS that several blocks have:
// the backend "s3" and the key provider "aws_kms".
//
// Main functions: Attributes and Options. The one rule: an argument has the same meaning in
// every block.
package awsargs

import (
	"maps"
	"time"

	"github.com/terrace-iac/terrace/internal/net/aws"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/zclconf/go-cty/cty"
)

// Role returns the type of assume_role.
func Role() cty.Type {
	return cty.ObjectWithOptionalAttrs(map[string]cty.Type{
		"role_arn": cty.String, "duration": cty.String, "external_id": cty.String, "policy": cty.String, "policy_arns": cty.Set(cty.String),
		"session_name": cty.String, "tags": cty.Map(cty.String), "transitive_tag_keys": cty.Set(cty.String),
	}, []string{"duration", "external_id", "policy", "policy_arns", "session_name", "tags", "transitive_tag_keys"})
}

// WebIdentity returns the type of assume_role_with_web_identity.
func WebIdentity() cty.Type {
	all := map[string]cty.Type{
		"role_arn": cty.String, "duration": cty.String, "policy": cty.String, "policy_arns": cty.Set(cty.String),
		"session_name": cty.String, "web_identity_token": cty.String, "web_identity_token_file": cty.String,
	}
	return cty.ObjectWithOptionalAttrs(all, []string{"role_arn", "duration", "policy", "policy_arns", "session_name", "web_identity_token", "web_identity_token_file"})
}

// Attributes returns the arguments and their types.
func Attributes() map[string]cty.Type {
	out := map[string]cty.Type{
		"region": cty.String, "access_key": cty.String, "secret_key": cty.String, "token": cty.String, "profile": cty.String,
		"shared_config_files": cty.Set(cty.String), "shared_credentials_files": cty.Set(cty.String), "shared_credentials_file": cty.String,
		"skip_credentials_validation": cty.Bool, "skip_requesting_account_id": cty.Bool, "skip_metadata_api_check": cty.Bool, "skip_region_validation": cty.Bool,
		"ec2_metadata_service_endpoint": cty.String, "ec2_metadata_service_endpoint_mode": cty.String,
		"allowed_account_ids": cty.Set(cty.String), "forbidden_account_ids": cty.Set(cty.String),
		"sts_region": cty.String, "sts_endpoint": cty.String, "iam_endpoint": cty.String,
		"http_proxy": cty.String, "https_proxy": cty.String, "no_proxy": cty.String, "insecure": cty.Bool, "custom_ca_bundle": cty.String,
		"use_dualstack_endpoint": cty.Bool, "use_fips_endpoint": cty.Bool, "max_retries": cty.Number, "retry_mode": cty.String,
		"assume_role": Role().WithoutOptionalAttributesDeep(), "assume_role_with_web_identity": WebIdentity().WithoutOptionalAttributesDeep(),
	}
	maps.Copy(out, map[string]cty.Type{ // the older form of assume_role
		"role_arn": cty.String, "session_name": cty.String, "external_id": cty.String, "assume_role_duration_seconds": cty.Number, "assume_role_policy": cty.String,
		"assume_role_policy_arns": cty.Set(cty.String), "assume_role_tags": cty.Map(cty.String), "assume_role_transitive_tag_keys": cty.Set(cty.String),
	})
	return out
}

// Options reads the arguments. a collects the errors.
func Options(a *backend.Args) aws.Options {
	o := aws.Options{
		Region: a.String("region", ""), AccessKey: a.String("access_key", ""), SecretKey: a.String("secret_key", ""), Token: a.String("token", ""),
		Profile: a.String("profile", ""), ConfigFiles: configFiles(a), CredentialFiles: a.Strings("shared_credentials_files"),
		STSRegion: a.String("sts_region", ""), STSEndpoint: a.String("sts_endpoint", ""),
		MetadataEndpoint: a.String("ec2_metadata_service_endpoint", ""), MetadataMode: a.String("ec2_metadata_service_endpoint_mode", ""),
		Insecure: a.Bool("insecure", false), CABundle: a.String("custom_ca_bundle", ""),
		MaxRetries: a.Int("max_retries", 5), FIPS: a.Bool("use_fips_endpoint", false, "AWS_USE_FIPS_ENDPOINT"), DualStack: a.Bool("use_dualstack_endpoint", false, "AWS_USE_DUALSTACK_ENDPOINT"),
	}
	if file := a.String("shared_credentials_file", ""); file != "" {
		if len(o.CredentialFiles) > 0 {
			a.Fail("shared_credentials_file", "Only one of %q and %q can be set", "shared_credentials_file", "shared_credentials_files")
		}
		o.CredentialFiles = []string{file}
	}
	if a.IsSet("skip_metadata_api_check") {
		skip := a.Bool("skip_metadata_api_check", false)
		o.SkipMetadata = &skip
	}
	switch mode := a.String("ec2_metadata_service_endpoint_mode", ""); mode {
	case "", "IPv4", "IPv6":
	default:
		a.Fail("ec2_metadata_service_endpoint_mode", "The %q is neither IPv4 nor IPv6", "ec2_metadata_service_endpoint_mode")
	}
	switch mode := a.String("retry_mode", "", "AWS_RETRY_MODE"); mode {
	case "", "standard", "adaptive", "legacy":
	default:
		a.Fail("retry_mode", "The %q is neither standard nor adaptive", "retry_mode")
	}
	for name, into := range map[string]**string{"http_proxy": &o.HTTPProxy, "https_proxy": &o.HTTPSProxy, "no_proxy": &o.NoProxy} {
		if a.IsSet(name) {
			v := a.String(name, "")
			*into = &v
		}
	}
	if a.IsSet("access_key") != a.IsSet("secret_key") {
		a.Fail("access_key", "%q and %q can only be set together", "access_key", "secret_key")
	}
	if a.IsSet("allowed_account_ids") && a.IsSet("forbidden_account_ids") {
		a.Fail("allowed_account_ids", "Only one of %q and %q can be set", "allowed_account_ids", "forbidden_account_ids")
	}
	roles(a, &o)
	return o
}

// older are the arguments that assume_role replaced.
var older = []string{"role_arn", "session_name", "external_id", "assume_role_duration_seconds", "assume_role_policy", "assume_role_policy_arns", "assume_role_tags", "assume_role_transitive_tag_keys"}

func roles(a *backend.Args, o *aws.Options) {
	if b := a.Block("assume_role"); b != nil {
		for _, name := range older {
			if a.IsSet(name) {
				a.Fail(name, "%q cannot be set beside %q, which has taken its place", name, "assume_role")
			}
		}
		o.AssumeRole = []aws.Role{role(b, b.Required("role_arn"))}
	} else if arn := a.String("role_arn", ""); arn != "" {
		r := aws.Role{
			ARN: arn, ExternalID: a.String("external_id", ""), Policy: a.String("assume_role_policy", ""), SessionName: a.String("session_name", ""),
			Duration: time.Duration(a.Int("assume_role_duration_seconds", 0)) * time.Second, PolicyARNs: a.Strings("assume_role_policy_arns"),
			Tags: a.Map("assume_role_tags"), TransitiveTagKeys: a.Strings("assume_role_transitive_tag_keys"),
		}
		o.AssumeRole = []aws.Role{r}
	}
	if b := a.Block("assume_role_with_web_identity"); b != nil {
		w := aws.WebIdentity{
			Role:      role(b, b.Required("role_arn", "AWS_ROLE_ARN")),
			Token:     b.String("web_identity_token", "", "AWS_WEB_IDENTITY_TOKEN"),
			TokenFile: b.String("web_identity_token_file", "", "AWS_WEB_IDENTITY_TOKEN_FILE"),
		}
		if w.SessionName == "" {
			w.SessionName = b.String("session_name", "", "AWS_ROLE_SESSION_NAME")
		}
		if b.IsSet("web_identity_token") && b.IsSet("web_identity_token_file") {
			b.Fail("web_identity_token", "Only one of %q and %q can be set", "web_identity_token", "web_identity_token_file")
		}
		if w.Token == "" && w.TokenFile == "" {
			b.Fail("web_identity_token", "One of %q and %q is required", "web_identity_token", "web_identity_token_file")
		}
		o.WebIdentity = &w
	}
}

func role(b *backend.Args, arn string) aws.Role {
	r := aws.Role{ARN: arn, ExternalID: b.String("external_id", ""), Policy: b.String("policy", ""), SessionName: b.String("session_name", ""), PolicyARNs: b.Strings("policy_arns"), Tags: b.Map("tags"), TransitiveTagKeys: b.Strings("transitive_tag_keys")}
	if text := b.String("duration", ""); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < 15*time.Minute || d > 12*time.Hour {
			b.Fail("duration", "The %q is not a duration from 15m to 12h", "duration")
		}
		r.Duration = d
	}
	return r
}

// configFiles returns the configured files with profiles; nil means the default files.
func configFiles(a *backend.Args) []string {
	if files := a.Strings("shared_config_files"); files != nil {
		return files
	}
	if file := a.String("", "", "AWS_SHARED_CONFIG_FILE"); file != "" {
		return []string{file}
	}
	return nil
}
