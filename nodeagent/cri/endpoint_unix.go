// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package cri

import (
	"context"
	"net"
	"path/filepath"
)

// SocketDirectory is where the host's directory of sockets is mounted.
const SocketDirectory = "/hostvarrun"

// socketNames has the sockets of the runtimes' own packages first, then that of K3s and RKE2.
func socketNames() []string {
	return []string{
		"containerd.sock", "containerd/containerd.sock",
		"crio.sock", "crio/crio.sock",
		"cri-dockerd.sock", "cri-dockerd/cri-dockerd.sock",
		"k3s/containerd/containerd.sock",
	}
}

func endpointPath(dir, name string) string { return filepath.Join(dir, name) }

func dialEndpoint(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", address)
}
