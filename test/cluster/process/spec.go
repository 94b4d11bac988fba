// SPDX-License-Identifier: Apache-2.0

// Package process starts the programs of a cluster so that they outlive the
// command that started them, and finds them again whatever happened since.
//
// A process is not known by its number: numbers are reused, and the command that
// kept the list may have been killed before writing it. Every process carries two
// environment variables instead, which its children inherit, so that all that
// belongs to a cluster can be read from /proc.
package process

const (
	clusterVariable = "REGATTA_CLUSTER_DIR"
	nameVariable    = "REGATTA_PROCESS"
)

// A Spec is what is needed to start a process, and to start it again.
type Spec struct {
	Name string   `json:"name"`
	Path string   `json:"path"`
	Args []string `json:"args"`
	// Log takes what the process prints; it is appended to.
	Log string `json:"log"`
	// Machine, where set, makes the process the first one of a machine of its
	// own: new process and mount namespaces, inside the named network namespace.
	Machine string `json:"machine,omitempty"`
}

// Running is a process that was found.
type Running struct {
	PID        int
	Name       string // of the Spec it was started from, or whose descendant it is
	Executable string // the base name of its program
}
