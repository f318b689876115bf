package install

import (
	"fmt"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/terrace-iac/terrace/addr"
)

// An EventKind is a step of an installation.
type EventKind uint8

// The steps, in the order in which they may occur for one provider.
const (
	Reusing     EventKind = iota // the lock file contains the version
	Finding                      // the versions are requested
	Installed                    // done
	InstalledAt                  // done, into the plugin cache
	InPlace                      // the package is already installed
	InCache                      // the package is already in the plugin cache
	FromCache                    // the package of the plugin cache is used
	Installing                   // the installation of the package begins
	ToCache                      // the installation of the package in the plugin cache begins
	Transfer                     // progress of a download: Done of Total bytes
	Selected                     // LockPlatforms and Mirror: the version is selected
	Fetching                     // LockPlatforms and Mirror: the download of the package for Platform begins
	Retrieved                    // LockPlatforms and Mirror: the package is downloaded
	Finished                     // LockPlatforms and Mirror: the last event of the provider
)

// An Event is a step in the installation of one provider.
type Event struct {
	Kind        EventKind
	Provider    addr.Provider
	Version     versions.Version // zero before it is selected
	Constraints string           // with Finding and Selected; "" means any
	Locked      bool             // with Selected: the version is from the lock file
	Platform    string           // with Fetching and Retrieved: OS_ARCH
	Auth        Auth             // with Installed, InstalledAt and Retrieved
	Done, Total int64            // with Transfer; Total is 0 if it is not known
}

// Text returns the event as a line of init, without a mark before it. It returns "" for
// events that init does not print.
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

// Auth is the result of authenticating a package.
type Auth struct {
	How   AuthKind
	KeyID string // with Signed
}

// An AuthKind is a level of authentication.
type AuthKind uint8

// The levels.
const (
	Unauthenticated  AuthKind = iota // only the lock file has its hash
	VerifiedChecksum                 // it matches a checksum of the source
	SigningSkipped                   // like VerifiedChecksum; the source has no signing keys, which is allowed for it
	Signed                           // like VerifiedChecksum; the checksum is signed
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
