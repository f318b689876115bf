package fetch

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/internal/transfer"
)

// # GCS
//
// Objects are read through the JSON API with a bearer token: that of
// GOOGLE_OAUTH_ACCESS_TOKEN, or one got with the application default credentials.

// gcsPlace is a GCS address taken apart.
type gcsPlace struct {
	api        string // base URL of the JSON API
	name, key  string
	generation string
	header     http.Header
}

func (w *work) gcs(ctx context.Context, dir string) error {
	u, err := url.Parse(w.a.URL)
	if err != nil {
		return err
	}
	parts := strings.SplitN(strings.TrimPrefix(u.Path, "/"), "/", 4)
	if len(parts) != 4 || parts[0] != "storage" || parts[2] == "" || parts[3] == "" {
		return errors.New("a GCS address must have the form gcs::https://www.googleapis.com/storage/v1/BUCKET/PATH")
	}
	g := gcsPlace{api: "https://storage.googleapis.com/storage/v1", name: parts[2], key: parts[3], generation: u.Fragment, header: http.Header{}}
	if emulator := w.Env.Get("STORAGE_EMULATOR_HOST"); emulator != "" {
		if !strings.Contains(emulator, "://") {
			emulator = "http://" + emulator
		}
		g.api = strings.TrimSuffix(emulator, "/") + "/storage/v1"
	} else {
		token, err := w.googleToken(ctx)
		if err != nil {
			return err
		}
		if token != "" {
			g.header.Set("Authorization", "Bearer "+token)
		}
	}
	q := u.Query()
	kind := kindAsked(q, g.key)
	if kind == "" {
		return w.gcsFolder(ctx, g, dir)
	}
	sum, err := w.checksum(ctx, q.Get("checksum"), g.key)
	if err != nil {
		return err
	}
	d := g.object(g.key)
	d.Max = maxArchive
	return w.archive(ctx, d, packed{sum, kind, g.key}, dir)
}

func (g gcsPlace) object(key string) transfer.Download {
	where := g.api + "/b/" + url.PathEscape(g.name) + "/o/" + url.PathEscape(key) + "?alt=media"
	if g.generation != "" {
		where += "&generation=" + url.QueryEscape(g.generation)
	}
	return transfer.Download{URL: where, Header: g.header}
}

func (w *work) gcsFolder(ctx context.Context, g gcsPlace, dir string) error {
	prefix := strings.TrimSuffix(g.key, "/") + "/"
	left, files, token := int64(maxArchive), 0, ""
	for {
		q := url.Values{"prefix": {prefix}}
		if token != "" {
			q.Set("pageToken", token)
		}
		body, _, err := w.Client.Get(ctx, g.api+"/b/"+url.PathEscape(g.name)+"/o?"+q.Encode(), g.header, 16<<20)
		if err != nil {
			return err
		}
		var page struct {
			Items []struct{ Name string }
			Next  string `json:"nextPageToken"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return fmt.Errorf("the list of objects is not valid JSON: %w", err)
		}
		for _, o := range page.Items {
			rel := strings.TrimPrefix(o.Name, prefix)
			if rel == "" || strings.HasSuffix(rel, "/") {
				continue
			}
			if !filepath.IsLocal(filepath.FromSlash(rel)) {
				return fmt.Errorf("the bucket holds %q, which leads out of its folder", o.Name)
			}
			if files++; files > 100_000 {
				return errors.New("the bucket's folder holds too many objects")
			}
			to := filepath.Join(dir, filepath.FromSlash(rel))
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			d := g.object(o.Name)
			d.Max = left
			if err := w.Client.Save(ctx, d, to); err != nil {
				return err
			}
			if st, err := os.Stat(to); err == nil {
				left -= st.Size()
			}
		}
		if token = page.Next; token == "" {
			break
		}
	}
	if files == 0 {
		return fmt.Errorf("there is nothing at %s in the bucket %s; the address of an archive must end like one (for example .zip)", g.key, g.name)
	}
	return nil
}

// googleToken is an access token, or "" if there are no credentials.
func (w *work) googleToken(ctx context.Context) (string, error) {
	if t := w.Env.Get("GOOGLE_OAUTH_ACCESS_TOKEN"); t != "" {
		return t, nil
	}
	file := w.Env.Get("GOOGLE_APPLICATION_CREDENTIALS")
	explicit := file != ""
	if !explicit {
		base := w.Env.Get("CLOUDSDK_CONFIG")
		if base == "" && w.Home != "" {
			base = filepath.Join(w.Home, ".config", "gcloud")
		}
		if base != "" {
			file = filepath.Join(base, "application_default_credentials.json")
		}
	}
	var text []byte
	err := error(os.ErrNotExist)
	if file != "" {
		text, err = os.ReadFile(file)
	}
	if errors.Is(err, os.ErrNotExist) && !explicit {
		return w.googleMetadata(ctx), nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read credentials: %w", err)
	}
	return w.googleExchange(ctx, text)
}

// googleMetadata asks the machine's metadata server, which only a machine of
// Google has.
func (w *work) googleMetadata(ctx context.Context) string {
	host := w.Env.Get("GCE_METADATA_HOST")
	if host == "" {
		host = "169.254.169.254"
	}
	body, _, err := w.Client.With(0, time.Second).Get(ctx, "http://"+host+"/computeMetadata/v1/instance/service-accounts/default/token", http.Header{"Metadata-Flavor": {"Google"}}, 1<<16)
	var out struct {
		Token string `json:"access_token"`
	}
	if err != nil || json.Unmarshal(body, &out) != nil {
		return ""
	}
	return out.Token
}

type googleKey struct {
	Type         string `json:"type"`
	Email        string `json:"client_email"`
	Key          string `json:"private_key"`
	KeyID        string `json:"private_key_id"`
	TokenURI     string `json:"token_uri"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Refresh      string `json:"refresh_token"`
}

// googleExchange gets a token for a service account or a user.
// https://developers.google.com/identity/protocols/oauth2/service-account
func (w *work) googleExchange(ctx context.Context, text []byte) (string, error) {
	var k googleKey
	if err := json.Unmarshal(text, &k); err != nil {
		return "", errors.New("the file with Google credentials is not valid JSON")
	}
	if k.TokenURI == "" {
		k.TokenURI = "https://oauth2.googleapis.com/token"
	}
	q := url.Values{}
	switch k.Type {
	case "service_account":
		jwt, err := w.googleJWT(k)
		if err != nil {
			return "", err
		}
		q.Set("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
		q.Set("assertion", jwt)
	case "authorized_user":
		q = url.Values{"grant_type": {"refresh_token"}, "client_id": {k.ClientID}, "client_secret": {k.ClientSecret}, "refresh_token": {k.Refresh}}
	case "external_account":
		return w.googleExternal(ctx, text)
	case "impersonated_service_account":
		return w.googleImpersonated(ctx, text)
	default:
		return "", fmt.Errorf("credentials of Google of type %q cannot be used for modules; set GOOGLE_OAUTH_ACCESS_TOKEN to a token, for example that of \"gcloud auth print-access-token\"", k.Type)
	}
	return googleAnswer(w.Client.PostForm(ctx, k.TokenURI, q, 1<<20))
}

// googleAnswer reads the answer of a token service.
func googleAnswer(body []byte, err error) (string, error) {
	if err != nil {
		return "", fmt.Errorf("cannot get a token for Google Cloud: %w", err)
	}
	var out struct {
		Token string `json:"access_token"`
	}
	if json.Unmarshal(body, &out) != nil || out.Token == "" {
		return "", errors.New("cannot get a token for Google Cloud: the answer holds none")
	}
	return out.Token, nil
}

func (w *work) googleJWT(k googleKey) (string, error) {
	block, _ := pem.Decode([]byte(k.Key))
	if block == nil || w.Now == nil {
		return "", errors.New("the file with Google credentials holds no private key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "", errors.New("the private key in the file with Google credentials cannot be read")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return "", errors.New("the private key in the file with Google credentials is not an RSA key")
	}
	now := w.Now().Unix()
	part := func(v any) string {
		text, _ := json.Marshal(v) // of maps of strings and numbers
		return base64.RawURLEncoding.EncodeToString(text)
	}
	unsigned := part(map[string]string{"alg": "RS256", "typ": "JWT", "kid": k.KeyID}) + "." +
		part(map[string]any{"iss": k.Email, "scope": readScope, "aud": k.TokenURI, "iat": now, "exp": now + 3600})
	sum := sha256.Sum256([]byte(unsigned))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return unsigned + "." + base64.RawURLEncoding.EncodeToString(sig), nil
}
