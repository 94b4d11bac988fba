// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"fmt"
	"strconv"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/regatta-sh/regatta/nodeagent/message"
)

// Labels that the kubelet puts on containers and sandboxes.
const (
	podUIDLabel        = "io.kubernetes.pod.uid"
	containerNameLabel = "io.kubernetes.container.name"
)

// hashAnnotation is where the kubelet notes, in hexadecimal, the hash of the container
// of the pod's spec that it started a container by.
const hashAnnotation = "io.kubernetes.container.hash"

// Container is one run of a container of a pod.
type Container struct {
	// Name of the container in its pod.
	Name string
	// ID as pods have it: with the name of the runtime.
	ID string
	// Sandbox is the pod's sandbox that the container runs in.
	Sandbox string
	// Restarts is how many runs went before.
	Restarts uint32
	// Running is false of a container that has not started yet or has ended; Exited is
	// true of the latter.
	Running, Exited bool
	// PlainHash is the kubelet's hash of the container that it was started by; 0 if it
	// noted none.
	PlainHash uint64
	// StartedAt is when the run began; zero until Started was asked.
	StartedAt time.Time

	id string
}

// PodContainers are the latest runs of the containers of a pod, by name.
func (r *Runtime) PodContainers(ctx context.Context, podUID string) (map[string]Container, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	said, err := r.runtimes.ListContainers(ctx, &runtimev1.ListContainersRequest{Filter: &runtimev1.ContainerFilter{
		LabelSelector: map[string]string{podUIDLabel: podUID},
	}})
	if err != nil {
		return nil, fmt.Errorf("listing the containers of pod %s: %w", podUID, err)
	}
	out := map[string]Container{}
	created := map[string]int64{}
	for _, c := range said.GetContainers() {
		name := c.GetLabels()[containerNameLabel]
		if before, ok := out[name]; ok {
			attempt := c.GetMetadata().GetAttempt()
			if attempt < before.Restarts || attempt == before.Restarts && c.GetCreatedAt() <= created[name] {
				continue
			}
		}
		created[name] = c.GetCreatedAt()
		out[name] = Container{
			Name: name, id: c.GetId(), ID: r.Name + "://" + c.GetId(), Sandbox: c.GetPodSandboxId(), Restarts: c.GetMetadata().GetAttempt(),
			Running: c.GetState() == runtimev1.ContainerState_CONTAINER_RUNNING,
			Exited:  c.GetState() == runtimev1.ContainerState_CONTAINER_EXITED,

			PlainHash: plainHash(c.GetAnnotations()[hashAnnotation]),
		}
	}
	return out, nil
}

// plainHash reads a hash of the kubelet. One that cannot be read is none.
func plainHash(text string) uint64 {
	hash, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return 0
	}
	return hash
}

// WithStartTime is the container with the time that its run began at.
func (r *Runtime) WithStartTime(ctx context.Context, c Container) (Container, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	said, err := r.runtimes.ContainerStatus(ctx, &runtimev1.ContainerStatusRequest{ContainerId: c.id})
	if err != nil {
		return c, fmt.Errorf("asking for the status of container %s: %w", c.Name, err)
	}
	c.StartedAt = time.Unix(0, said.GetStatus().GetStartedAt())
	return c, nil
}

// hasContainer reports whether the runtime hasContainer a container, by its own ID.
func (r *Runtime) hasContainer(ctx context.Context, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := r.runtimes.ContainerStatus(ctx, &runtimev1.ContainerStatusRequest{ContainerId: id})
	switch {
	case notFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking %s for container %s: %w", r.Endpoint, id, err)
	}
	return true, nil
}

// SandboxIP is the IP of a sandbox, empty where it uses the network of the node.
func (r *Runtime) SandboxIP(ctx context.Context, sandbox string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	said, err := r.runtimes.PodSandboxStatus(ctx, &runtimev1.PodSandboxStatusRequest{PodSandboxId: sandbox})
	if err != nil {
		return "", fmt.Errorf("asking for the address of sandbox %s: %w", sandbox, err)
	}
	return said.GetStatus().GetNetwork().GetIp(), nil
}

// StopContainer stops a container, with a grace after which it is killed. A container that is
// gone is stopped.
func (r *Runtime) StopContainer(ctx context.Context, c Container, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace+callTimeout)
	defer cancel()
	seconds := int64((grace + time.Second - 1) / time.Second)
	_, err := r.runtimes.StopContainer(ctx, &runtimev1.StopContainerRequest{ContainerId: c.id, Timeout: seconds})
	if err != nil && !notFound(err) {
		return fmt.Errorf("stopping container %s: %w", c.Name, err)
	}
	return nil
}

// ExecCommand runs a command in a container and returns what it printed. It fails of a command that prints more than MostOutput.
func (r *Runtime) ExecCommand(ctx context.Context, c Container, command []string, timeout time.Duration) ([]byte, error) {
	ended, err := r.RunCommand(ctx, c, command, timeout)
	if err != nil {
		return nil, err
	}
	if ended.Code != 0 {
		return ended.Stdout, fmt.Errorf("running %s in container %s: it exited with %d: %s", message.QuoteCommand(command), c.Name, ended.Code, message.Truncate(string(ended.Stderr)))
	}
	return ended.Stdout, nil
}

// Ended is how a command ended.
type Ended struct {
	// Code is 0 if it succeeded.
	Code int32
	// Stdout and Stderr are what it printed.
	Stdout, Stderr []byte
}

// RunCommand runs a command in a container to its end, whatever that is. Of a command that prints more than MostOutput the end is not
// known; see PrintedTooMuch.
func (r *Runtime) RunCommand(ctx context.Context, c Container, command []string, timeout time.Duration) (Ended, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout+callTimeout)
	defer cancel()
	seconds := max(1, int64((timeout+time.Second-1)/time.Second)) // 0 is without a limit
	said, err := r.runtimes.ExecSync(ctx, &runtimev1.ExecSyncRequest{ContainerId: c.id, Cmd: command, Timeout: seconds})
	if err != nil {
		return Ended{}, fmt.Errorf("running %s in container %s: %w", message.QuoteCommand(command), c.Name, err)
	}
	return Ended{Code: said.GetExitCode(), Stdout: said.GetStdout(), Stderr: said.GetStderr()}, nil
}
