package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"github.com/terrace-iac/terrace/provider"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The codes of the client's own messages. After CodeCrash and CodeInterrupted, it is
// unknown whether the provider carried out the call.
const (
	CodeStart       = diag.CodeProviderStart // the plugin could not be started
	CodeCrash       = diag.CodeProviderCrash // the process ended or the connection broke during a call
	CodeInterrupted = provider.CodeInterrupted
	CodeClosed      = diag.CodeProviderClosed   // a call after Close
	CodeNonsense    = diag.CodeProviderNonsense // the response violates the protocol
	CodeCall        = diag.CodeProviderCall     // the plugin refused the call
	CodeMessage     = diag.CodeProviderMessage  // a message of the plugin
)

// call describes a call for messages: "plan", "a time_static".
type call struct{ what, typ string }

func (w call) String() string {
	if w.typ == "" {
		return w.what
	}
	return w.what + " " + w.typ
}

// failed returns the message for a call without a response.
func (c *Client) failed(ctx context.Context, w call, err error) diag.List {
	name := c.addr.Display()
	m := &diag.Message{Code: CodeCall, Summary: "Provider call failed"}
	st, _ := status.FromError(err)
	switch code := st.Code(); {
	case c.closed.Load():
		m.Code, m.Summary = CodeClosed, "Provider is closed"
		m.Detail = fmt.Sprintf("The provider %s was asked to %s after it had been closed.", name, w)
	case ctx.Err() != nil || code == codes.Canceled || code == codes.DeadlineExceeded:
		m.Code, m.Summary = CodeInterrupted, "Provider call interrupted"
		m.Detail = fmt.Sprintf("The provider %s was asked to %s, but the call was interrupted before it answered.", name, w)
	case code == codes.Unavailable || (code == codes.Internal || code == codes.Unknown) && c.gone(0):
		m.Code, m.Summary = CodeCrash, "Provider crashed"
		m.Detail = c.crashText(name, w, st)
		if errors.As(err, &unasked{}) && c.gone(0) {
			m.Code = provider.CodeUnasked
		}
	case code == codes.Unimplemented:
		m.Detail = fmt.Sprintf("The provider %s was asked to %s, which it cannot do: %s.", name, w, st.Message())
	case code == codes.ResourceExhausted:
		m.Code, m.Summary = CodeNonsense, "Invalid answer from provider"
		m.Detail = fmt.Sprintf("The provider %s was asked to %s, and the answer is too large: %s.", name, w, st.Message())
	default:
		m.Detail = fmt.Sprintf("The provider %s was asked to %s, and the call failed: %s.", name, w, st.Message()) + c.out.ending()
	}
	return diag.List{m}
}

// gone reports whether the plugin's process has ended. It waits up to d, because the
// connection breaks shortly before the end of the process is known.
func (c *Client) gone(d time.Duration) bool { return c.proc != nil && c.proc.ended(d) }

func (c *Client) crashText(name string, w call, st *status.Status) string {
	if c.proc == nil {
		return fmt.Sprintf("The connection to the provider %s, which runs on its own, broke when it was asked to %s: %s.", name, w, st.Message())
	}
	if !c.gone(2 * lingering) {
		return fmt.Sprintf("The connection to the provider %s broke when it was asked to %s: %s.", name, w, st.Message()) + c.out.ending()
	}
	return fmt.Sprintf("The provider %s ended (%s) when it was asked to %s. This is an error in the provider: please report it to those who make it.", name, c.proc.how(), w) + c.out.ending()
}

// nonsense returns the message for a response that violates the protocol.
func (c *Client) nonsense(w call, format string, args ...any) diag.List {
	return diag.List{{
		Code: CodeNonsense, Summary: "Invalid answer from provider",
		Detail: fmt.Sprintf("The provider %s was asked to %s: %s. This is an error in the provider: please report it to those who make it.", c.addr.Display(), w, fmt.Sprintf(format, args...)),
	}}
}

// refused returns the message for a request that cannot be encoded.
func (c *Client) refused(w call, err error) diag.List {
	return diag.List{{
		Code: CodeCall, Summary: "Provider cannot be asked",
		Detail: fmt.Sprintf("The provider %s cannot be asked to %s: %s.", c.addr.Display(), w, diag.Reason(err)),
	}}
}

// deferred reports whether a plugin deferred a call. If ctx allows that, it records the reason
// there; otherwise it returns an error.
func (c *Client) deferred(ctx context.Context, w call, d *pb6.Deferred) (bool, diag.List) {
	if d == nil {
		return false, nil
	}
	reason, why := provider.DeferReason(""), "it gives no reason"
	switch d.Reason {
	case pb6.Deferred_RESOURCE_CONFIG_UNKNOWN:
		reason, why = provider.DeferredConfig, "the configuration of the resource is not known yet"
	case pb6.Deferred_PROVIDER_CONFIG_UNKNOWN:
		reason, why = provider.DeferredProvider, "the configuration of the provider is not known yet"
	case pb6.Deferred_ABSENT_PREREQ:
		reason, why = provider.DeferredPrereq, "something that it needs does not exist yet"
	}
	if allowed := provider.DeferralOf(ctx); allowed != nil && reason != "" {
		allowed.Reason = reason
		return true, nil
	}
	return true, c.nonsense(w, "it put the request off (%s), which it must not do", why)
}

// messages converts the plugin's diagnostics of a call.
func (c *Client) messages(w call, in []*pb6.Diagnostic) diag.List {
	if len(in) == 0 {
		return nil
	}
	out := make(diag.List, 0, len(in))
	for _, d := range in {
		m := &diag.Message{Code: CodeMessage, Summary: d.GetSummary(), Detail: d.GetDetail(), Attr: toPath(d.GetAttribute())}
		if d.GetSeverity() == pb6.Diagnostic_WARNING {
			m.Severity = diag.Warning
		}
		if m.Summary == "" {
			m.Summary = "Message of a provider"
			if m.Detail == "" {
				m.Detail = fmt.Sprintf("The provider %s gave no reason when it was asked to %s.", c.addr.Display(), w)
			}
		}
		out = append(out, m)
	}
	return out
}

// toPath converts a path. An empty step ends it.
func toPath(in *pb6.Path) cty.Path {
	steps := in.GetSteps()
	if len(steps) == 0 {
		return nil
	}
	out := make(cty.Path, 0, len(steps))
	for _, s := range steps {
		switch sel := s.GetSelector().(type) {
		case *pb6.Path_Step_AttributeName:
			out = append(out, cty.GetAttrStep{Name: sel.AttributeName})
		case *pb6.Path_Step_ElementKeyString:
			out = append(out, cty.IndexStep{Key: cty.StringVal(sel.ElementKeyString)})
		case *pb6.Path_Step_ElementKeyInt:
			out = append(out, cty.IndexStep{Key: cty.NumberIntVal(sel.ElementKeyInt)})
		default:
			return out
		}
	}
	return out
}
