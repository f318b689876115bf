package fetch

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/net/transfer"
)

// # S3
//
// An object is downloaded with a plain GET request, signed by Fetcher.S3.

// S3Access selects the credentials for a bucket. If all fields except Region are zero,
// the default credential chain of the AWS tools is used.
type S3Access struct {
	Region                      string
	Profile                     string
	AccessKey, SecretKey, Token string
}

// Signer adds credentials to a request without a body.
type Signer func(*http.Request) error

// bucket is a parsed S3 address.
type bucket struct {
	endpoint *url.URL // scheme and host
	region   string
	name     string
	key      string // of the object, or the key prefix of a directory
	version  string
	sign     Signer // nil: a public bucket
}

func (w *work) s3(ctx context.Context, dir string) error {
	b, q, err := w.bucket(ctx)
	if err != nil {
		return err
	}
	kind := kindAsked(q, b.key)
	if kind == "" {
		return w.s3Folder(ctx, b, dir)
	}
	sum, err := w.checksum(ctx, q.Get("checksum"), b.key)
	if err != nil {
		return err
	}
	d := w.object(b, b.key, b.version)
	d.Max = maxArchive
	return w.archive(ctx, d, packed{sum, kind, b.key}, dir)
}

func (w *work) object(b bucket, key, version string) transfer.Download {
	u := *b.endpoint
	u.Path = "/" + b.name + "/" + key
	u.RawPath = escapedPath(u.Path)
	if version != "" {
		u.RawQuery = url.Values{"versionId": {version}}.Encode()
	}
	return transfer.Download{URL: u.String(), Sign: b.sign}
}

// escapedPath returns a path with AWS's escaping: everything except letters, digits and -_.~/.
func escapedPath(p string) string {
	parts := strings.Split(p, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(url.QueryEscape(part), "+", "%20")
	}
	return strings.Join(parts, "/")
}

// bucket parses s3.amazonaws.com/B/K, s3-REGION, s3.REGION, and HOST/B/K?region=R for
// other servers with the same protocol.
func (w *work) bucket(ctx context.Context) (bucket, url.Values, error) {
	u, err := url.Parse(w.a.URL)
	if err != nil {
		return bucket{}, nil, err
	}
	q := u.Query()
	b := bucket{endpoint: &url.URL{Scheme: u.Scheme, Host: u.Host}, region: "us-east-1", version: q.Get("version")}
	var ok bool
	b.name, b.key, ok = strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	host, aws := strings.CutSuffix(u.Hostname(), ".amazonaws.com")
	if aws {
		b.endpoint.Scheme = "https"
		labels := strings.Split(host, ".")
		i := 0
		for i < len(labels) && labels[i] != "s3" && !strings.HasPrefix(labels[i], "s3-") {
			i++
		}
		if i == len(labels) {
			return b, nil, fmt.Errorf("%s is not the host of an S3 address", u.Hostname())
		}
		if i > 0 { // BUCKET.s3.REGION.amazonaws.com/KEY
			b.name, b.key, ok = strings.Join(labels[:i], "."), strings.TrimPrefix(u.Path, "/"), true
			b.endpoint.Host = strings.Join(labels[i:], ".") + ".amazonaws.com"
		}
		switch rest := labels[i:]; {
		case len(rest) > 1:
			b.region = rest[len(rest)-1]
		case strings.HasPrefix(rest[0], "s3-"):
			b.region = strings.TrimPrefix(rest[0], "s3-")
		}
	}
	if !ok || b.name == "" || b.key == "" {
		return b, nil, errors.New("an S3 address must have the form s3::https://HOST/BUCKET/KEY")
	}
	if r := q.Get("region"); r != "" {
		b.region = r
	} else if !aws {
		b.region = cmp.Or(w.Env.Get("AWS_REGION"), w.Env.Get("AWS_DEFAULT_REGION"), b.region)
	}
	if w.S3 != nil {
		b.sign, err = w.S3(ctx, S3Access{b.region, q.Get("aws_profile"), q.Get("aws_access_key_id"), q.Get("aws_access_key_secret"), q.Get("aws_access_token")})
	}
	return b, q, err
}

// s3Folder downloads every object whose key has the prefix b.key.
func (w *work) s3Folder(ctx context.Context, b bucket, dir string) error {
	prefix := strings.TrimSuffix(b.key, "/") + "/"
	left := int64(maxArchive)
	files := 0
	token := ""
	for {
		page, err := w.s3List(ctx, b, prefix, token)
		if err != nil {
			return err
		}
		for _, o := range page.Contents {
			rel := strings.TrimPrefix(o.Key, prefix)
			if rel == "" || strings.HasSuffix(rel, "/") {
				continue
			}
			if !filepath.IsLocal(filepath.FromSlash(rel)) {
				return fmt.Errorf("the bucket holds %q, which leads out of its directory", o.Key)
			}
			if files++; files > 100_000 {
				return errors.New("the bucket's directory holds too many objects")
			}
			to := filepath.Join(dir, filepath.FromSlash(rel))
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			d := w.object(b, o.Key, "")
			d.Max = left
			if err := w.Client.Save(ctx, d, to); err != nil {
				return err
			}
			left -= o.Size
		}
		if token = page.Next; token == "" {
			break
		}
	}
	if files == 0 {
		return fmt.Errorf("there is nothing at %s in the bucket %s; the address of an archive must end like one (for example .zip)", b.key, b.name)
	}
	return nil
}

type s3Page struct {
	Contents []struct {
		Key  string
		Size int64
	}
	Next string `xml:"NextContinuationToken"`
}

func (w *work) s3List(ctx context.Context, b bucket, prefix, token string) (s3Page, error) {
	u := *b.endpoint
	u.Path = "/" + b.name
	q := url.Values{"list-type": {"2"}, "prefix": {prefix}}
	if token != "" {
		q.Set("continuation-token", token)
	}
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return s3Page{}, err
	}
	if b.sign != nil {
		if err := b.sign(r); err != nil {
			return s3Page{}, err
		}
	}
	body, _, err := w.Client.Get(ctx, u.String(), r.Header, 16<<20)
	if err != nil {
		return s3Page{}, err
	}
	var page s3Page
	return page, xml.Unmarshal(body, &page)
}
