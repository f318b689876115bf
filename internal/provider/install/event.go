package install

import (
	"fmt"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/terrace-iac/terrace/addr"
)

// An EventKind is a step of an installation.
type EventKind uint8

// The steps, in the order in which they may come for one provider.
const (
	Reusing     EventKind = iota // the lock file tells the version
	Finding                      // versions are looked up
	Installed                    // done
	InstalledAt                  // done, in the shared cache
	InPlace                      // the package was there already
	InCache                      // the package was in the shared cache already
	FromCache                    // the package of the shared cache is used
	Installing                   // work on the package begins
	ToCache                      // work on the package in the shared cache begins
	Transfer                     // bytes have arrived: Done of Total
	Selected                     // LockPlatforms and Mirror: the version is settled
	Fetching                     // LockPlatforms and Mirror: the package for Platform is fetched
	Retrieved                    // LockPlatforms and Mirror: and is here
	Finished                     // LockPlatforms and Mirror: nothing more comes about the provider
)

// An Event tells about the progress of one provider.
type Event struct {
	Kind        EventKind
	Provider    addr.Provider
	Version     versions.Version // zero before it is selected
	Constraints string           // with Finding and Selected; "" means any
	Locked      bool             // with Selected: the lock file gave the version
	Platform    string           // with Fetching and Retrieved: OS_ARCH
	Auth        Auth             // with Installed, InstalledAt and Retrieved
	Done, Total int64            // with Transfer; Total is 0 if it is not known
}

// Text is the event as a line of init, without a mark before it; "" for those
// that init does not tell.
func (e Event) Text() string {
	p, v := e.Provider.Display(), e.Version
	switch e.Kind {
	case Reusing:
		return fmt.Sprintf("Reusing previous version of %s from the dependency lock file", p)
	case Finding:
		if e.Constraints == "" {
			return fmt.Sprintf("Finding latest version of %s...", p)
		}
		return fmt.Sprintf("Finding %s versions matching %q...", p, e.Constraints)
	case Installing:
		return fmt.Sprintf("Installing %s v%s...", p, v)
	case ToCache:
		return fmt.Sprintf("Installing %s v%s to the shared cache directory...", p, v)
	case Installed, InstalledAt:
		if e.Auth.How == SigningSkipped {
			return fmt.Sprintf("Installed %s v%s. Signature validation was skipped due to the registry not containing GPG keys for this provider", p, v)
		}
		return fmt.Sprintf("Installed %s v%s (%s)", p, v, e.Auth)
	case InPlace:
		return fmt.Sprintf("Using previously-installed %s v%s", p, v)
	case InCache:
		return fmt.Sprintf("Detected previously-installed %s v%s in the shared cache directory", p, v)
	case FromCache:
		return fmt.Sprintf("Using %s v%s from the shared cache directory", p, v)
	}
	return ""
}

// Auth says how far a package was authenticated.
type Auth struct {
	How   AuthKind
	KeyID string // with Signed
}

// An AuthKind is a degree of authentication.
type AuthKind uint8

// The degrees.
const (
	Unauthenticated  AuthKind = iota // nothing but the lock file vouches for it
	VerifiedChecksum                 // it matches a checksum of the source
	SigningSkipped                   // and the source has no signing keys, which is allowed there
	Signed                           // and the checksum is signed
)

func (a Auth) String() string {
	switch a.How {
	case VerifiedChecksum:
		return "verified checksum"
	case SigningSkipped:
		return "signing skipped"
	case Signed:
		if a.KeyID == "" {
			return "signed"
		}
		return "signed, key ID " + a.KeyID
	}
	return "unauthenticated"
}
