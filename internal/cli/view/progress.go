package view

import (
	"time"

	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/plan"
)

// maxID is the number of bytes of an identifier that are shown.
const maxID = 80

// verbs are the texts for the start, the progress and the end of an operation.
type verbs struct{ start, still, done string }

func verbsOf(o plan.Op) verbs {
	switch o {
	case plan.Create, plan.CreateThenDelete, plan.DeleteThenCreate, plan.ForgetThenCreate:
		return verbs{"Creating...", "Still creating...", "Creation complete"}
	case plan.Update:
		return verbs{"Modifying...", "Still modifying...", "Modifications complete"}
	case plan.Delete:
		return verbs{"Destroying...", "Still destroying...", "Destruction complete"}
	case plan.Read:
		return verbs{"Reading...", "Still reading...", "Read complete"}
	case plan.Forget:
		return verbs{"Removing...", "Still removing...", "Removal complete"}
	}
	return verbs{"Working...", "Still working...", "Complete"}
}

// id returns " [key=value]", or "".
func id(e event.Event) string {
	if e.IDKey == "" {
		return ""
	}
	return " [" + idText(e) + "]"
}

func idText(e event.Event) string {
	v := e.IDValue
	if len(v) > maxID {
		n := maxID - 3
		for n > 0 && v[n]&0xc0 == 0x80 { // keep characters whole
			n--
		}
		v = v[:n] + "..."
	}
	return e.IDKey + "=" + v
}

func seconds(d time.Duration) string { return d.Round(time.Second).String() }

// Text returns the line about an event, or "" for none. The text about an import depends on
// applying: whether a plan is applied or made.
func Text(e event.Event, applying bool) string {
	name := e.Object.String()
	plain := e.Object.Instance.String()
	switch e.Kind {
	case event.RefreshStart:
		return name + ": Refreshing state..." + id(e)
	case event.ReadStart:
		return name + ": Reading..." + id(e)
	case event.ReadDone:
		return plain + ": Read complete after " + seconds(e.Elapsed) + id(e)
	case event.ImportStart:
		if applying {
			return name + ": Importing..." + id(e)
		}
		return name + ": Preparing import..." + id(e)
	case event.ImportDone:
		if applying {
			return plain + ": Import complete" + id(e)
		}
		return ""
	case event.ApplyStart:
		return name + ": " + verbsOf(e.Op).start + id(e)
	case event.ApplyProgress:
		s := seconds(e.Elapsed) + " elapsed]"
		if e.IDKey != "" {
			s = idText(e) + ", " + s
		}
		return name + ": " + verbsOf(e.Op).still + " [" + s
	case event.ApplyDone:
		after := plain + ": " + verbsOf(e.Op).done + " after " + seconds(e.Elapsed)
		if e.Op == plan.Delete || e.Op == plan.Forget {
			return after
		}
		return after + id(e)
	case event.ProvisionStart:
		return plain + ": Provisioning with '" + e.Provisioner + "'..."
	case event.ProvisionOutput:
		return plain + " (" + e.Provisioner + "): " + e.Text
	case event.OpenStart:
		return name + ": Opening..."
	case event.OpenDone:
		return plain + ": Open complete after " + seconds(e.Elapsed)
	case event.RenewStart:
		return name + ": Renewing..."
	case event.RenewDone:
		return plain + ": Renew complete after " + seconds(e.Elapsed)
	case event.CloseStart:
		return name + ": Closing..."
	case event.CloseDone:
		return plain + ": Close complete after " + seconds(e.Elapsed)
	case event.OpenDeferred:
		return name + ": Deferred due to " + e.Text
	}
	return ""
}

// jsonText returns the message of an event in the stream, which reports more kinds of events.
func jsonText(e event.Event, applying bool) string {
	plain := e.Object.Instance.String()
	switch e.Kind {
	case event.RefreshStart:
		return plain + ": Refreshing state..." + id(e)
	case event.RefreshDone:
		return plain + ": Refresh complete" + id(e)
	case event.ReadStart:
		return plain + ": Refreshing..." + id(e)
	case event.ReadDone:
		return plain + ": Refresh complete after " + seconds(e.Elapsed) + id(e)
	case event.ApplyError:
		return plain + ": " + verbsOf(e.Op).errored() + " after " + seconds(e.Elapsed)
	case event.OpenDone, event.RenewDone, event.CloseDone:
		return plain + ": " + ephemeralText(e.Kind)
	case event.ProvisionOutput:
		return plain + ": (" + e.Provisioner + "): " + e.Text
	case event.ProvisionDone:
		return plain + ": (" + e.Provisioner + ") Provisioning complete"
	case event.ProvisionError:
		return plain + ": (" + e.Provisioner + ") Provisioning errored"
	}
	return Text(e, applying)
}

// ephemeralText returns the message about an ephemeral resource in the stream.
func ephemeralText(k event.Kind) string {
	switch k {
	case event.OpenStart:
		return "Opening..."
	case event.OpenDone:
		return "Open complete"
	case event.RenewStart:
		return "Renewing..."
	case event.RenewDone:
		return "Renew complete"
	case event.CloseStart:
		return "Closing..."
	}
	return "Close complete"
}

func (v verbs) errored() string {
	switch v.done {
	case "Modifications complete":
		return "Modifications errored"
	case "Complete":
		return "Errored"
	}
	return v.done[:len(v.done)-len("complete")] + "errored"
}

func elapsedSeconds(d time.Duration) float64 { return d.Round(time.Second).Seconds() }
