package servers

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"hash/crc64"
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

	"google.golang.org/protobuf/encoding/protowire"
)

// An OSSServer is a stand-in for the object store of Alibaba Cloud with one bucket, for a
// table of Tablestore, and for the service of roles. It checks the signatures of all
// requests with the published algorithms, and the checksums of rows.
type OSSServer struct {
	URL           string
	Bucket, Table string
	ID, Key       string // the credentials that sign requests
	Role          string // a role that may be assumed

	mu      sync.Mutex
	objects map[string][]byte
	rows    map[string]map[string]string
}

// NewOSS returns a stand-in that is not listening yet.
func NewOSS() *OSSServer {
	return &OSSServer{Bucket: "states", Table: "locks", ID: "planted-id", Key: "planted-key", Role: "acs:ram::1:role/states", objects: map[string][]byte{}, rows: map[string]map[string]string{}}
}

// OSS starts a stand-in.
func OSS(t testing.TB) *OSSServer {
	s := NewOSS()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Objects returns the names of all objects, sorted.
func (s *OSSServer) Objects() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Put replaces an object, as another program would.
func (s *OSSServer) Put(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[name] = []byte(text)
}

// Rows returns the rows of the table, by key.
func (s *OSSServer) Rows() map[string]map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.rows)
}

// SetRow replaces a row. columns are names, each followed by its value.
func (s *OSSServer) SetRow(id string, columns ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[id] = map[string]string{}
	for i := 0; i < len(columns); i += 2 {
		s.rows[id][columns[i]] = columns[i+1]
	}
}

func sha1mac(key, text string) string {
	m := hmac.New(sha1.New, []byte(key))
	m.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(m.Sum(nil))
}

// keyOf returns the secret of an ID. The credentials of a role require their token.
func (s *OSSServer) keyOf(id, token string) (string, bool) {
	switch {
	case id == s.ID && token == "":
		return s.Key, true
	case id == s.ID+"-role" && token == "token-of-role":
		return s.Key + "-role", true
	}
	return "", false
}

func (s *OSSServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Header.Get("X-Ots-Signature") != "":
		s.tablestore(w, r, body)
	case r.URL.Query().Get("Action") == "AssumeRole":
		s.assume(w, r)
	default:
		s.bucket(w, r, body)
	}
}

func (s *OSSServer) bucket(w http.ResponseWriter, r *http.Request, body []byte) {
	refuse := func(status int, code, message string) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>%s</Message><RequestId>x</RequestId></Error>", code, message)
	}
	scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	id, signature, _ := strings.Cut(rest, ":")
	key, ok := s.keyOf(id, r.Header.Get("X-Oss-Security-Token"))
	if !ok {
		refuse(http.StatusForbidden, "InvalidAccessKeyId", "The OSS Access Key Id you provided does not exist in our records.")
		return
	}
	var own []string
	for k, vs := range r.Header {
		if k = strings.ToLower(k); strings.HasPrefix(k, "x-oss-") {
			own = append(own, k+":"+vs[0]+"\n")
		}
	}
	slices.Sort(own)
	resource, q := r.URL.Path, r.URL.Query()
	var sub []string
	for _, name := range []string{"acl", "bucketInfo", "delete", "location", "objectMeta", "versionId", "versioning"} {
		if q.Has(name) {
			sub = append(sub, strings.TrimSuffix(name+"="+q.Get(name), "="))
		}
	}
	if sub != nil {
		resource += "?" + strings.Join(sub, "&")
	}
	text := r.Method + "\n" + r.Header.Get("Content-MD5") + "\n" + r.Header.Get("Content-Type") + "\n" + r.Header.Get("Date") + "\n" + strings.Join(own, "") + resource
	if scheme != "OSS" || signature != sha1mac(key, text) {
		refuse(http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided.")
		return
	}
	if at, err := http.ParseTime(r.Header.Get("Date")); err != nil || time.Since(at).Abs() > 15*time.Minute {
		refuse(http.StatusForbidden, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.")
		return
	}
	bucket, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if bucket != s.Bucket && bucket != "" {
		refuse(http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist.")
		return
	}
	sum := md5.Sum(body)
	if want := r.Header.Get("Content-MD5"); want != "" && want != base64.StdEncoding.EncodeToString(sum[:]) {
		refuse(http.StatusBadRequest, "InvalidDigest", "The Content-MD5 you specified is not valid.")
		return
	}
	data, there := s.objects[name]
	crc := func(b []byte) {
		w.Header().Set("X-Oss-Hash-Crc64ecma", strconv.FormatUint(crc64.Checksum(b, crc64.MakeTable(crc64.ECMA)), 10))
	}
	switch {
	case name == "" && r.Method == "GET" && q.Has("versioning"):
		io.WriteString(w, "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")
	case bucket == "" && r.Method == "GET":
		fmt.Fprintf(w, "<ListAllMyBucketsResult><Buckets><Bucket><Name>%s</Name></Bucket></Buckets></ListAllMyBucketsResult>", s.Bucket)
	case name == "" && r.Method == "GET":
		s.list(w, q)
	case r.Method == "PUT" && name != "":
		s.objects[name] = body
		crc(body)
		w.Header().Set("ETag", `"`+strings.ToUpper(hex.EncodeToString(sum[:]))+`"`)
	case (r.Method == "GET" || r.Method == "HEAD") && !there:
		refuse(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	case r.Method == "GET" || r.Method == "HEAD":
		crc(data)
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		if r.Method == "GET" {
			w.Write(data)
		}
	case r.Method == "DELETE":
		delete(s.objects, name)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == "POST" && q.Has("delete"):
		var in struct{ Object []struct{ Key string } }
		xml.Unmarshal(body, &in)
		for _, o := range in.Object {
			delete(s.objects, o.Key)
		}
		io.WriteString(w, "<DeleteResult/>")
	default:
		refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", r.Method)
	}
}

func (s *OSSServer) list(w http.ResponseWriter, q url.Values) {
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
	page.Name, page.Prefix, page.Marker, page.MaxKeys = s.Bucket, q.Get("prefix"), q.Get("marker"), 100
	for _, k := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(k, page.Prefix) || k <= page.Marker {
			continue
		}
		if len(page.Contents) == 2 { // small pages, so that clients must request more
			page.IsTruncated, page.NextMarker = true, page.Contents[1].Key
			break
		}
		page.Contents = append(page.Contents, content{k})
	}
	w.Header().Set("Content-Type", "application/xml")
	xml.NewEncoder(w).Encode(page)
}

func (s *OSSServer) assume(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	signature := q.Get("Signature")
	q.Del("Signature")
	percent := func(s string) string { return strings.NewReplacer("+", "%20", "*", "%2A", "%7E", "~").Replace(s) }
	w.Header().Set("Content-Type", "application/json")
	refuse := func(status int, code string) {
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(map[string]string{"Code": code, "Message": "refused", "RequestId": "x"})
	}
	switch key, ok := s.keyOf(q.Get("AccessKeyId"), q.Get("SecurityToken")); {
	case !ok:
		refuse(http.StatusNotFound, "InvalidAccessKeyId.NotFound")
	case signature != sha1mac(key+"&", r.Method+"&%2F&"+percent(url.QueryEscape(percent(q.Encode())))):
		refuse(http.StatusBadRequest, "SignatureDoesNotMatch")
	case q.Get("RoleArn") != s.Role || q.Get("RoleSessionName") == "":
		refuse(http.StatusNotFound, "EntityNotExist.Role")
	default:
		json.NewEncoder(w).Encode(map[string]any{"RequestId": "x", "Credentials": map[string]string{
			"AccessKeyId": s.ID + "-role", "AccessKeySecret": s.Key + "-role", "SecurityToken": "token-of-role", "Expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}})
	}
}

func (s *OSSServer) tablestore(w http.ResponseWriter, r *http.Request, body []byte) {
	refuse := func(status int, code, message string) {
		m := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), code)
		m = protowire.AppendString(protowire.AppendTag(m, 2, protowire.BytesType), message)
		w.WriteHeader(status)
		w.Write(m)
	}
	var lines []string
	for k, vs := range r.Header {
		if k = strings.ToLower(k); strings.HasPrefix(k, "x-ots-") && k != "x-ots-signature" {
			lines = append(lines, k+":"+strings.TrimSpace(vs[0])+"\n")
		}
	}
	slices.Sort(lines)
	key, ok := s.keyOf(r.Header.Get("X-Ots-Accesskeyid"), r.Header.Get("X-Ots-Ststoken"))
	sum := md5.Sum(body)
	if !ok || r.Header.Get("X-Ots-Signature") != sha1mac(key, r.URL.Path+"\nPOST\n\n"+strings.Join(lines, "")) || r.Header.Get("X-Ots-Contentmd5") != base64.StdEncoding.EncodeToString(sum[:]) {
		refuse(http.StatusForbidden, "OTSAuthFailed", "The signature is not as it should be.")
		return
	}
	in, err := fields(body)
	if err != nil || len(in[1]) == 0 {
		refuse(http.StatusBadRequest, "OTSParameterInvalid", "The request is no message with a table.")
		return
	}
	if string(in[1][0]) != s.Table {
		refuse(http.StatusNotFound, "OTSObjectNotExist", "Requested table does not exist.")
		return
	}
	bytesField := func(m []byte, n protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(m, n, protowire.BytesType), v)
	}
	numbers := func(pairs ...uint64) (m []byte) {
		for i := 0; i < len(pairs); i += 2 {
			m = protowire.AppendVarint(protowire.AppendTag(m, protowire.Number(pairs[i]), protowire.VarintType), pairs[i+1])
		}
		return m
	}
	consumed := bytesField(nil, 1, bytesField(nil, 1, numbers(1, 1, 2, 1)))
	operation := strings.TrimPrefix(r.URL.Path, "/")
	reply := func(m []byte) {
		sum := md5.Sum(m)
		h := w.Header()
		h.Set("X-Ots-Contentmd5", base64.StdEncoding.EncodeToString(sum[:]))
		h.Set("X-Ots-Contenttype", "protocol buffer")
		h.Set("X-Ots-Date", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
		h.Set("X-Ots-Requestid", "x")
		w.Write(m)
	}
	if operation == "DescribeTable" {
		column := bytesField(nil, 1, []byte("LockID"))
		column = protowire.AppendVarint(protowire.AppendTag(column, 2, protowire.VarintType), 2)
		meta := bytesField(bytesField(nil, 1, []byte(s.Table)), 2, column)
		capacity := append(bytesField(nil, 1, numbers(1, 0, 2, 0)), numbers(2, 1)...)
		options := numbers(1, 1<<31-1, 2, 1, 5, 86400)
		m := bytesField(bytesField(bytesField(nil, 1, meta), 2, capacity), 3, options)
		m = protowire.AppendVarint(protowire.AppendTag(m, 4, protowire.VarintType), 1)
		reply(m)
		return
	}
	if len(in[2]) == 0 {
		refuse(http.StatusBadRequest, "OTSParameterInvalid", "There is no row.")
		return
	}
	id, columns, err := readRow(in[2][0])
	if err != nil {
		refuse(http.StatusBadRequest, "OTSParameterInvalid", err.Error())
		return
	}
	row, there := s.rows[id]
	if len(in[3]) > 0 && operation != "GetRow" {
		// Condition: the first field is the expectation on the row.
		c := in[3][0]
		if len(c) > 1 && (c[1] == 2 && there || c[1] == 1 && !there) {
			refuse(http.StatusForbidden, "OTSConditionCheckFail", "Condition check failed.")
			return
		}
	}
	switch operation {
	case "GetRow":
		var text []byte
		if there {
			text = writeRow(id, row)
		}
		reply(bytesField(consumed, 2, text))
	case "PutRow":
		s.rows[id] = columns
		reply(consumed)
	case "DeleteRow":
		delete(s.rows, id)
		reply(consumed)
	default:
		refuse(http.StatusBadRequest, "OTSUnsupportOperation", operation)
	}
}

// checksum8 computes the CRC-8 of PlainBuffer, with polynomial 7.
func checksum8(crc byte, data []byte) byte {
	for _, b := range data {
		crc ^= b
		for range 8 {
			high := crc&0x80 != 0
			crc <<= 1
			if high {
				crc ^= 7
			}
		}
	}
	return crc
}

// readRow decodes a row of strings in PlainBuffer and checks its checksums.
func readRow(b []byte) (id string, columns map[string]string, err error) {
	r := bytes.NewReader(b)
	fail := func(what string) (string, map[string]string, error) {
		return "", nil, fmt.Errorf("PlainBuffer: %s", what)
	}
	chunk := func() []byte {
		var n uint32
		if binary.Read(r, binary.LittleEndian, &n) != nil || int(n) > r.Len() {
			return nil
		}
		out := make([]byte, n)
		io.ReadFull(r, out)
		return out
	}
	var head uint32
	if binary.Read(r, binary.LittleEndian, &head) != nil || head != 0x75 {
		return fail("no header")
	}
	columns = map[string]string{}
	var name, value []byte
	var cell, row, deleted byte
	for r.Len() > 0 {
		switch tag, _ := r.ReadByte(); tag {
		case 1, 2:
		case 3:
			cell = 0
		case 4:
			name = chunk()
			cell = checksum8(cell, name)
		case 5:
			value = chunk()
			if len(value) < 5 || value[0] != 3 || int(binary.LittleEndian.Uint32(value[1:])) != len(value)-5 {
				return fail("a value is no string")
			}
			cell = checksum8(cell, value)
			if string(name) == "LockID" {
				id = string(value[5:])
			} else {
				columns[string(name)] = string(value[5:])
			}
		case 8:
			deleted = 1
		case 0xa:
			if got, _ := r.ReadByte(); got != cell {
				return fail("the checksum of a cell is wrong")
			}
			row = checksum8(row, []byte{cell})
		case 9:
			row = checksum8(row, []byte{deleted})
			if got, _ := r.ReadByte(); got != row {
				return fail("the checksum of the row is wrong")
			}
		default:
			return fail(fmt.Sprintf("tag %d", tag))
		}
	}
	if id == "" {
		return fail("no primary key")
	}
	return id, columns, nil
}

// writeRow encodes a row as in a response, with the times of its columns.
func writeRow(id string, columns map[string]string) []byte {
	out := binary.LittleEndian.AppendUint32(nil, 0x75)
	var row byte
	cell := func(name, value string, at int64) {
		v := append(binary.LittleEndian.AppendUint32([]byte{3}, uint32(len(value))), value...)
		out = append(out, 3, 4)
		out = append(binary.LittleEndian.AppendUint32(out, uint32(len(name))), name...)
		out = append(binary.LittleEndian.AppendUint32(append(out, 5), uint32(len(v))), v...)
		crc := checksum8(checksum8(0, []byte(name)), v)
		if at != 0 {
			t := binary.LittleEndian.AppendUint64(nil, uint64(at))
			out = append(append(out, 7), t...)
			crc = checksum8(crc, t)
		}
		out = append(out, 0xa, crc)
		row = checksum8(row, []byte{crc})
	}
	out = append(out, 1)
	cell("LockID", id, 0)
	out = append(out, 2)
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		cell(name, columns[name], 1700000000000)
	}
	return append(out, 9, checksum8(row, []byte{0}))
}
