package backendtest

import "fmt"

// A Fault is a response of a service to every request, while the service or its
// configuration is faulty.
type Fault struct {
	Name   string
	Status int
	Header map[string]string
	Body   string
	// Argument is the argument that the message must name; "" means the block.
	Argument string
	Want     []string // texts that the messages of the operations must contain, together
}

// Faults returns the faults of the service of a kind that uses HTTP.
func Faults(kind string) []Fault {
	s3 := func(code, message, more string) string {
		return `<?xml version="1.0"?><Error><Code>` + code + `</Code><Message>` + message + `</Message>` + more + `<RequestId>7</RequestId></Error>`
	}
	azure := func(code string) map[string]string { return map[string]string{"x-ms-error-code": code} }
	kube := func(status int, reason, message string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, status)
	}
	google := func(status int, message string) string {
		return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"errors":[{"message":%[2]q,"domain":"global","reason":"x"}]}}`, status, message)
	}
	return map[string][]Fault{
		"s3": {
			{"wrong credentials", 403, nil, s3("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.", ""), "access_key", []string{"access_key", "InvalidAccessKeyId"}},
			{"wrong secret", 403, nil, s3("SignatureDoesNotMatch", "The request signature we calculated does not match.", ""), "access_key", []string{"access_key", "SignatureDoesNotMatch"}},
			{"expired", 400, nil, s3("ExpiredToken", "The provided token has expired.", ""), "access_key", []string{"access_key", "ExpiredToken"}},
			{"missing bucket", 404, nil, s3("NoSuchBucket", "The specified bucket does not exist", ""), "bucket", []string{"bucket", `There is no bucket "states"`}},
			{"missing permission", 403, nil, s3("AccessDenied", "Access Denied", ""), "bucket", []string{"bucket", "s3:GetObject", "s3:PutObject"}},
			{"wrong region", 301, map[string]string{"x-amz-bucket-region": "us-west-2"}, s3("PermanentRedirect", "The bucket must be addressed using the specified endpoint.", "<Endpoint>x</Endpoint>"), "region", []string{"region", "us-west-2"}},
			{"signed for another region", 400, nil, s3("AuthorizationHeaderMalformed", "The authorization header is malformed", "<Region>us-west-2</Region>"), "region", []string{"region", "us-west-2"}},
			{"clock", 403, nil, s3("RequestTimeTooSkewed", "The difference between the request time and the current time is too large.", ""), "", []string{"clock of this machine"}},
		},
		"gcs": {
			{"wrong credentials", 401, nil, google(401, "Invalid Credentials"), "access_token", []string{"access_token", "Invalid Credentials"}},
			{"missing bucket", 404, nil, google(404, "The specified bucket does not exist."), "bucket", []string{"bucket", `There is no bucket "states"`}},
			{"missing permission", 403, nil, google(403, "x does not have storage.objects.get access"), "bucket", []string{"bucket", "storage.objects.get", "storage.objects.create"}},
		},
		"azurerm": {
			{"wrong credentials", 403, azure("AuthenticationFailed"), "", "access_key", []string{"access_key", "AuthenticationFailed"}},
			{"missing container", 404, azure("ContainerNotFound"), "", "container_name", []string{"container_name", `There is no container "states"`}},
			{"missing permission", 403, azure("AuthorizationPermissionMismatch"), "", "container_name", []string{"container_name", "Storage Blob Data"}},
			{"closed to this network", 403, azure("AuthorizationFailure"), "", "container_name", []string{"container_name", "network"}},
		},
		"http": {
			{"wrong credentials", 401, nil, "no", "username", []string{"username", "401"}},
			{"missing permission", 403, nil, "no", "username", []string{"username", "403"}},
			{"failing", 500, nil, "no", "address", []string{"address", "500"}},
			{"no such method", 405, nil, "no", "", []string{"405"}},
		},
		"consul": {
			{"wrong credentials", 403, nil, "ACL not found", "access_token", []string{"access_token", "ACL not found"}},
			{"missing permission", 403, nil, "Permission denied: token lacks permission 'key:write'", "access_token", []string{"access_token", "key_prefix"}},
			{"wrong datacenter", 500, nil, "No path to datacenter", "datacenter", []string{"datacenter", "No path to datacenter"}},
			{"no leader", 500, nil, "No cluster leader", "address", []string{"address", "No cluster leader"}},
		},
		"kubernetes": {
			{"wrong credentials", 401, nil, kube(401, "Unauthorized", "Unauthorized"), "token", []string{"token", "401"}},
			{"missing permission", 403, nil, kube(403, "Forbidden", `secrets is forbidden: User "x" cannot get resource`), "", []string{"get secrets", "namespace"}},
			{"missing namespace", 404, nil, kube(404, "NotFound", `namespaces "default" not found`), "namespace", []string{"namespace"}},
		},
		"cos": {
			{"wrong credentials", 403, nil, s3("InvalidAccessKeyId", "The Access Key Id you provided does not exist", ""), "secret_id", []string{"secret_id", "InvalidAccessKeyId"}},
			{"missing bucket", 404, nil, s3("NoSuchBucket", "The specified bucket does not exist.", ""), "bucket", []string{"bucket", `There is no bucket "states-125`}},
			{"missing permission", 403, nil, s3("AccessDenied", "Access Denied.", ""), "bucket", []string{"bucket", "cos:GetObject"}},
		},
		"oss": {
			{"wrong credentials", 403, nil, s3("InvalidAccessKeyId", "The OSS Access Key Id you provided does not exist in our records.", ""), "access_key", []string{"access_key", "InvalidAccessKeyId"}},
			{"missing bucket", 404, nil, s3("NoSuchBucket", "The specified bucket does not exist.", ""), "bucket", []string{"bucket", `There is no bucket "states"`}},
			{"missing permission", 403, nil, s3("AccessDenied", "You have no right to access this object.", ""), "bucket", []string{"bucket", "oss:GetObject"}},
			{"wrong region", 403, nil, s3("AccessDenied", "The bucket you are attempting to access must be addressed using the specified endpoint.", "<Endpoint>oss-cn-hangzhou.aliyuncs.com</Endpoint>"), "endpoint", []string{"endpoint", "oss-cn-hangzhou.aliyuncs.com"}},
		},
		"remote": {
			{"wrong credentials", 401, nil, `{"errors":[{"status":"401","title":"unauthorized"}]}`, "token", []string{"token", "401"}},
			{"missing organization", 404, nil, `{"errors":[{"status":"404","title":"not found"}]}`, "organization", []string{"organization", "acme"}},
			{"missing permission", 403, nil, `{"errors":[{"status":"403","title":"forbidden","detail":"you may not"}]}`, "organization", []string{"organization", "permission"}},
		},
	}[kind]
}
