package servers

import (
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// An AWSServer is a stand-in for S3 (with path-style addresses), DynamoDB and STS at one
// address. It checks the conditions of writes and stores settings of buckets and tables
// unchanged. Of a signature it checks only the key.
type AWSServer struct {
	URL string
	// Before, if set, may handle a request instead of the server.
	Before func(w http.ResponseWriter, r *http.Request) (answered bool)
	// Role may be assumed with AccessKey. If it is set, requests to buckets and tables
	// require its temporary keys, which have the requested lifetime.
	Role string

	issued  map[string]time.Time // keys of the role, with their expiry
	mu      sync.Mutex
	buckets map[string]*awsBucket
	tables  map[string]*awsTable
	log     []string
}

type awsBucket struct {
	settings map[string]string
	objects  map[string][]byte
}

type awsTable struct {
	made  map[string]any
	items map[string]map[string]any
}

// AWS starts a stand-in.
func AWS(t testing.TB) *AWSServer {
	s := NewAWS()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// NewAWS returns a stand-in that is not listening yet.
func NewAWS() *AWSServer {
	return &AWSServer{buckets: map[string]*awsBucket{}, tables: map[string]*awsTable{}}
}

// Table creates a table of locks.
func (s *AWSServer) Table(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables[name] = &awsTable{made: map[string]any{}, items: map[string]map[string]any{}}
}

// Bucket creates a bucket.
func (s *AWSServer) Bucket(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buckets[name] = &awsBucket{settings: map[string]string{}, objects: map[string][]byte{}}
}

// Setting returns a setting of a bucket, as it was written.
func (s *AWSServer) Setting(bucket, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.buckets[bucket]; b != nil {
		return b.settings[name]
	}
	return ""
}

// Object returns an object; "" if there is none.
func (s *AWSServer) Object(bucket, key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.buckets[bucket]; b != nil {
		return string(b.objects[key])
	}
	return ""
}

// Put replaces an object, as another program would.
func (s *AWSServer) Put(bucket, key, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buckets[bucket].objects[key] = []byte(text)
}

// Drop deletes an object, as another program would.
func (s *AWSServer) Drop(bucket, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.buckets[bucket].objects, key)
}

// Objects returns the keys of the objects in a bucket, sorted.
func (s *AWSServer) Objects(bucket string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.buckets[bucket]; b != nil {
		return slices.Sorted(maps.Keys(b.objects))
	}
	return nil
}

// Made returns the settings of a created table; nil if there is none.
func (s *AWSServer) Made(table string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tables[table]; t != nil {
		return t.made
	}
	return nil
}

// Log returns the requests, one per line: method, path and query.
func (s *AWSServer) Log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Text returns the requests, the buckets and their keys, one per line.
func (s *AWSServer) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := slices.Clone(s.log)
	for _, name := range slices.Sorted(maps.Keys(s.buckets)) {
		lines = append(lines, "bucket "+name)
		for _, key := range slices.Sorted(maps.Keys(s.buckets[name].objects)) {
			lines = append(lines, "object "+name+"/"+key)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

func awsFail(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
}

func (s *AWSServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Before != nil && s.Before(w, r) {
		return
	}
	s.Answer(w, r)
}

// Answer handles a request without calling Before.
func (s *AWSServer) Answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		awsFail(w, http.StatusBadRequest, "IncompleteBody")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	operation := r.Header.Get("X-Amz-Target")
	s.log = append(s.log, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+operation))
	_, signed, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	who, _, _ := strings.Cut(signed, "/")
	until, role := s.issued[who]
	asked, _ := url.ParseQuery(string(body)) // a body that is not a form does not ask for a role
	switch {
	case asked.Get("Action") == "AssumeRole" && who == AccessKey && asked.Get("RoleArn") == s.Role && s.Role != "":
		s.assume(w, asked)
	case role && time.Now().After(until):
		awsFail(w, http.StatusBadRequest, "ExpiredToken")
	case role != (s.Role != "") || !role && who != AccessKey:
		awsFail(w, http.StatusForbidden, "InvalidAccessKeyId")
	case operation != "":
		s.table(w, operation[strings.LastIndex(operation, ".")+1:], body)
	case strings.Contains(string(body), "Action=GetCallerIdentity"):
		fmt.Fprint(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/x</Arn><UserId>u</UserId><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`)
	default:
		name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if key == "" {
			s.bucket(w, r, name, body)
		} else {
			s.object(w, r, s.buckets[name], key, body)
		}
	}
}

// assume returns keys of the role.
func (s *AWSServer) assume(w http.ResponseWriter, asked url.Values) {
	seconds, _ := strconv.Atoi(asked.Get("DurationSeconds"))
	key, until := fmt.Sprintf("ASIAOFROLE%d", len(s.issued)), time.Now().Add(time.Duration(cmp.Or(seconds, 3600))*time.Second)
	if s.issued == nil {
		s.issued = map[string]time.Time{}
	}
	s.issued[key] = until
	fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>planted-role-secret</SecretAccessKey><SessionToken>planted-role-token</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`, key, until.UTC().Format(time.RFC3339))
}

// missing returns the error code for a setting that a bucket does not have.
func missing(setting string) string {
	return map[string]string{
		"policy": "NoSuchBucketPolicy", "encryption": "ServerSideEncryptionConfigurationNotFoundError",
		"publicAccessBlock": "NoSuchPublicAccessBlockConfiguration", "tagging": "NoSuchTagSet",
	}[setting]
}

func (s *AWSServer) bucket(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	b, q := s.buckets[name], r.URL.Query()
	setting := ""
	for _, n := range []string{"versioning", "encryption", "publicAccessBlock", "policy", "tagging", "logging", "acl"} {
		if q.Has(n) {
			setting = n
		}
	}
	switch {
	case b == nil && r.Method == "PUT" && setting == "":
		s.buckets[name] = &awsBucket{settings: map[string]string{"ownership": r.Header.Get("X-Amz-Object-Ownership")}, objects: map[string][]byte{}}
	case b == nil:
		awsFail(w, http.StatusNotFound, "NoSuchBucket")
	case r.Method == "HEAD":
	case r.Method == "PUT" && setting == "acl":
		b.settings[setting] = r.Header.Get("X-Amz-Grant-Write") + " " + r.Header.Get("X-Amz-Grant-Read-Acp")
	case r.Method == "PUT" && setting != "":
		b.settings[setting] = string(body)
	case r.Method == "PUT":
		awsFail(w, http.StatusConflict, "BucketAlreadyOwnedByYou")
	case setting != "" && b.settings[setting] == "" && missing(setting) != "":
		awsFail(w, http.StatusNotFound, missing(setting))
	case setting != "":
		fmt.Fprint(w, b.settings[setting])
	default:
		fmt.Fprint(w, "<ListBucketResult>")
		for _, key := range slices.Sorted(maps.Keys(b.objects)) {
			if strings.HasPrefix(key, q.Get("prefix")) {
				fmt.Fprint(w, "<Contents><Key>")
				_ = xml.EscapeText(w, []byte(key))
				fmt.Fprint(w, "</Key></Contents>")
			}
		}
		fmt.Fprint(w, "</ListBucketResult>")
	}
}

func (s *AWSServer) object(w http.ResponseWriter, r *http.Request, b *awsBucket, key string, body []byte) {
	if b == nil {
		awsFail(w, http.StatusNotFound, "NoSuchBucket")
		return
	}
	now, there := b.objects[key]
	tag := func(data []byte) string {
		sum := md5.Sum(data)
		return `"` + hex.EncodeToString(sum[:]) + `"`
	}
	switch r.Method {
	case "GET", "HEAD":
		if !there {
			awsFail(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", tag(now))
		w.Header().Set("Content-Length", fmt.Sprint(len(now)))
		w.Write(now)
	case "PUT":
		match := r.Header.Get("If-Match")
		if r.Header.Get("If-None-Match") == "*" && there || match != "" && (!there || match != tag(now)) {
			awsFail(w, http.StatusPreconditionFailed, "PreconditionFailed")
			return
		}
		b.objects[key] = body
		w.Header().Set("ETag", tag(body))
	case "DELETE":
		delete(b.objects, key)
		w.WriteHeader(http.StatusNoContent)
	}
}

// meets checks an item against a condition: terms "NAME = :value" and
// "attribute_not_exists(NAME)", joined by AND.
func meets(item map[string]any, condition string, values map[string]any) bool {
	for term := range strings.SplitSeq(condition, " AND ") {
		if name, ok := strings.CutPrefix(term, "attribute_not_exists("); ok {
			if item[strings.TrimSuffix(name, ")")] != nil {
				return false
			}
		} else if name, value, ok := strings.Cut(term, " = "); ok && (item == nil || fmt.Sprint(item[name]) != fmt.Sprint(values[value])) {
			return false
		}
	}
	return true
}

func (s *AWSServer) table(w http.ResponseWriter, operation string, body []byte) {
	fail := func(code string) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"no"}`, code)
	}
	var in struct {
		TableName           string
		Key, Item           map[string]any
		ConditionExpression string
		Values              map[string]any `json:"ExpressionAttributeValues"`
		SSESpecification    map[string]any
	}
	all := map[string]any{}
	if json.Unmarshal(body, &in) != nil || json.Unmarshal(body, &all) != nil {
		fail("SerializationException")
		return
	}
	t := s.tables[in.TableName]
	if operation == "CreateTable" {
		if t != nil {
			fail("ResourceInUseException")
			return
		}
		s.tables[in.TableName] = &awsTable{made: all, items: map[string]map[string]any{}}
		fmt.Fprint(w, "{}")
		return
	}
	if t == nil {
		fail("ResourceNotFoundException")
		return
	}
	id := func(m map[string]any) string { return fmt.Sprint(m["LockID"]) }
	reply := map[string]any{}
	switch operation {
	case "DescribeTable":
		table := map[string]any{"TableName": in.TableName, "TableStatus": "ACTIVE"}
		if t.made["SSESpecification"] != nil {
			table["SSEDescription"] = map[string]any{"Status": "ENABLED"}
		}
		reply["Table"] = table
	case "UpdateTable":
		t.made["SSESpecification"] = in.SSESpecification
	case "GetItem":
		if item := t.items[id(in.Key)]; item != nil {
			reply["Item"] = item
		}
	case "PutItem":
		if !meets(t.items[id(in.Item)], in.ConditionExpression, in.Values) {
			fail("ConditionalCheckFailedException")
			return
		}
		t.items[id(in.Item)] = in.Item
	case "DeleteItem":
		if !meets(t.items[id(in.Key)], in.ConditionExpression, in.Values) {
			fail("ConditionalCheckFailedException")
			return
		}
		delete(t.items, id(in.Key))
	}
	_ = json.NewEncoder(w).Encode(reply)
}
