// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
)

// Hosts are the hosts that requests may go to. The zero value allows none.
type Hosts struct{ patterns []pattern }

type pattern struct {
	// host is in lower case. It begins with a dot if the pattern is for the hosts below it.
	host string
	port string // "" for the port of the scheme
}

// ParseHosts reads patterns: registry.example.com, registry.example.com:5000 or
// *.example.com, which is every host below example.com at any depth. A pattern without a port is for
// the port of the scheme: 443, or 80 for plain HTTP.
func ParseHosts(patterns []string) (Hosts, error) {
	var out Hosts
	for _, text := range patterns {
		p, err := parsePattern(text)
		if err != nil {
			return Hosts{}, fmt.Errorf("reading the host %q: %w", text, err)
		}
		out.patterns = append(out.patterns, p)
	}
	return out, nil
}

func parsePattern(text string) (pattern, error) {
	host, port := text, ""
	if addr, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return pattern{host: addr.Unmap().String()}, nil
	}
	if strings.Contains(text, ":") {
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return pattern{}, fmt.Errorf("it must be HOST, HOST:PORT or *.DOMAIN")
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return pattern{}, fmt.Errorf("the port must be a number from 1 to 65535")
		}
	}
	host = canonicalHost(host)
	if below, ok := strings.CutPrefix(host, "*."); ok {
		host = "." + below
	}
	if strings.Trim(host, ".") == "" || strings.ContainsAny(host, "*/@ ") {
		return pattern{}, fmt.Errorf("it must be HOST, HOST:PORT or *.DOMAIN")
	}
	return pattern{host, port}, nil
}

// canonicalHost is the form in which hosts are compared.
func canonicalHost(host string) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// allowsHost reports whether requests may go to a host at a port, and whether the host is listed
// itself and not only by its domain.
func (h Hosts) allowsHost(host, port, scheme string) (allowed, named bool) {
	host = canonicalHost(host)
	usual := map[string]string{"https": "443", "http": "80"}[scheme]
	if port == "" {
		port = usual
	}
	for _, p := range h.patterns {
		if wanted := p.port; wanted != port && (wanted != "" || port != usual) {
			continue
		}
		if strings.HasPrefix(p.host, ".") {
			_, err := netip.ParseAddr(host) // is in no domain
			allowed = allowed || err != nil && strings.HasSuffix(host, p.host)
			continue
		}
		named = named || host == p.host
	}
	return allowed || named, named
}

// publicDialControl refuses connections to addresses that are not public. The dialer calls it for each
// address just before it connects, so a name that changes its address after a check gains nothing.
func publicDialControl(host string) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !isPublic(at.Addr()) {
			return HostError{host, "has an address inside of the network, and only a host that is listed by its own name may: ask an administrator of Regatta"}
		}
		return nil
	}
}

func isPublic(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range reservedPrefixes() {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// reservedPrefixes are the blocks that IANA's registries of special-purpose addresses do not list as
// globally reachable, besides those that net/netip knows, and blocks whose addresses embed an IPv4
// address, through which reserved addresses could be reached.
func reservedPrefixes() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),
		netip.MustParsePrefix("100.64.0.0/10"), // shared by carriers, and by some clusters
		netip.MustParsePrefix("192.0.0.0/24"),
		netip.MustParsePrefix("192.0.2.0/24"),
		netip.MustParsePrefix("198.18.0.0/15"),
		netip.MustParsePrefix("198.51.100.0/24"),
		netip.MustParsePrefix("203.0.113.0/24"),
		netip.MustParsePrefix("240.0.0.0/4"),
		netip.MustParsePrefix("::/96"),        // IPv4-compatible
		netip.MustParsePrefix("64:ff9b::/96"), // NAT64
		netip.MustParsePrefix("64:ff9b:1::/48"),
		netip.MustParsePrefix("100::/64"),
		netip.MustParsePrefix("2001::/23"), // Teredo among others
		netip.MustParsePrefix("2001:db8::/32"),
		netip.MustParsePrefix("2002::/16"), // 6to4
	}
}
