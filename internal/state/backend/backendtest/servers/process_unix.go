//go:build unix

package servers

import "syscall"

// process returns the attributes of a server that runs as another account, if as is not
// nil, and in its own process group, so that an interrupt from the terminal does not reach
// it.
func process(as *account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if as != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
	return attr
}
