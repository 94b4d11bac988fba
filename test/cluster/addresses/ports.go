// SPDX-License-Identifier: Apache-2.0

package addresses

import (
	"fmt"
	"net"
	"slices"
	"strconv"
)

// Ports are taken from below the range that the kernel hands to outgoing
// connections: one of those may otherwise take a port between its choice and
// its use.
const (
	firstPort = 20000
	lastPort  = 29999
)

// Ports returns count ports that nothing on this machine listens on and that
// are not in taken.
func Ports(count int, taken []int) ([]int, error) {
	var ports []int
	for port := firstPort; port <= lastPort && len(ports) < count; port++ {
		if !slices.Contains(taken, port) && free(port) {
			ports = append(ports, port)
		}
	}
	if len(ports) < count {
		return nil, fmt.Errorf("fewer than %d free ports between %d and %d", count, firstPort, lastPort)
	}
	return ports, nil
}

func free(port int) bool {
	// Any address: programs of a cluster listen on loopback and on a bridge.
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}
