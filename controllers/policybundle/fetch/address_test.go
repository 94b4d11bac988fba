// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"net"
	"testing"
)

func TestAddressesInsideOfTheNetwork(t *testing.T) {
	for _, a := range []string{
		"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "0.1.2.3", "198.18.0.1", "224.0.0.1", "255.255.255.255",
		"[::]", "[::1]", "[fe80::1]", "[fe80::1%eth0]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[::ffff:10.0.0.1]", "[::10.0.0.1]", "[64:ff9b::a00:1]", "[2002:a00:1::]", "not an address",
	} {
		if err := publicDialControl("x")("tcp", a+":443", nil); !errors.As(err, &HostError{}) {
			t.Errorf("%s: %v", a, err)
		}
	}
	for _, a := range []string{"1.1.1.1", "140.82.121.4", "[2606:4700::1111]", "[::ffff:1.1.1.1]"} {
		if err := publicDialControl("x")("tcp", a+":443", nil); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
}

// TestANameThatLeadsInside connects as for a name that is allowed by its domain
// alone, and that has an address of this machine.
func TestANameThatLeadsInside(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		pattern string
		refused bool
	}{
		"by its domain": {"*.example.com", true},
		"by its name":   {"localhost:" + port, false},
	} {
		t.Run(name, func(t *testing.T) {
			hosts, err := ParseHosts([]string{tc.pattern})
			if err != nil {
				t.Fatal(err)
			}
			through, err := newTransport(&hosts, nil)
			if err != nil {
				t.Fatal(err)
			}
			c, err := through.DialContext(t.Context(), "tcp", "localhost:"+port)
			if err == nil {
				defer c.Close()
			}
			if refused := errors.As(err, &HostError{}); refused != tc.refused || !refused && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}
