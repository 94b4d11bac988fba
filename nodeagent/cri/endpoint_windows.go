// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"net"
	"strings"

	"github.com/Microsoft/go-winio"
)

// SocketDirectory is where named pipes are.
const SocketDirectory = `\\.\pipe\`

func socketNames() []string { return []string{"containerd-containerd", "cri-dockerd"} }

// endpointPath accepts the full name of a pipe too.
func endpointPath(dir, name string) string {
	if strings.HasPrefix(name, dir) {
		return name
	}
	return dir + name
}

func dialEndpoint(ctx context.Context, address string) (net.Conn, error) {
	return winio.DialPipeContext(ctx, address)
}
