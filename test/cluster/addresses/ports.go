// SPDX-License-Identifier: Apache-2.0

package addresses

import (
	"fmt"
	"math/rand/v2"
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
	// firstAny is the first of AnyPorts: a cluster takes the lowest that are free, and keeps
	// those that it does not listen on for a while.
	firstAny = 25000
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
	return enough(ports, count)
}

// AnyPorts returns count different ports that nothing on this machine listens on, from all over
// the upper half of the range: programs that look for ports at the same time hardly find the same.
func AnyPorts(count int) ([]int, error) {
	var ports []int
	for _, i := range rand.Perm(lastPort - firstAny + 1) {
		if len(ports) == count {
			break
		}
		if free(firstAny + i) {
			ports = append(ports, firstAny+i)
		}
	}
	return enough(ports, count)
}

func enough(ports []int, count int) ([]int, error) {
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
