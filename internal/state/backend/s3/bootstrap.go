package s3

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/net/aws"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/zclconf/go-cty/cty"
)

// Bucket and table are created with the calls of
// https://docs.aws.amazon.com/AmazonS3/latest/API/ and get the same settings as from
// Terragrunt: versioning, encryption, no public access, a policy that allows access to the
// account's root and denies connections without TLS, access logs, and tags.

// bootstrapArgs returns the arguments of remote_state about creating bucket and table.
func bootstrapArgs() map[string]cty.Type {
	out := map[string]cty.Type{
		"s3_bucket_tags": cty.Map(cty.String), "dynamodb_table_tags": cty.Map(cty.String), "accesslogging_bucket_tags": cty.Map(cty.String),
		"accesslogging_bucket_name": cty.String, "accesslogging_target_prefix": cty.String, "accesslogging_target_object_partition_date_source": cty.String,
		"bucket_sse_algorithm": cty.String, "bucket_sse_kms_key_id": cty.String,
	}
	for _, name := range []string{
		"disable_aws_client_checksums", "disable_bucket_update", "enable_lock_table_ssencryption",
		"skip_accesslogging_bucket_acl", "skip_accesslogging_bucket_enforced_tls", "skip_accesslogging_bucket_public_access_blocking", "skip_accesslogging_bucket_ssencryption",
		"skip_bucket_accesslogging", "skip_bucket_creation", "skip_bucket_enforced_tls", "skip_bucket_public_access_blocking", "skip_bucket_root_access", "skip_bucket_ssencryption", "skip_bucket_versioning",
	} {
		out[name] = cty.Bool
	}
	return out
}

// Site implements backend.Bootstrapper.
func (b *s3Backend) Site() string { return b.base + " " + b.tableBase + " " + b.table }

// Versioned implements backend.Bootstrapper.
func (b *s3Backend) Versioned(ctx context.Context) (bool, error) {
	v, err := b.setting(ctx, "versioning", "s3:GetBucketVersioning")
	return strings.Contains(v, "<Status>Enabled</Status>"), err
}

// A making is a bucket that is being created or changed.
type making struct {
	*s3Backend
	o     backend.Bootstrapping
	fresh bool // it was just created
}

// Bootstrap implements backend.Bootstrapper.
func (b *s3Backend) Bootstrap(ctx context.Context, o backend.Bootstrapping) error {
	o.Keep = o.Keep || o.Args.Bool("disable_bucket_update", false)
	m := &making{s3Backend: b, o: o}
	if !o.Args.Bool("skip_bucket_creation", false) {
		exists, err := m.bucketThere(ctx, o.Args.Map("s3_bucket_tags"), b.acl != "")
		if err == nil && exists {
			err = m.configureStates(ctx)
		}
		if err != nil {
			return err
		}
	}
	if b.table == "" {
		return nil
	}
	return b.makeTable(ctx, o)
}

// configureStates applies the settings in the arguments to the bucket of states.
func (m *making) configureStates(ctx context.Context) error {
	a := m.o.Args
	skip := func(name string) bool { return a.Bool(name, false) }
	var errs []error
	do := func(skipped bool, f func(context.Context) error) {
		if !skipped && len(errs) == 0 {
			errs = append(errs, f(ctx))
			errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
		}
	}
	do(skip("skip_bucket_public_access_blocking"), m.blockPublicAccess)
	do(false, func(ctx context.Context) error {
		return m.policy(ctx, !skip("skip_bucket_root_access"), !skip("skip_bucket_enforced_tls"))
	})
	do(skip("skip_bucket_versioning"), m.versioning)
	do(skip("skip_bucket_ssencryption"), func(ctx context.Context) error {
		return m.encryption(ctx, a.String("bucket_sse_algorithm", "aws:kms"), a.String("bucket_sse_kms_key_id", ""))
	})
	do(skip("skip_bucket_accesslogging") || a.String("accesslogging_bucket_name", "") == "", m.logging)
	return errors.Join(errs...)
}

// bucketThere creates the bucket if there is none. configure reports whether the settings
// in the arguments must be applied.
func (m *making) bucketThere(ctx context.Context, tags map[string]string, acls bool) (configure bool, err error) {
	resp, err := m.send(ctx, "HEAD", "", nil, nil, nil, true)
	switch {
	case err != nil:
		return false, err
	case resp.Status == http.StatusOK:
		return !m.o.Keep, nil
	case resp.Status != http.StatusNotFound:
		return false, m.refused("Failed to look for the bucket", resp, "s3:ListBucket")
	case m.o.Require:
		return false, &backend.Error{Argument: "bucket", Code: diag.CodeBackendBootstrap, Summary: "No bucket", Answer: fmt.Sprintf("there is no bucket %q", m.bucket), Advice: "With --backend-require-bootstrap it is not made: make it with \"backend bootstrap\", or correct its name."}
	}
	h := http.Header{}
	if acls {
		h.Set("X-Amz-Object-Ownership", "ObjectWriter") // otherwise the service refuses objects with an ACL
	}
	var body []byte
	if region := m.session.Region; region != "us-east-1" && !m.custom {
		body = []byte(`<CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><LocationConstraint>` + region + `</LocationConstraint></CreateBucketConfiguration>`)
	}
	if resp, err = m.send(ctx, "PUT", "", nil, h, body, true); err != nil {
		return false, err
	}
	switch code := answerOf(resp).Code; {
	case resp.Status/100 == 2, code == "BucketAlreadyOwnedByYou":
	case code == "BucketAlreadyExists":
		return false, &backend.Error{Argument: "bucket", Summary: "Failed to make the bucket", Answer: fmt.Sprintf("the name %q is taken by somebody else", m.bucket), Advice: "Names of buckets are unique among all accounts: choose another."}
	default:
		return false, m.refused("Failed to make the bucket", resp, "s3:CreateBucket")
	}
	m.fresh = true
	m.o.Did("made the bucket " + m.bucket)
	if err := m.wait(ctx, func() (bool, error) {
		resp, err := m.send(ctx, "HEAD", "", nil, nil, nil, true)
		return err == nil && resp.Status == http.StatusOK, err
	}); err != nil {
		return false, err
	}
	return true, m.tag(ctx, tags)
}

// wait calls ready every second, for at most two minutes, until it returns true.
func (b *s3Backend) wait(ctx context.Context, ready func() (bool, error)) error {
	for end := b.s.Now().Add(2 * time.Minute); ; {
		ok, err := ready()
		if ok || err != nil {
			return err
		}
		if b.s.Now().After(end) {
			return &backend.Error{Argument: "bucket", Answer: "what was made does not come up within two minutes", Advice: "Run the command again later."}
		}
		if err := b.s.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// setting returns one setting of the bucket; "" if it is not set.
func (b *s3Backend) setting(ctx context.Context, query, permission string) (string, error) {
	resp, err := b.send(ctx, "GET", "", url.Values{query: {""}}, nil, nil, true)
	switch {
	case err != nil:
		return "", err
	case resp.Status == http.StatusOK:
		return string(resp.Body), nil
	case resp.Status == http.StatusNotFound && answerOf(resp).Code != "NoSuchBucket", resp.Status == http.StatusNotImplemented:
		return "", nil
	}
	return "", b.refused("Failed to look at the bucket", resp, permission)
}

// set changes a setting of the bucket. If a service other than AWS does not support it,
// that is reported.
func (m *making) set(ctx context.Context, query, permission, what string, h http.Header, body []byte) error {
	header := http.Header{}
	maps.Copy(header, h)
	header.Set("Content-Md5", md5Of(body))
	for try := 0; ; try++ {
		resp, err := m.send(ctx, "PUT", "", url.Values{query: {""}}, header, body, true)
		if err != nil {
			return err
		}
		code := answerOf(resp).Code
		switch {
		case resp.Status/100 == 2:
			m.o.Did(what + " of the bucket " + m.bucket)
			return nil
		case m.fresh && try < 30 && (code == "NoSuchBucket" || code == "OperationAborted"): // the bucket is not known everywhere yet
			if err := m.s.Sleep(ctx, time.Second); err != nil {
				return err
			}
		case m.custom && (resp.Status == http.StatusNotImplemented || resp.Status == http.StatusMethodNotAllowed || code == "NotImplemented"):
			m.o.Did("not there in this service: " + what + " of the bucket " + m.bucket)
			return nil
		default:
			return m.refused("Failed to set "+what+" of the bucket", resp, permission)
		}
	}
}

// element returns the text of the first XML element of a name.
func element(doc, name string) string {
	_, rest, ok := strings.Cut(doc, "<"+name+">")
	if !ok {
		return ""
	}
	text, _, _ := strings.Cut(rest, "</"+name+">")
	return text
}

func escaped(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // writing to a buffer cannot fail
	return b.String()
}

const namespace = ` xmlns="http://s3.amazonaws.com/doc/2006-03-01/"`

func (m *making) tag(ctx context.Context, tags map[string]string) error {
	if len(tags) == 0 {
		return nil
	}
	var sb strings.Builder
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		fmt.Fprintf(&sb, "<Tag><Key>%s</Key><Value>%s</Value></Tag>", escaped(k), escaped(tags[k]))
	}
	return m.set(ctx, "tagging", "s3:PutBucketTagging", "tags", nil, []byte("<Tagging"+namespace+"><TagSet>"+sb.String()+"</TagSet></Tagging>"))
}

func (m *making) blockPublicAccess(ctx context.Context) error {
	now, err := m.setting(ctx, "publicAccessBlock", "s3:GetBucketPublicAccessBlock")
	if err != nil || strings.Count(now, ">true<") >= 4 {
		return err
	}
	return m.set(ctx, "publicAccessBlock", "s3:PutBucketPublicAccessBlock", "the block of public access", nil, []byte("<PublicAccessBlockConfiguration"+namespace+"><BlockPublicAcls>true</BlockPublicAcls><IgnorePublicAcls>true</IgnorePublicAcls><BlockPublicPolicy>true</BlockPublicPolicy><RestrictPublicBuckets>true</RestrictPublicBuckets></PublicAccessBlockConfiguration>"))
}

func (m *making) versioning(ctx context.Context) error {
	on, err := m.Versioned(ctx)
	if err != nil || on {
		return err
	}
	return m.set(ctx, "versioning", "s3:PutBucketVersioning", "versioning", nil, []byte("<VersioningConfiguration"+namespace+"><Status>Enabled</Status></VersioningConfiguration>"))
}

func (m *making) encryption(ctx context.Context, algorithm, key string) error {
	now, err := m.setting(ctx, "encryption", "s3:GetEncryptionConfiguration")
	if err != nil || element(now, "SSEAlgorithm") == algorithm && (key == "" || element(now, "KMSMasterKeyID") == escaped(key)) {
		return err
	}
	rule := "<SSEAlgorithm>" + escaped(algorithm) + "</SSEAlgorithm>"
	if key != "" {
		rule += "<KMSMasterKeyID>" + escaped(key) + "</KMSMasterKeyID>"
	}
	rule = "<ApplyServerSideEncryptionByDefault>" + rule + "</ApplyServerSideEncryptionByDefault>"
	if strings.HasPrefix(algorithm, "aws:kms") {
		rule += "<BucketKeyEnabled>true</BucketKeyEnabled>"
	}
	return m.set(ctx, "encryption", "s3:PutEncryptionConfiguration", "encryption", nil, []byte("<ServerSideEncryptionConfiguration"+namespace+"><Rule>"+rule+"</Rule></ServerSideEncryptionConfiguration>"))
}

// policy adds the missing statements to the policy of the bucket.
func (m *making) policy(ctx context.Context, root, tls bool) error {
	if !root && !tls {
		return nil
	}
	now, err := m.setting(ctx, "policy", "s3:GetBucketPolicy")
	if err != nil {
		return err
	}
	doc := map[string]json.RawMessage{"Version": json.RawMessage(`"2012-10-17"`)}
	var statements []json.RawMessage
	if now != "" {
		if json.Unmarshal([]byte(now), &doc) != nil || doc["Statement"] != nil && json.Unmarshal(doc["Statement"], &statements) != nil {
			return &backend.Error{Argument: "bucket", Answer: fmt.Sprintf("the policy of the bucket %s cannot be read", m.bucket), Advice: "Add the statements by hand and set skip_bucket_root_access and skip_bucket_enforced_tls."}
		}
	}
	has := func(sid string) bool {
		return slices.ContainsFunc(statements, func(s json.RawMessage) bool {
			var v struct{ Sid string }
			return json.Unmarshal(s, &v) == nil && v.Sid == sid
		})
	}
	arn := "arn:" + partition(m.session.Region) + ":s3:::" + m.bucket
	var added []string
	add := func(sid string, v map[string]any) error {
		v["Sid"], v["Action"], v["Resource"] = sid, "s3:*", []string{arn, arn + "/*"}
		b, err := json.Marshal(v)
		statements, added = append(statements, b), append(added, sid)
		return err
	}
	if root && !has("RootAccess") {
		account, err := m.session.AccountID(ctx)
		if err != nil {
			return &backend.Error{Argument: "skip_bucket_root_access", Answer: "the account of the credentials, whose root gets access to the bucket, cannot be asked for: " + diag.Reason(err), Advice: "Set skip_bucket_root_access if the service has no accounts."}
		}
		if err := add("RootAccess", map[string]any{"Effect": "Allow", "Principal": map[string]any{"AWS": []string{"arn:" + partition(m.session.Region) + ":iam::" + account + ":root"}}}); err != nil {
			return err
		}
	}
	if tls && !has("EnforcedTLS") {
		if err := add("EnforcedTLS", map[string]any{"Effect": "Deny", "Principal": "*", "Condition": map[string]any{"Bool": map[string]string{"aws:SecureTransport": "false"}}}); err != nil {
			return err
		}
	}
	if len(added) == 0 {
		return nil
	}
	if doc["Statement"], err = json.Marshal(statements); err != nil {
		return err
	}
	body, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	return m.set(ctx, "policy", "s3:PutBucketPolicy", "the policy ("+strings.Join(added, ", ")+")", http.Header{"Content-Type": {"application/json"}}, body)
}

func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

// logging creates the bucket of access logs and enables them.
func (m *making) logging(ctx context.Context) error {
	a := m.o.Args
	name, prefix := a.String("accesslogging_bucket_name", ""), a.String("accesslogging_target_prefix", "TFStateLogs/")
	skip := func(name string) bool { return a.Bool("skip_accesslogging_bucket_"+name, false) }
	logs := *m.s3Backend
	logs.bucket, logs.base, logs.customerKey = name, m.at(name), ""
	lm := &making{s3Backend: &logs, o: m.o}
	configure, err := lm.bucketThere(ctx, a.Map("accesslogging_bucket_tags"), true)
	if err == nil && configure && !skip("public_access_blocking") {
		err = lm.blockPublicAccess(ctx)
	}
	if err == nil && configure && !skip("acl") {
		err = lm.deliverLogs(ctx)
	}
	if err == nil && configure && !skip("ssencryption") {
		err = lm.encryption(ctx, "AES256", "") // log delivery supports no other encryption
	}
	if err == nil && configure && !skip("enforced_tls") {
		err = lm.policy(ctx, false, true)
	}
	if err != nil {
		return err
	}
	now, err := m.setting(ctx, "logging", "s3:GetBucketLogging")
	if err != nil || element(now, "TargetBucket") == escaped(name) && element(now, "TargetPrefix") == escaped(prefix) {
		return err
	}
	target := "<TargetBucket>" + escaped(name) + "</TargetBucket><TargetPrefix>" + escaped(prefix) + "</TargetPrefix>"
	if source := a.String("accesslogging_target_object_partition_date_source", ""); source != "" {
		target += "<TargetObjectKeyFormat><PartitionedPrefix><PartitionDateSource>" + escaped(source) + "</PartitionDateSource></PartitionedPrefix></TargetObjectKeyFormat>"
	}
	return m.set(ctx, "logging", "s3:PutBucketLogging", "access logs", nil, []byte("<BucketLoggingStatus"+namespace+"><LoggingEnabled>"+target+"</LoggingEnabled></BucketLoggingStatus>"))
}

// deliverLogs allows the service to write access logs into the bucket.
func (m *making) deliverLogs(ctx context.Context) error {
	const group = "http://acs.amazonaws.com/groups/s3/LogDelivery"
	now, err := m.setting(ctx, "acl", "s3:GetBucketAcl")
	if err != nil || strings.Count(now, group) >= 2 {
		return err
	}
	h := http.Header{"X-Amz-Grant-Write": {"uri=" + group}, "X-Amz-Grant-Read-Acp": {"uri=" + group}}
	return m.set(ctx, "acl", "s3:PutBucketAcl", "the delivery of logs", h, nil)
}

// makeTable creates the table of locks, or enables its encryption.
func (b *s3Backend) makeTable(ctx context.Context, o backend.Bootstrapping) error {
	encrypted := o.Args.Bool("enable_lock_table_ssencryption", false)
	status, sse, err := b.describeTable(ctx)
	switch {
	case err != nil:
		return err
	case status == "" && o.Require:
		return &backend.Error{Argument: "dynamodb_table", Code: diag.CodeBackendBootstrap, Summary: "No table", Answer: fmt.Sprintf("there is no table %q", b.table), Advice: "With --backend-require-bootstrap it is not made: make it with \"backend bootstrap\", or correct its name."}
	case status == "":
		in := map[string]any{
			"TableName": b.table, "BillingMode": "PAY_PER_REQUEST",
			"AttributeDefinitions": []map[string]string{{"AttributeName": "LockID", "AttributeType": "S"}},
			"KeySchema":            []map[string]string{{"AttributeName": "LockID", "KeyType": "HASH"}},
		}
		var tags []map[string]string
		all := o.Args.Map("dynamodb_table_tags")
		for _, k := range slices.Sorted(maps.Keys(all)) {
			tags = append(tags, map[string]string{"Key": k, "Value": all[k]})
		}
		if len(tags) > 0 {
			in["Tags"] = tags
		}
		if encrypted {
			in["SSESpecification"] = map[string]any{"Enabled": true, "SSEType": "KMS"}
		}
		err := b.call(ctx, "CreateTable", in, nil)
		var api *aws.APIError
		if err != nil && !(errors.As(err, &api) && api.Code == "ResourceInUseException") { // another process is creating it
			return b.tableError("Failed to make the table", err)
		}
		o.Did("made the table " + b.table)
	case encrypted && !o.Keep && sse != "ENABLED" && sse != "ENABLING" && sse != "UPDATING":
		err := b.call(ctx, "UpdateTable", map[string]any{"TableName": b.table, "SSESpecification": map[string]any{"Enabled": true, "SSEType": "KMS"}}, nil)
		if err != nil {
			return b.tableError("Failed to encrypt the table", err)
		}
		o.Did("encryption of the table " + b.table)
	}
	return b.wait(ctx, func() (bool, error) {
		status, _, err := b.describeTable(ctx)
		return status == "ACTIVE", err
	})
}

// describeTable returns the status of the table, "" if there is none, and of its
// encryption.
func (b *s3Backend) describeTable(ctx context.Context) (status, sse string, err error) {
	var out struct {
		Table struct {
			TableStatus    string
			SSEDescription struct{ Status string }
		}
	}
	err = b.call(ctx, "DescribeTable", map[string]any{"TableName": b.table}, &out)
	var api *aws.APIError
	switch {
	case errors.As(err, &api) && api.Code == "ResourceNotFoundException":
		return "", "", nil
	case err != nil:
		return "", "", b.tableError("Failed to look for the table", err)
	}
	return out.Table.TableStatus, out.Table.SSEDescription.Status, nil
}
