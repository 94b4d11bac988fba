// SPDX-License-Identifier: Apache-2.0

package addresses

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"testing"
)

func TestPartsOfAPlanDoNotOverlap(t *testing.T) {
	plan := Plan{Octet: 88}
	parts := map[string]netip.Prefix{
		"machines": plan.Machines(), "services": plan.Services(),
		"simulated pods": plan.SimulatedPods(), "real pods": plan.RealPods(),
	}
	for name, part := range parts {
		if !plan.All().Contains(part.Addr()) {
			t.Errorf("%s %s lie outside %s", name, part, plan.All())
		}
		if part != part.Masked() {
			t.Errorf("%s %s have bits behind the prefix", name, part)
		}
		for other, prefix := range parts {
			if name != other && part.Overlaps(prefix) {
				t.Errorf("%s %s and %s %s overlap", name, part, other, prefix)
			}
		}
		for _, number := range []int{1, MaxSimulatedNodes} {
			if part.Contains(plan.SimulatedNode(number)) {
				t.Errorf("the address of simulated node %d lies in %s", number, name)
			}
		}
	}
	for number := 1; number <= MaxRealNodes; number++ {
		if !plan.Machines().Contains(plan.Node(number)) || plan.Node(number) == plan.Host() {
			t.Errorf("node %d has the address %s", number, plan.Node(number))
		}
		pods := plan.NodePods(number)
		if !plan.RealPods().Contains(pods.Addr()) || pods != pods.Masked() {
			t.Errorf("node %d has the pods %s", number, pods)
		}
	}
}

func TestSimulatedNodesHaveAddressesOfTheirOwn(t *testing.T) {
	seen := map[netip.Addr]int{}
	for number := 1; number <= MaxSimulatedNodes; number++ {
		address := Plan{Octet: 1}.SimulatedNode(number)
		if other, ok := seen[address]; ok {
			t.Fatalf("nodes %d and %d both have %s", other, number, address)
		}
		seen[address] = number
	}
}

func TestChoose(t *testing.T) {
	tests := []struct {
		name string
		used []string
		want string
	}{
		{"an unused machine gets the first", nil, "10.88.0.0/16"},
		{"another cluster's network is passed over", []string{"10.88.0.0/16"}, "10.89.0.0/16"},
		{"so is one that is part of it", []string{"10.88.7.0/24", "10.89.0.1/32"}, "10.90.0.0/16"},
		{"and one that it is part of", []string{"10.64.0.0/10"}, "10.128.0.0/16"},
		{"other networks do not matter", []string{"192.168.0.0/16", "172.17.0.0/16"}, "10.88.0.0/16"},
		{"a machine whose routes take all has none", []string{"10.0.0.0/8"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var used []netip.Prefix
			for _, text := range test.used {
				used = append(used, netip.MustParsePrefix(text))
			}
			plan, err := Choose(used)
			if (err != nil) != (test.want == "") || (err == nil && plan.All().String() != test.want) {
				t.Errorf("got %s, %v; want %q", plan.All(), err, test.want)
			}
		})
	}
}

func TestParseRoutes(t *testing.T) {
	table := "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
		"eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
		"rg1\t0000580A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n" +
		"broken\n"
	routes := parseRoutes(table)
	if len(routes) != 1 || routes[0].String() != "10.88.0.0/24" {
		t.Errorf("got %v: want the bridge's network, and not the default route", routes)
	}
}

func TestPortsPassesOverWhatIsTaken(t *testing.T) {
	ports, err := Ports(3, []int{firstPort, firstPort + 1})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(ports[1]))
	if err != nil {
		t.Skipf("someone else took the port meanwhile: %v", err)
	}
	defer listener.Close()
	again, err := Ports(3, []int{firstPort, firstPort + 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range again {
		if port == ports[1] || port < firstPort+2 {
			t.Errorf("port %d is not free", port)
		}
	}
}

func TestAnyPortsAreDifferentAndFree(t *testing.T) {
	ports, err := AnyPorts(500)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range ports {
		if port < firstAny || port > lastPort || seen[port] {
			t.Errorf("port %d is out of the range, or there twice", port)
		}
		seen[port] = true
	}
	if _, err := AnyPorts(lastPort - firstAny + 2); err == nil {
		t.Error("there are more ports than the range has")
	}
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(ports[0]))
	if err != nil {
		t.Skipf("another process took the port meanwhile: %v", err)
	}
	defer listener.Close()
	for range 20 {
		again, err := AnyPorts(2500) // half of the range
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(again, ports[0]) {
			t.Errorf("port %d is not free", ports[0])
		}
	}
}
