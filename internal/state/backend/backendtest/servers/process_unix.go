//go:build unix

package servers

import "syscall"

// process says that a server runs as another account, if one is given, and in a group
// of its own, which an interrupt from the terminal does not reach.
func process(as *account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if as != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
	return attr
}
