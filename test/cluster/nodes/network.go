// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/regatta-sh/regatta/test/cluster/state"
)

// bridge is the name of the host's bridge. Interface names have 15 characters
// at most.
func bridge(id string) string { return "rg" + id }

// CreateNetwork makes the bridge, and for each real node a network namespace
// that is plugged into it.
func CreateNetwork(ctx context.Context, s *state.State) error {
	name := bridge(s.ID())
	host := []string{
		fmt.Sprintf("link add %s type bridge", name),
		fmt.Sprintf("addr add %s/24 dev %s", s.Plan.Host(), name),
		fmt.Sprintf("link set %s up", name),
	}
	if err := ip(ctx, "", host); err != nil {
		return fmt.Errorf("making the bridge: %w", err)
	}
	for number := 1; number <= s.Real; number++ {
		if err := newNode(s, number).plugIn(ctx); err != nil {
			return fmt.Errorf("connecting %s: %w", state.RealNode(number), err)
		}
	}
	// The host does not translate the addresses of services. It sends such packets to node 1, which does.
	return ip(ctx, "", []string{fmt.Sprintf("route add %s via %s dev %s", s.Plan.Services(), s.Plan.Node(1), name)})
}

func (n node) plugIn(ctx context.Context) error {
	name := bridge(n.ID())
	port := fmt.Sprintf("%s-%d", name, n.number)
	if err := ip(ctx, "", []string{"netns add " + n.network()}); err != nil {
		return err
	}
	err := ip(ctx, "", []string{
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", port, n.network()),
		fmt.Sprintf("link set %s master %s up", port, name),
		fmt.Sprintf("route add %s via %s dev %s", n.Plan.NodePods(n.number), n.Plan.Node(n.number), name),
	})
	if err != nil {
		return err
	}
	return ip(ctx, n.network(), n.inside())
}

// inside lists the commands that set up the network within the node. There is
// no default route: what is addressed to neither a pod nor a service nor a
// machine of this cluster does not leave it.
func (n node) inside() []string {
	commands := []string{
		"link set lo up",
		fmt.Sprintf("addr add %s/24 dev eth0", n.Plan.Node(n.number)),
		"link set eth0 up",
		// Services must have a route to be sent to at all, before kube-proxy
		// turns them into pods. An address on this empty bridge would become
		// the source address, and replies would not come back.
		"link add services type bridge",
		"link set services up",
		fmt.Sprintf("route add %s dev services src %s", n.Plan.Services(), n.Plan.Node(n.number)),
	}
	for other := 1; other <= n.Real; other++ {
		if other != n.number {
			commands = append(commands, fmt.Sprintf("route add %s via %s dev eth0", n.Plan.NodePods(other), n.Plan.Node(other)))
		}
	}
	return commands
}

// ip runs commands of iproute2 as one batch, in a network namespace if one is
// named.
func ip(ctx context.Context, namespace string, commands []string) error {
	args := []string{"-batch", "-"}
	if namespace != "" {
		args = append([]string{"-n", namespace}, args...)
	}
	command := exec.CommandContext(ctx, "ip", args...)
	command.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("running ip: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}
