package s3

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/terrace-iac/terrace/internal/net/aws"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// The table has the string key LockID. A state has two items: the lock, with the attribute
// Info, and the digest, with the attribute Digest.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/

type text struct {
	S string `json:"S"`
}

// call sends an operation. An error of the service is an *aws.APIError.
func (b *s3Backend) call(ctx context.Context, operation string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	h := http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {"DynamoDB_20120810." + operation}}
	resp, err := b.tables.Do(ctx, rest.Request{Method: "POST", URL: b.tableBase + "/", Header: h, Body: body, Repeat: true})
	if err != nil {
		e := b.unreachable(err)
		var known *backend.Error
		if errors.As(e, &known) && known.Argument == "endpoints" {
			known.Argument = "dynamodb_table"
		}
		return e
	}
	if answer, advice, ok := rest.NoAnswer(resp); ok {
		return &backend.Error{Argument: "dynamodb_table", Answer: fmt.Sprintf("the table %s: %s", b.table, answer), Advice: advice}
	}
	if resp.Status != http.StatusOK {
		return aws.JSONError(resp.Status, resp.Body)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(resp.Body, out); err != nil {
		return &backend.Error{Argument: "dynamodb_table", Answer: "the answer is not one of DynamoDB", Advice: "Check endpoints, and whether a proxy stands in between."}
	}
	return nil
}

// tableError returns the error of a failed call.
func (b *s3Backend) tableError(summary string, err error) error {
	var api *aws.APIError
	if !errors.As(err, &api) {
		return err
	}
	e := &backend.Error{Argument: "dynamodb_table", Summary: summary, Answer: fmt.Sprintf("the table %s: DynamoDB answered %d %s", b.table, api.Status, strings.TrimSuffix(rest.Line([]byte(api.Error())), ".")), Err: api}
	switch api.Code {
	case "ResourceNotFoundException":
		e.Advice = "There is no such table in this region: make it with the string LockID as its partition key (for a unit \"backend bootstrap\" does), or correct its name."
	case "AccessDeniedException":
		e.Advice = "The credentials need dynamodb:GetItem, PutItem and DeleteItem on the table, and to make it DescribeTable, CreateTable, UpdateTable and TagResource."
	case "ValidationException":
		e.Advice = "The table must have a partition key LockID that is a string, and no sort key."
	case "UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException", "IncompleteSignature", "MissingAuthenticationTokenException":
		e.Argument, e.Advice = b.who, "The credentials are not valid (any more); \"aws sts get-caller-identity\" shows which ones are found."
	default:
		e.Advice = backend.AdviceOn(api.Status)
	}
	return e
}

func (b *s3Backend) item(ctx context.Context, id, attributes string) (map[string]text, error) {
	var out struct{ Item map[string]text }
	err := b.call(ctx, "GetItem", map[string]any{
		"TableName": b.table, "Key": map[string]text{"LockID": {id}}, "ConsistentRead": true, "ProjectionExpression": attributes,
	}, &out)
	if err != nil {
		return nil, b.tableError("Failed to read the table", err)
	}
	return out.Item, nil
}

func (b *s3Backend) deleteItem(ctx context.Context, id, info string) error {
	in := map[string]any{"TableName": b.table, "Key": map[string]text{"LockID": {id}}}
	if info != "" {
		in["ConditionExpression"] = "Info = :info"
		in["ExpressionAttributeValues"] = map[string]text{":info": {info}}
	}
	if err := b.call(ctx, "DeleteItem", in, nil); err != nil {
		return b.tableError("Failed to delete from the table", err)
	}
	return nil
}

// digest returns the digest of the state in the table; "" if there is none. next is the
// digest of a state that another run was about to write.
func (o *object) digest(ctx context.Context) (now, next string, err error) {
	item, err := o.b.item(ctx, o.digestID(), "LockID, Digest, NextDigest")
	return item["Digest"].S, item["NextDigest"].S, err
}

// announce stores the digest of the state that is about to be written next to the present
// one. A reader that finds the new state with the old digest then knows that the writer
// ended in between. OpenTofu and Terraform ignore the additional attribute. After the
// write, the item is as they write it.
func (o *object) announce(ctx context.Context, next string) (announced, error) {
	digest, other, err := o.digest(ctx)
	if err != nil {
		return announced{}, err
	}
	a := announced{was: [2]string{digest, other}}
	if seen := o.seen.Load(); other != "" && seen != nil && *seen == other { // the announced write was carried out
		digest = other
	}
	a.now = [2]string{digest, next}
	ok, err := o.replaceDigest(ctx, a.was, a.now)
	if err != nil || ok {
		return a, err
	}
	return a, changed()
}

// announced contains the digests in the table before a write was announced, and after it.
type announced struct{ was, now [2]string }

// retract undoes the announcement of a write that was refused because another process wrote
// first: the announcement of that process is restored. Errors are ignored, because reading
// the state reports what to do.
func (a announced) retract(ctx context.Context, o *object) {
	_, _ = o.replaceDigest(ctx, a.now, a.was)
}

// putDigest replaces the present digest by that of the written state. A request that
// arrives late, after another process has written the state, changes nothing.
func (o *object) putDigest(ctx context.Context, digest string) error {
	was := [2]string{anyDigest, digest} // as announced
	for range 5 {
		ok, err := o.replaceDigest(ctx, was, [2]string{digest, ""})
		if err != nil || ok {
			return err
		}
		if was[0], was[1], err = o.digest(ctx); err != nil {
			return err
		}
		sum := md5.New()
		state, err := o.fetch(ctx, o.key, "state", backend.Hash(sum))
		if err != nil {
			return err
		}
		if state == nil || hex.EncodeToString(sum.Sum(nil)) != digest {
			return changed()
		}
	}
	return changed()
}

// anyDigest means that a digest is not compared.
const anyDigest = "*"

// replaceDigest replaces the digest and the announced digest ("" for none) if they are
// still equal to was.
func (o *object) replaceDigest(ctx context.Context, was, next [2]string) (ok bool, err error) {
	item, values := map[string]text{"LockID": {o.digestID()}}, map[string]text{}
	var conditions []string
	for i, name := range []string{"Digest", "NextDigest"} {
		switch was[i] {
		case anyDigest:
		case "":
			conditions = append(conditions, "attribute_not_exists("+name+")")
		default:
			conditions = append(conditions, name+" = :"+name)
			values[":"+name] = text{was[i]}
		}
		if next[i] != "" {
			item[name] = text{next[i]}
		}
	}
	in := map[string]any{"TableName": o.b.table, "Item": item, "ConditionExpression": strings.Join(conditions, " AND ")}
	if len(values) > 0 {
		in["ExpressionAttributeValues"] = values
	}
	err = o.b.call(ctx, "PutItem", in, nil)
	var api *aws.APIError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &api) && api.Code == "ConditionalCheckFailedException":
		now, announced, err := o.digest(ctx)
		return now == next[0] && announced == next[1], err // the response of an earlier attempt was lost
	}
	return false, o.b.tableError("Failed to write the digest of the state", err)
}

// lockItem returns the lock in the table, and its text; nil if there is none.
func (o *object) lockItem(ctx context.Context) (*store.LockInfo, string, error) {
	item, err := o.b.item(ctx, o.path(), "LockID, Info")
	if err != nil || len(item) == 0 {
		return nil, "", err
	}
	info, err := store.ParseLockInfo([]byte(item["Info"].S))
	if err != nil {
		return &store.LockInfo{}, item["Info"].S, nil
	}
	return &info, item["Info"].S, nil
}

func (o *object) takeItem(ctx context.Context, info store.LockInfo) error {
	err := o.b.call(ctx, "PutItem", map[string]any{
		"TableName": o.b.table, "Item": map[string]text{"LockID": {o.path()}, "Info": {string(info.JSON())}},
		"ConditionExpression": "attribute_not_exists(LockID)",
	}, nil)
	var api *aws.APIError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &api) || api.Code != "ConditionalCheckFailedException":
		if err != nil && api == nil && ctx.Err() == nil { // the response was lost, so the lock may be ours
			if holder, _, more := o.lockItem(ctx); more == nil && holder != nil && holder.ID == info.ID {
				return nil
			}
		}
		return o.b.tableError("Error acquiring the state lock", err)
	}
	holder, _, err := o.lockItem(ctx)
	switch {
	case err != nil:
		return err
	case holder == nil:
		return &backend.LockedError{Again: true}
	case holder.ID == info.ID: // an earlier attempt has created it, and its response was lost
		return nil
	}
	return &backend.LockedError{Holder: holder}
}

func (o *object) releaseItem(ctx context.Context, id string) error {
	holder, text, err := o.lockItem(ctx)
	switch {
	case err != nil:
		return err
	case holder == nil:
		return &backend.Error{Argument: "dynamodb_table", Answer: fmt.Sprintf("there is no lock for %s in the table: the state is not locked", o.path()), Advice: "There is nothing to release."}
	case holder.ID != id:
		return backend.WrongID(id, holder.ID)
	}
	return o.b.deleteItem(ctx, o.path(), text)
}
