package funcs

import (
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"

	"github.com/apparentlymart/go-cidr/cidr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/gocty"
)

// network returns the functions for IP addresses and prefixes in CIDR notation.
func network() family {
	return family{
		"cidrcontains": onStrings("Tells whether a prefix contains an address or another prefix.",
			cty.Bool, cidrContains, "containing_prefix", "contained_ip_or_prefix"),
		"cidrhost": cidrFunc("Returns the address with a number within a prefix; negative numbers count from its end.",
			cty.String, cidrHost, "hostnum"),
		"cidrnetmask": onStrings("Returns the netmask of an IPv4 prefix.", cty.String, cidrNetmask, "prefix"),
		"cidrsubnet": cidrFunc("Returns the subnet with a number within a prefix that is extended by some bits.",
			cty.String, cidrSubnet, "newbits", "netnum"),
		"cidrsubnets": cidrSubnetsFunc(),
	}
}

// cidrFunc returns a function of a prefix and numbers.
func cidrFunc(about string, ret cty.Type, f func(call) (cty.Value, error), numbers ...string) function.Function {
	params := stringParams("prefix")
	for _, name := range numbers {
		params = append(params, param(name, cty.Number))
	}
	return function.New(&function.Spec{
		Description: about, Params: params, Type: function.StaticReturnType(ret), RefineResult: notNull, Impl: quoting(f),
	})
}

// prefix parses argument i of c.
func prefix(c call, i int) (*net.IPNet, error) {
	_, network, err := net.ParseCIDR(withoutZeros(c.text(i)))
	if err != nil {
		return nil, function.NewArgErrorf(i, "invalid CIDR expression: invalid CIDR address: %s", c.bare(i))
	}
	return network, nil
}

// withoutZeros removes leading zeros from the decimal parts of an IPv4 address. They were
// allowed and ignored when these functions were introduced; current parsers reject them.
func withoutZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	head, bits, slash := strings.Cut(s, "/")
	start := strings.LastIndexByte(head, ':') + 1
	parts := strings.Split(head[start:], ".")
	for i, part := range parts {
		for len(part) > 1 && part[0] == '0' {
			part = part[1:]
		}
		parts[i] = part
	}
	s = head[:start] + strings.Join(parts, ".")
	if slash {
		s += "/" + bits
	}
	return s
}

func cidrHost(c call) (cty.Value, error) {
	network, err := prefix(c, 0)
	if err != nil {
		return cty.NilVal, err
	}
	number, err := whole(c, 1)
	if err != nil {
		return cty.NilVal, err
	}
	ip, err := cidr.HostBig(network, number)
	if err != nil {
		return cty.NilVal, function.NewArgErrorf(1, "%s", c.because(err))
	}
	return cty.StringVal(ip.String()), nil
}

// whole returns argument i of c, a whole number that may be the number of an address.
func whole(c call, i int) (*big.Int, error) {
	f := c.args[i].AsBigFloat()
	if f.IsInf() || f.MantExp(nil) > 8*net.IPv6len+1 {
		return nil, function.NewArgErrorf(i, "value is beyond the number of addresses that there are")
	}
	number, accuracy := f.Int(nil)
	if accuracy != big.Exact {
		return nil, function.NewArgErrorf(i, "value must be a whole number")
	}
	return number, nil
}

func cidrNetmask(c call) (cty.Value, error) {
	network, err := prefix(c, 0)
	if err != nil {
		return cty.NilVal, err
	}
	if network.IP.To4() == nil || len(network.Mask) != net.IPv4len {
		return cty.NilVal, function.NewArgErrorf(0, "IPv6 addresses cannot have a netmask: %s", c.bare(0))
	}
	return cty.StringVal(net.IP(network.Mask).String()), nil
}

func cidrSubnet(c call) (cty.Value, error) {
	network, err := prefix(c, 0)
	if err != nil {
		return cty.NilVal, err
	}
	var bits int
	if err := gocty.FromCtyValue(c.args[1], &bits); err != nil {
		return cty.NilVal, function.NewArgError(1, err)
	}
	number, err := whole(c, 2)
	if err != nil {
		return cty.NilVal, err
	}
	if length, _ := network.Mask.Size(); length+bits < 0 {
		return cty.NilVal, function.NewArgErrorf(1, "a prefix of %d bits cannot be shortened by %d", length, -bits)
	}
	subnet, err := cidr.SubnetBig(network, bits, number)
	if err != nil {
		return cty.NilVal, errors.New(c.because(err))
	}
	return cty.StringVal(subnet.String()), nil
}

func cidrSubnetsFunc() function.Function {
	rest := param("newbits", cty.Number)
	return function.New(&function.Spec{
		Description:  "Returns consecutive subnets of a prefix, one for each number of bits to extend it by.",
		Params:       stringParams("prefix"),
		VarParam:     &rest,
		Type:         function.StaticReturnType(cty.List(cty.String)),
		RefineResult: notNull,
		Impl:         quoting(cidrSubnets),
	})
}

func cidrSubnets(c call) (cty.Value, error) {
	network, err := prefix(c, 0)
	if err != nil {
		return cty.NilVal, err
	}
	if len(c.args) == 1 {
		return cty.ListValEmpty(cty.String), nil
	}
	length, _ := network.Mask.Size()
	subnets := make([]cty.Value, 0, len(c.args)-1)
	var last *net.IPNet
	for i := 1; i < len(c.args); i++ {
		bits, err := subnetBits(c, i, network)
		if err != nil {
			return cty.NilVal, err
		}
		if last == nil {
			// The subnet before the first of that size, so that the next is the first.
			last, err = cidr.Subnet(network, bits, 0)
			if err != nil {
				return cty.NilVal, function.NewArgErrorf(i, "%s", c.because(err))
			}
		} else {
			next, over := cidr.NextSubnet(last, length+bits)
			if over || !network.Contains(next.IP) {
				return cty.NilVal, function.NewArgErrorf(i, "not enough remaining address space for a subnet with a prefix of %d bits after %s", length+bits, lastText(c, last))
			}
			last = next
		}
		subnets = append(subnets, cty.StringVal(last.String()))
	}
	return cty.ListVal(subnets), nil
}

func lastText(c call, last *net.IPNet) string {
	if c.any() {
		return "the one before"
	}
	return last.String()
}

// subnetBits returns argument i of c, the additional bits of one subnet of network.
func subnetBits(c call, i int, network *net.IPNet) (int, error) {
	var bits int
	if err := gocty.FromCtyValue(c.args[i], &bits); err != nil {
		return 0, function.NewArgError(i, err)
	}
	length, all := network.Mask.Size()
	kind := "IPv4"
	if all == 128 {
		kind = "IPv6"
	}
	switch {
	case bits < 1:
		return 0, function.NewArgErrorf(i, "must extend prefix by at least one bit")
	case bits > all-length:
		return 0, function.NewArgErrorf(i, "would extend prefix to %d bits, which is too long for an %s address", uint64(length)+uint64(bits), kind)
	}
	return bits, nil
}

func cidrContains(c call) (cty.Value, error) {
	_, outer, err := net.ParseCIDR(withoutZeros(c.text(0)))
	if err != nil {
		return cty.NilVal, function.NewArgErrorf(0, "invalid CIDR address: %s", c.bare(0))
	}
	first := net.ParseIP(withoutZeros(c.text(1)))
	last := first
	if first == nil {
		_, inner, err := net.ParseCIDR(withoutZeros(c.text(1)))
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(1, "invalid IP address or prefix: %s", c.bare(1))
		}
		first, last = cidr.AddressRange(inner)
	}
	if (first.To4() == nil) != (outer.IP.To4() == nil) {
		return cty.NilVal, fmt.Errorf("address family mismatch: %s vs. %s", c.bare(0), c.bare(1))
	}
	return cty.BoolVal(outer.Contains(first) && outer.Contains(last)), nil
}
