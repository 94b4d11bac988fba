// SPDX-License-Identifier: Apache-2.0

package addresses

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"strings"
)

// InUse lists the networks that this machine has an address in or a route to.
// Default routes do not count: they overlap everything.
func InUse() ([]netip.Prefix, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("listing addresses: %w", err)
	}
	var used []netip.Prefix
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil && prefix.Addr().Is4() {
			used = append(used, prefix.Masked())
		}
	}
	table, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return nil, fmt.Errorf("listing routes: %w", err)
	}
	return append(used, parseRoutes(string(table))...), nil
}

// parseRoutes reads /proc/net/route, whose addresses are little-endian
// hexadecimal numbers: no program needs to be installed for it.
func parseRoutes(table string) []netip.Prefix {
	var routes []netip.Prefix
	for _, line := range strings.Split(table, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 8 {
			continue
		}
		destination, err := hex.DecodeString(fields[1])
		if err != nil || len(destination) != 4 {
			continue
		}
		mask, err := hex.DecodeString(fields[7])
		if err != nil || len(mask) != 4 {
			continue
		}
		length := bits.OnesCount32(binary.LittleEndian.Uint32(mask))
		if length == 0 {
			continue
		}
		address := netip.AddrFrom4([4]byte{destination[3], destination[2], destination[1], destination[0]})
		routes = append(routes, netip.PrefixFrom(address, length).Masked())
	}
	return routes
}
