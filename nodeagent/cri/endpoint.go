// SPDX-License-Identifier: Apache-2.0

package cri

import "path/filepath"

// CandidateEndpoints are where a runtime may listen, in the order in which they are tried. dir
// is the directory with the sockets of the host. With a socket named, which is relative
// to dir, no other one is tried.
func CandidateEndpoints(dir, socket string) []string {
	names := socketNames()
	if socket != "" {
		names = []string{socket}
	}
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = endpointPath(dir, filepath.FromSlash(name))
	}
	return out
}
