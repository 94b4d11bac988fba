// SPDX-License-Identifier: Apache-2.0

// Package addresses decides which addresses and ports a cluster uses, so that
// several clusters on one machine do not meet.
package addresses

import (
	"fmt"
	"net/netip"
	"slices"
)

// How many nodes a Plan has room for.
const (
	MaxRealNodes      = 64
	MaxSimulatedNodes = 31 * 250
)

// A Plan is one /16 of the private range, cut up the same way for every
// cluster:
//
//	10.X.0.0/24    the machines: the host is .1, real node N is .(10+N)
//	10.X.1.0 on    the addresses that simulated nodes say they have
//	10.X.32.0/19   services
//	10.X.64.0/18   pods on simulated nodes
//	10.X.128.0/17  pods on real nodes, 10.X.(128+N).0/24 on node N
//
// Pods of real nodes have a prefix of their own, without the machines: that is
// how kube-proxy knows that the host is not a pod and hides its address, which
// is what lets the host use services.
type Plan struct {
	Octet uint8 `json:"octet"`
}

func (p Plan) prefix(third uint8, bits int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, p.Octet, third, 0}), bits)
}

func (p Plan) address(third, fourth uint8) netip.Addr {
	return netip.AddrFrom4([4]byte{10, p.Octet, third, fourth})
}

// All is everything the plan may use.
func (p Plan) All() netip.Prefix { return p.prefix(0, 16) }

// Machines is the network between the host and the real nodes.
func (p Plan) Machines() netip.Prefix { return p.prefix(0, 24) }

// Host is the address of the host in Machines.
func (p Plan) Host() netip.Addr { return p.address(0, 1) }

// Node is the address of real node n, counted from 1.
func (p Plan) Node(n int) netip.Addr { return p.address(0, uint8(10+n)) }

// SimulatedNode is the address of simulated node n, counted from 1. Nothing
// answers there; nodes must differ, because some programs key on the address.
func (p Plan) SimulatedNode(n int) netip.Addr {
	return p.address(uint8(1+(n-1)/250), uint8(1+(n-1)%250))
}

// Services is the service range.
func (p Plan) Services() netip.Prefix { return p.prefix(32, 19) }

// FirstService is the address of the kubernetes Service.
func (p Plan) FirstService() netip.Addr { return p.address(32, 1) }

// SimulatedPods is the range of pods on simulated nodes.
func (p Plan) SimulatedPods() netip.Prefix { return p.prefix(64, 18) }

// RealPods is the range of pods on real nodes.
func (p Plan) RealPods() netip.Prefix { return p.prefix(128, 17) }

// NodePods is the range of pods on real node n, counted from 1.
func (p Plan) NodePods(n int) netip.Prefix { return p.prefix(uint8(128+n), 24) }

// Choose returns a plan that overlaps none of the prefixes in use.
func Choose(inUse []netip.Prefix) (Plan, error) {
	// From 88 on: the low numbers are where container engines and VPNs settle.
	for octet := 88; octet < 256; octet++ {
		plan := Plan{Octet: uint8(octet)}
		if !slices.ContainsFunc(inUse, func(used netip.Prefix) bool { return plan.All().Overlaps(used) }) {
			return plan, nil
		}
	}
	return Plan{}, fmt.Errorf("no free network among 10.88.0.0/16 to 10.255.0.0/16")
}
