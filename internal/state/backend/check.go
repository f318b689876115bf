package backend

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
)

// Failed returns the Finding for an error: the response of the service, advice, and the missing
// permission.
func Failed(what string, err error) Finding {
	f := Finding{What: what, Detail: strings.Join(strings.Fields(Message(diag.CodeBackendFailed, "", "", err)[0].Detail), " ")}
	if e, ok := errors.AsType[*Error](err); ok {
		f.Permission = e.Permission
	}
	return f
}

// CheckVersioning reports whether the service keeps older states.
func CheckVersioning(on bool, report func(Finding)) {
	f := Finding{What: "versioning", OK: on, Detail: "older states can be brought back"}
	if !on {
		f.Detail = "it is off: a state that was overwritten or deleted cannot be brought back"
	}
	report(f)
}

// CheckNoVersioning reports that the service does not keep older states, or does not report it.
func CheckNoVersioning(detail string, report func(Finding)) {
	report(Finding{What: "versioning", OK: true, Detail: detail})
}

// CheckClock reports the difference between the clocks of this machine and the service, if it
// is known. Signatures and tokens are rejected if the clocks differ by minutes.
func CheckClock(service interface {
	Clock() (ahead time.Duration, known bool)
}, report func(Finding)) {
	ahead, known := service.Clock()
	f := Finding{What: "clock", OK: true, Detail: "that of this machine agrees with the service's"}
	switch {
	case !known:
		f.Detail = "the service does not say what time it has"
	case ahead > time.Minute:
		f.OK, f.Detail = false, fmt.Sprintf("that of this machine is %s ahead of the service's: signatures, tokens and the times in locks are wrong", ahead.Round(time.Second))
	case ahead < -time.Minute:
		f.OK, f.Detail = false, fmt.Sprintf("that of this machine is %s behind the service's: signatures, tokens and the times in locks are wrong", ahead.Abs().Round(time.Second))
	}
	report(f)
}
