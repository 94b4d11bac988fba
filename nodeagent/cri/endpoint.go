// SPDX-License-Identifier: Apache-2.0

package cri

import "path/filepath"

// Endpoints are where a runtime may listen, in the order in which they are tried. dir
// is the directory with the sockets of the host. With a socket named, which is relative
// to dir, no other one is tried.
func Endpoints(dir, socket string) []string {
	names := sockets()
	if socket != "" {
		names = []string{socket}
	}
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = at(dir, filepath.FromSlash(name))
	}
	return out
}
