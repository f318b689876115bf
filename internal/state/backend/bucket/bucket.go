// Package bucket contains the common code of the backends cos and oss: the client of an
// object store that lists a bucket in the XML of S3's first listing API, the objects of a
// workspace, and temporary credentials.
//
// Main types: Client, which sends requests; Layout, the names of the objects; and Object,
// the state of one workspace. The one rule: differences between the services are data in
// Service or methods of Vendor.
package bucket

import (
	"context"
	"encoding/xml"
	"net/url"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// A Layout contains the names of states: PREFIX/KEY for the default workspace, and
// PREFIX/WORKSPACE/KEY for others.
type Layout struct {
	Prefix string // as in the block, with or without a final slash; "" for none
	Key    string
}

// Check adds errors about the arguments prefix and key to a.
func (l Layout) Check(a *backend.Args) {
	if strings.HasPrefix(l.Prefix, "/") || strings.HasPrefix(l.Prefix, "./") {
		a.Fail("prefix", "The %q begins with %q or %q", "prefix", "/", "./")
	}
	if l.Key == "" || strings.HasPrefix(l.Key, "/") || strings.HasSuffix(l.Key, "/") {
		a.Fail("key", "The %q is empty, or begins or ends with a slash", "key")
	}
}

// File returns the name of the object with the state of a workspace.
func (l Layout) File(workspace string) string {
	if workspace != store.Default {
		return l.folder() + workspace + "/" + l.Key
	}
	return l.folder() + l.Key
}

func (l Layout) folder() string {
	if l.Prefix == "" {
		return ""
	}
	return strings.TrimSuffix(l.Prefix, "/") + "/"
}

// workspaces returns the workspaces that have an object, the default one first.
func (l Layout) workspaces(ctx context.Context, list func(ctx context.Context, prefix string) ([]string, error)) ([]string, error) {
	keys, err := list(ctx, l.folder())
	if err != nil {
		return nil, err
	}
	names := []string{store.Default}
	for _, k := range keys {
		name, rest, ok := strings.Cut(strings.TrimPrefix(k, l.folder()), "/")
		if ok && rest == l.Key && name != store.Default && store.ValidWorkspace(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	return names, nil
}

// list returns the names of all objects with a prefix, sorted. page sends a request to the
// bucket with the parameters and returns the body of a successful response.
func list(prefix string, page func(url.Values) ([]byte, error)) ([]string, error) {
	var out []string
	for marker := ""; ; {
		q := url.Values{"prefix": {prefix}, "max-keys": {"1000"}}
		if marker != "" {
			q.Set("marker", marker)
		}
		body, err := page(q)
		if err != nil {
			return nil, err
		}
		var answer struct {
			Contents    []struct{ Key string }
			IsTruncated bool
			NextMarker  string
		}
		if err := xml.Unmarshal(body, &answer); err != nil {
			return nil, &backend.Error{Argument: "bucket", Answer: "the answer is not a list of objects", Advice: "Check bucket, region and endpoint, and the proxy if there is one."}
		}
		for _, c := range answer.Contents {
			out = append(out, c.Key)
		}
		if !answer.IsTruncated || answer.NextMarker == "" {
			return out, nil
		}
		marker = answer.NextMarker
	}
}
