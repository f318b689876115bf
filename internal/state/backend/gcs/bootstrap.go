package gcs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/zclconf/go-cty/cty"
)

// bootstrapArgs returns the arguments of remote_state about creating the bucket.
func bootstrapArgs() map[string]cty.Type {
	return map[string]cty.Type{
		"project": cty.String, "location": cty.String, "gcs_bucket_labels": cty.Map(cty.String),
		"skip_bucket_creation": cty.Bool, "skip_bucket_versioning": cty.Bool, "enable_bucket_policy_only": cty.Bool,
	}
}

// Site implements backend.Bootstrapper.
func (b *bucket) Site() string { return b.bucketURL() }

func (b *bucket) bucketURL() string { return b.base + "/b/" + url.PathEscape(b.name) }

// settings are the settings of a bucket.
type settings struct {
	Versioning       struct{ Enabled bool }
	IAMConfiguration struct {
		UniformBucketLevelAccess struct{ Enabled bool }
	}
}

// look reads the settings of the bucket.
func (b *bucket) look(ctx context.Context) (s settings, exists bool, err error) {
	resp, err := b.send(ctx, rest.Request{Method: "GET", URL: b.bucketURL() + "?fields=versioning,iamConfiguration", Repeat: true})
	switch {
	case err != nil:
		return s, false, err
	case resp.Status == http.StatusNotFound:
		return s, false, nil
	case resp.Status != http.StatusOK:
		return s, false, b.refused("Failed to look for the bucket", "storage.buckets.get", resp)
	}
	if json.Unmarshal(resp.Body, &s) != nil {
		return s, false, odd()
	}
	return s, true, nil
}

// Versioned implements backend.Bootstrapper.
func (b *bucket) Versioned(ctx context.Context) (bool, error) {
	s, _, err := b.look(ctx)
	return s.Versioning.Enabled, err
}

// Bootstrap implements backend.Bootstrapper.
func (b *bucket) Bootstrap(ctx context.Context, o backend.Bootstrapping) error {
	a := o.Args
	if a.Bool("skip_bucket_creation", false) {
		return nil
	}
	now, exists, err := b.look(ctx)
	if err != nil {
		return err
	}
	versioned, uniform := !a.Bool("skip_bucket_versioning", false), a.Bool("enable_bucket_policy_only", false)
	want := map[string]any{}
	if versioned && !now.Versioning.Enabled {
		want["versioning"] = map[string]any{"enabled": true}
	}
	if uniform && !now.IAMConfiguration.UniformBucketLevelAccess.Enabled {
		want["iamConfiguration"] = map[string]any{"uniformBucketLevelAccess": map[string]any{"enabled": true}}
	}
	if exists {
		if o.Keep || len(want) == 0 {
			return nil
		}
		return b.change(ctx, want, o)
	}
	project, location := a.String("project", ""), a.String("location", "")
	switch {
	case o.Require:
		return &backend.Error{Argument: "bucket", Code: diag.CodeBackendBootstrap, Summary: "No bucket", Answer: fmt.Sprintf("there is no bucket %q", b.name), Advice: "With --backend-require-bootstrap it is not made: make it with \"backend bootstrap\", or correct its name."}
	case project == "":
		return &backend.Error{Argument: "project", Summary: "Failed to make the bucket", Answer: "the project that the bucket is to belong to is not known", Advice: "Set project in remote_state.config."}
	case location == "":
		return &backend.Error{Argument: "location", Summary: "Failed to make the bucket", Answer: "where the bucket is to be is not known", Advice: "Set location in remote_state.config, for example \"eu\"."}
	}
	want["name"], want["location"] = b.name, location
	if labels := a.Map("gcs_bucket_labels"); len(labels) > 0 {
		want["labels"] = labels
	}
	body, err := json.Marshal(want)
	if err != nil {
		return err
	}
	resp, err := b.send(ctx, rest.Request{Method: "POST", URL: b.base + "/b?project=" + url.QueryEscape(project), Header: jsonHeader(), Body: body, Repeat: true})
	if err != nil {
		return err
	}
	if resp.Status != http.StatusOK && resp.Repeated == 0 {
		if resp.Status == http.StatusConflict {
			return &backend.Error{Argument: "bucket", Summary: "Failed to make the bucket", Answer: fmt.Sprintf("the name %q is taken by somebody else", b.name), Advice: "Names of buckets are unique among all projects: choose another."}
		}
		return b.refused("Failed to make the bucket", "storage.buckets.create", resp)
	}
	o.Did("made the bucket " + b.name)
	for end := b.s.Now().Add(2 * time.Minute); ; {
		if _, exists, err := b.look(ctx); exists || err != nil {
			return err
		}
		if b.s.Now().After(end) {
			return &backend.Error{Argument: "bucket", Answer: "the bucket does not come up within two minutes", Advice: "Run the command again later."}
		}
		if err := b.s.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// change changes settings of the bucket.
func (b *bucket) change(ctx context.Context, want map[string]any, o backend.Bootstrapping) error {
	body, err := json.Marshal(want)
	if err != nil {
		return err
	}
	resp, err := b.send(ctx, rest.Request{Method: "PATCH", URL: b.bucketURL(), Header: jsonHeader(), Body: body, Repeat: true})
	if err != nil {
		return err
	}
	if resp.Status != http.StatusOK {
		return b.refused("Failed to change the bucket", "storage.buckets.update", resp)
	}
	var did []string
	for _, x := range [][2]string{{"versioning", "versioning"}, {"iamConfiguration", "uniform access"}} {
		if want[x[0]] != nil {
			did = append(did, x[1])
		}
	}
	o.Did(strings.Join(did, " and ") + " of the bucket " + b.name)
	return nil
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }
