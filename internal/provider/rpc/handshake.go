package rpc

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// maxLine is the maximum length of a plugin's first line, in bytes. The line contains one
// certificate.
const maxLine = 64 << 10

// handshake is the first line that a plugin writes:
//
//	1|PROTOCOL|unix or tcp|ADDRESS|grpc|CERTIFICATE|MULTIPLEX
//
// The last two parts may be missing.
type handshake struct {
	Protocol int
	Network  string
	Address  string
	Cert     []byte // in DER; nil without a certificate
}

// parseHandshake parses and checks the line. Its errors are sentences for the user.
func parseHandshake(line string) (handshake, error) {
	parts := strings.Split(strings.TrimSpace(line), "|")
	if len(parts) < 4 {
		return handshake{}, fmt.Errorf("its first line is %s, not the handshake of a provider plugin", quoteShort(line))
	}
	if parts[0] != "1" {
		return handshake{}, fmt.Errorf("it speaks version %s of the plugin handshake, but only version 1 is known", quoteShort(parts[0]))
	}
	h := handshake{Network: parts[2], Address: parts[3]}
	var err error
	if h.Protocol, err = strconv.Atoi(parts[1]); err != nil || h.Protocol != 5 && h.Protocol != 6 {
		return handshake{}, fmt.Errorf("it speaks version %s of the provider protocol, but only the versions 5 and 6 are known", quoteShort(parts[1]))
	}
	if err := h.checkAddress(); err != nil {
		return handshake{}, err
	}
	if len(parts) < 5 || parts[4] != "grpc" {
		return handshake{}, errors.New("it does not speak gRPC; it is a plugin from before Terraform 0.12")
	}
	// Some older plugins write another short text in place of the certificate.
	if len(parts) > 5 && len(parts[5]) > 50 {
		if h.Cert, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil {
			return handshake{}, errors.New("the certificate in its first line is not in base64")
		}
	}
	return h, nil
}

// within reports whether the plugin listens without TLS on a socket in a directory.
func (h handshake) within(folder string) bool {
	return h.Network == "unix" && h.Cert == nil && filepath.Dir(h.Address) == filepath.Clean(folder)
}

func (h handshake) checkAddress() error {
	switch h.Network {
	case "unix":
		if h.Address == "" || strings.ContainsRune(h.Address, 0) {
			return errors.New("the socket in its first line has no usable name")
		}
	case "tcp":
		host, port, err := net.SplitHostPort(h.Address)
		n, perr := strconv.ParseUint(port, 10, 16)
		if err != nil || perr != nil || n == 0 || host == "" {
			return fmt.Errorf("the address in its first line, %s, is not HOST:PORT", quoteShort(h.Address))
		}
	default:
		return fmt.Errorf("it offers a network %s, but only unix and tcp are known", quoteShort(h.Network))
	}
	return nil
}

func quoteShort(s string) string {
	if len(s) > 100 {
		return strconv.Quote(strings.ToValidUTF8(s[:100], "")) + "…"
	}
	return strconv.Quote(s)
}
