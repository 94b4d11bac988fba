// SPDX-License-Identifier: Apache-2.0

// Package daemon runs the node agent of a real node beside the node, behind traps, so that it
// can be killed where it is of interest. The agent has the token that it would have in its pod.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/test/cluster/addresses"
	"github.com/regatta-sh/regatta/test/cluster/credentials"
	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/faults/trap"
)

const (
	namespace = "kruise-system"
	account   = "kruise-daemon"
	socket    = "/run/containerd/containerd.sock"
	// lifetime of the token is longer than any run.
	lifetime = 4 * 60 * 60
)

// Daemon is the agent of one node.
type Daemon struct {
	// Node is the name of the node.
	Node string
	// Trap is what its calls go through.
	Trap *trap.Trap

	cluster *local.Cluster
	spec    process.Spec
	runtime *trap.Runtime
	server  *trap.APIServer
	// Kills counts how often it was killed.
	Kills int
}

// New prepares the agent of a node, which must not run otherwise. It does not start it.
func New(ctx context.Context, cluster *local.Cluster, program, node string) (d *Daemon, err error) {
	d = &Daemon{Node: node, Trap: trap.New(), cluster: cluster}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	dir := cluster.State.Path("daemons", node)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return d, fmt.Errorf("making the folder of the agent of %s: %w", node, err)
	}
	proxy := filepath.Join(dir, "cri.sock")
	if d.runtime, err = trap.ServeRuntime(ctx, d.Trap, proxy, d.dial); err != nil {
		return d, err
	}
	config, err := cluster.RESTConfig("admin")
	if err != nil {
		return d, err
	}
	if d.server, err = trap.ServeAPIServer(d.Trap, config); err != nil {
		return d, err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	token, err := d.token(ctx)
	if err != nil {
		return d, err
	}
	if err := credentials.WriteKubeconfig(kubeconfig, credentials.Kubeconfig(cluster.State.Name, d.server.URL, d.server.Authority, credentials.User{Token: token})); err != nil {
		return d, err
	}
	ports, err := addresses.AnyPorts(1)
	if err != nil {
		return d, err
	}
	name := "kruise-daemon-" + node
	d.spec = process.Spec{
		Name: name, Path: "/usr/bin/env", Log: cluster.State.Log(name),
		Args: []string{
			"KUBECONFIG=" + kubeconfig, "NODE_NAME=" + node, "POD_NAMESPACE=" + namespace, program,
			"--addr=127.0.0.1:" + strconv.Itoa(ports[0]), "--enable-pprof=false", "--v=4",
			"--socket-file=" + filepath.Join("..", proxy), // from the folder of sockets, which is in the root
		},
	}
	return d, nil
}

// dial connects to the runtime of the node as it is now: its file system is another one after
// a restart of the node.
func (d *Daemon) dial(ctx context.Context) (net.Conn, error) {
	all, err := process.Find(d.cluster.State.Dir)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.Name == d.Node {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join("/proc", strconv.Itoa(p.PID), "root", socket))
		}
	}
	return nil, fmt.Errorf("connecting to the container runtime: %s does not run", d.Node)
}

// token is bound to the node, so that admission policies know whose it is.
func (d *Daemon) token(ctx context.Context) (string, error) {
	c, err := d.cluster.Client()
	if err != nil {
		return "", err
	}
	node, err := c.CoreV1().Nodes().Get(ctx, d.Node, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading node %s: %w", d.Node, err)
	}
	q := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To[int64](lifetime),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
	}}
	q, err = c.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, q, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of the agent of %s: %w", d.Node, err)
	}
	return q.Status.Token, nil
}

// Start starts it.
func (d *Daemon) Start() error {
	_, err := process.Start(d.cluster.State.Dir, d.spec)
	return err
}

// Kill ends it with SIGKILL in the middle of what it does, and returns when it is dead.
func (d *Daemon) Kill(ctx context.Context) error {
	d.Kills++
	return d.End(ctx)
}

// End ends it when it has nothing to do any more.
func (d *Daemon) End(ctx context.Context) error {
	return process.Kill(ctx, d.cluster.State.Dir, func(p process.Running) bool { return p.Name == d.spec.Name })
}

// Log is the file that it prints to.
func (d *Daemon) Log() string { return d.spec.Log }

// Close ends what its calls go through.
func (d *Daemon) Close() error {
	var wrong []error
	if d.runtime != nil {
		wrong = append(wrong, d.runtime.Close())
	}
	if d.server != nil {
		d.server.Close()
	}
	return errors.Join(wrong...)
}
