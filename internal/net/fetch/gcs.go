package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/net/transfer"
)

// # GCS
//
// Objects are read through the JSON API with the token from Fetcher.GCS.

// gcsPlace is a parsed GCS address.
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
	} else if w.GCS != nil {
		token, err := w.GCS(ctx)
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
				return fmt.Errorf("the bucket holds %q, which leads out of its directory", o.Name)
			}
			if files++; files > 100_000 {
				return errors.New("the bucket's directory holds too many objects")
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
