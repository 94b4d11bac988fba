// SPDX-License-Identifier: Apache-2.0

package cri

import "path/filepath"

// CandidateEndpoints returns the endpoints where a runtime may listen, in the order in which they are
// tried. dir is the directory with the sockets of the host. If socket is set, which is relative to
// dir, only that one is tried.
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
