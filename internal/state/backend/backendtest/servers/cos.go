package servers

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"hash/crc64"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A COSServer is a stand-in for the object store of Tencent Cloud with one bucket, and for
// the APIs of tags and roles. It checks the signatures of all requests with the published
// algorithms, "q-sign" and TC3-HMAC-SHA256.
type COSServer struct {
	*Tunnel
	Bucket, Region string
	ID, Key        string // the credentials that sign requests
	Role           string // a role that may be assumed; its credentials are ID+"-role" and so on

	mu      sync.Mutex
	objects map[string]cosObject
	tags    map[string]bool // key=value
}

type cosObject struct {
	data   []byte
	header http.Header // x-cos-meta-…
}

// NewCOS returns a stand-in that is not listening yet.
func NewCOS() *COSServer {
	return &COSServer{Bucket: "states-1250000000", Region: "ap-guangzhou", ID: "planted-id", Key: "planted-key", Role: "qcs::cam::uin/1:roleName/states", objects: map[string]cosObject{}, tags: map[string]bool{}}
}

// COS starts a stand-in.
func COS(t testing.TB) *COSServer {
	s := NewCOS()
	s.Tunnel = NewTunnel(t, s, s.Bucket+".cos."+s.Region+".myqcloud.com", "tag.tencentcloudapi.com", "sts.tencentcloudapi.com", "none-1.cos."+s.Region+".myqcloud.com")
	return s
}

// Objects returns the names of all objects, sorted.
func (s *COSServer) Objects() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Object returns the content of an object and its headers; "" if it does not exist.
func (s *COSServer) Object(name string) (string, http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[name]
	return string(o.data), o.header
}

// Put replaces an object, as another program would.
func (s *COSServer) Put(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := md5.Sum([]byte(text))
	s.objects[name] = cosObject{[]byte(text), http.Header{"X-Cos-Meta-Md5": {hex.EncodeToString(sum[:])}}}
}

// SetTag adds or removes a tag, as another program would.
func (s *COSServer) SetTag(key, value string, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tags, key+"="+value)
	if there {
		s.tags[key+"="+value] = true
	}
}

// Tags returns the tags of the account, as key=value, sorted.
func (s *COSServer) Tags() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.tags))
}

func (s *COSServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasSuffix(r.Host, ".tencentcloudapi.com") {
		s.api(w, r, body)
		return
	}
	refuse := func(status int, code, message string) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<?xml version='1.0' encoding='utf-8' ?>\n<Error><Code>%s</Code><Message>%s</Message><RequestId>x</RequestId></Error>", code, message)
	}
	if code := s.signed(r); code != "" {
		refuse(http.StatusForbidden, code, "the request is not signed as it should be")
		return
	}
	if !strings.HasPrefix(r.Host, s.Bucket+".") {
		refuse(http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist.")
		return
	}
	if want := r.Header.Get("Content-MD5"); want != "" {
		if sum := md5.Sum(body); base64.StdEncoding.EncodeToString(sum[:]) != want {
			refuse(http.StatusBadRequest, "InvalidDigest", "the MD5 is not that of the body")
			return
		}
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	o, there := s.objects[name]
	switch {
	case name == "" && r.Method == "GET" && r.URL.Query().Has("versioning"):
		io.WriteString(w, "<VersioningConfiguration/>")
	case name == "" && r.Method == "GET":
		s.list(w, r.URL.Query())
	case name == "":
		refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", "not for a bucket")
	case r.Method == "PUT":
		if there && r.Header.Get("X-Cos-Forbid-Overwrite") == "true" {
			refuse(http.StatusConflict, "FileAlreadyExists", "The object you specified already exists and can not be overwritten.")
			return
		}
		o = cosObject{body, http.Header{}}
		for k, vs := range r.Header {
			if strings.HasPrefix(k, "X-Cos-Meta-") || k == "X-Cos-Server-Side-Encryption" || k == "X-Cos-Acl" || k == "Content-Type" {
				o.header[k] = vs
			}
		}
		s.objects[name] = o
		sum := md5.Sum(body)
		w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:])+`"`)
		w.Header().Set("X-Cos-Hash-Crc64ecma", strconv.FormatUint(crc64.Checksum(body, crc64.MakeTable(crc64.ECMA)), 10))
	case (r.Method == "GET" || r.Method == "HEAD") && !there:
		refuse(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	case r.Method == "GET" || r.Method == "HEAD":
		for k, vs := range o.header {
			if k != "X-Cos-Acl" {
				w.Header()[k] = vs
			}
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(o.data)))
		if r.Method == "GET" {
			w.Write(o.data)
		}
	case r.Method == "DELETE":
		delete(s.objects, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", r.Method)
	}
}

func (s *COSServer) list(w http.ResponseWriter, q url.Values) {
	type content struct{ Key string }
	var page struct {
		XMLName     xml.Name `xml:"ListBucketResult"`
		Name        string
		Prefix      string
		Marker      string
		MaxKeys     int
		IsTruncated bool
		NextMarker  string
		Contents    []content
	}
	page.Name, page.Prefix, page.Marker, page.MaxKeys = s.Bucket, q.Get("prefix"), q.Get("marker"), 1000
	if n, err := strconv.Atoi(q.Get("max-keys")); err == nil {
		page.MaxKeys = n
	}
	for _, k := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(k, page.Prefix) || k <= page.Marker {
			continue
		}
		if len(page.Contents) == min(page.MaxKeys, 2) { // small pages, so that clients must request more
			page.IsTruncated, page.NextMarker = true, page.Contents[len(page.Contents)-1].Key
			break
		}
		page.Contents = append(page.Contents, content{k})
	}
	w.Header().Set("Content-Type", "application/xml")
	xml.NewEncoder(w).Encode(page)
}

// keyOf returns the secret of an ID. The credentials of a role require their token.
func (s *COSServer) keyOf(id, token string) (string, bool) {
	switch {
	case id == s.ID && token == "":
		return s.Key, true
	case id == s.ID+"-role" && token == "token-of-role":
		return s.Key + "-role", true
	}
	return "", false
}

// signed checks the Authorization of a request to the bucket. It returns an error code, or
// "".
func (s *COSServer) signed(r *http.Request) (code string) {
	part := map[string]string{}
	for p := range strings.SplitSeq(r.Header.Get("Authorization"), "&") {
		k, v, _ := strings.Cut(p, "=")
		part[k] = v
	}
	key, ok := s.keyOf(part["q-ak"], r.Header.Get("X-Cos-Security-Token"))
	if !ok {
		return "InvalidAccessKeyId"
	}
	from, to, _ := strings.Cut(part["q-sign-time"], ";")
	since, err1 := strconv.ParseInt(from, 10, 64)
	until, err2 := strconv.ParseInt(to, 10, 64)
	if now := time.Now().Unix(); err1 != nil || err2 != nil || now < since-60 || now > until {
		return "RequestIsExpired"
	}
	pick := func(list string, get func(string) (string, bool)) string {
		var out []string
		for name := range strings.SplitSeq(list, ";") {
			if name == "" {
				continue
			}
			v, ok := get(name)
			if !ok {
				return "missing " + name
			}
			out = append(out, name+"="+strings.ReplaceAll(url.QueryEscape(v), "+", "%20"))
		}
		return strings.Join(out, "&")
	}
	query := r.URL.Query()
	for k := range query {
		if !slices.Contains(strings.Split(part["q-url-param-list"], ";"), strings.ToLower(strings.ReplaceAll(url.QueryEscape(k), "+", "%20"))) {
			return "SignatureDoesNotMatch" // a parameter is not signed
		}
	}
	params := pick(part["q-url-param-list"], func(name string) (string, bool) {
		for k := range query {
			if strings.EqualFold(strings.ReplaceAll(url.QueryEscape(k), "+", "%20"), name) {
				return query.Get(k), true
			}
		}
		return "", false
	})
	headers := pick(part["q-header-list"], func(name string) (string, bool) {
		if name == "host" {
			return r.Host, true
		}
		if name == "content-length" {
			return strconv.FormatInt(r.ContentLength, 10), true
		}
		return r.Header.Get(name), r.Header.Get(name) != ""
	})
	mac := func(key, text string) string {
		m := hmac.New(sha1.New, []byte(key))
		m.Write([]byte(text))
		return hex.EncodeToString(m.Sum(nil))
	}
	sum := sha1.Sum([]byte(strings.ToLower(r.Method) + "\n" + r.URL.Path + "\n" + params + "\n" + headers + "\n"))
	want := mac(mac(key, part["q-key-time"]), "sha1\n"+part["q-sign-time"]+"\n"+hex.EncodeToString(sum[:])+"\n")
	if part["q-sign-algorithm"] != "sha1" || part["q-signature"] != want {
		return "SignatureDoesNotMatch"
	}
	return ""
}

// api handles requests to the APIs of tags and roles.
func (s *COSServer) api(w http.ResponseWriter, r *http.Request, body []byte) {
	answer := func(v map[string]any) {
		v["RequestId"] = "x"
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"Response": v})
	}
	refuse := func(code, message string) {
		answer(map[string]any{"Error": map[string]string{"Code": code, "Message": message}})
	}
	service, _, _ := strings.Cut(r.Host, ".")
	if code := s.signedAPI(r, service, body); code != "" {
		refuse(code, "the request is not signed as it should be")
		return
	}
	var in struct {
		TagKey, TagValue, RoleArn, RoleSessionName string
		TagKeys                                    []string
		DurationSeconds                            int
	}
	if err := json.Unmarshal(body, &in); err != nil {
		refuse("InvalidParameter", err.Error())
		return
	}
	tag := in.TagKey + "=" + in.TagValue
	switch action := service + ":" + r.Header.Get("X-TC-Action"); action {
	case "tag:CreateTag":
		if s.tags[tag] {
			refuse("ResourceInUse.TagDuplicate", "tag duplicate")
			return
		}
		s.tags[tag] = true
		answer(map[string]any{})
	case "tag:DeleteTag":
		if !s.tags[tag] {
			refuse("ResourceNotFound.TagNonExist", "tag does not exist")
			return
		}
		delete(s.tags, tag)
		answer(map[string]any{})
	case "tag:DescribeTags":
		found := []map[string]any{}
		for t := range s.tags {
			if k, v, _ := strings.Cut(t, "="); k == in.TagKey && (in.TagValue == "" || v == in.TagValue) {
				found = append(found, map[string]any{"TagKey": k, "TagValue": v, "CanDelete": 1})
			}
		}
		answer(map[string]any{"TotalCount": len(found), "Offset": 0, "Limit": 15, "Tags": found})
	case "sts:AssumeRole":
		if in.RoleArn != s.Role || in.RoleSessionName == "" {
			refuse("InvalidParameter.RoleNotExist", "role not exist")
			return
		}
		answer(map[string]any{"ExpiredTime": time.Now().Add(time.Hour).Unix(), "Expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
			"Credentials": map[string]string{"Token": "token-of-role", "TmpSecretId": s.ID + "-role", "TmpSecretKey": s.Key + "-role"}})
	default:
		refuse("InvalidAction", action)
	}
}

func (s *COSServer) signedAPI(r *http.Request, service string, body []byte) (code string) {
	fields := map[string]string{}
	algorithm, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	for p := range strings.SplitSeq(rest, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(p), "=")
		fields[k] = v
	}
	id, scope, _ := strings.Cut(fields["Credential"], "/")
	key, ok := s.keyOf(id, r.Header.Get("X-TC-Token"))
	if !ok {
		return "AuthFailure.SecretIdNotFound"
	}
	at, err := strconv.ParseInt(r.Header.Get("X-TC-Timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute {
		return "AuthFailure.SignatureExpire"
	}
	date := time.Unix(at, 0).UTC().Format("2006-01-02")
	var headers strings.Builder
	for name := range strings.SplitSeq(fields["SignedHeaders"], ";") {
		v := r.Header.Get(name)
		if name == "host" {
			v = r.Host
		}
		headers.WriteString(name + ":" + strings.ToLower(strings.TrimSpace(v)) + "\n")
	}
	sha := func(b []byte) string { sum := sha256.Sum256(b); return hex.EncodeToString(sum[:]) }
	mac := func(key []byte, text string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(text))
		return m.Sum(nil)
	}
	request := strings.Join([]string{r.Method, "/", r.URL.RawQuery, headers.String(), fields["SignedHeaders"], sha(body)}, "\n")
	text := strings.Join([]string{algorithm, strconv.FormatInt(at, 10), scope, sha([]byte(request))}, "\n")
	want := hex.EncodeToString(mac(mac(mac(mac([]byte("TC3"+key), date), service), "tc3_request"), text))
	if algorithm != "TC3-HMAC-SHA256" || scope != date+"/"+service+"/tc3_request" || fields["Signature"] != want {
		return "AuthFailure.SignatureFailure"
	}
	return ""
}
