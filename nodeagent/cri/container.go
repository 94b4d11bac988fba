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

// Labels that the kubelet sets on containers and sandboxes.
const (
	podUIDLabel        = "io.kubernetes.pod.uid"
	containerNameLabel = "io.kubernetes.container.name"
)

// hashAnnotation is the annotation in which the kubelet stores, in hexadecimal, the hash of the
// container spec that it started a container from.
const hashAnnotation = "io.kubernetes.container.hash"

// Container is one run of a container of a pod.
type Container struct {
	// Name of the container in its pod.
	Name string
	// ID as in the status of pods: with the name of the runtime.
	ID string
	// Sandbox is the pod's sandbox that the container runs in.
	Sandbox string
	// Restarts is the number of earlier runs.
	Restarts uint32
	// Running is false for a container that has not started yet or has ended; Exited is true for the
	// latter.
	Running, Exited bool
	// PlainHash is the kubelet's hash of the container spec that the container was started from; 0 if
	// there is none.
	PlainHash uint64
	// StartedAt is when the run began; zero until WithStartTime sets it.
	StartedAt time.Time

	id string
}

// PodContainers returns the latest runs of the containers of a pod, by name.
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

// plainHash reads a hash of the kubelet; 0 if it is invalid.
func plainHash(text string) uint64 {
	hash, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return 0
	}
	return hash
}

// WithStartTime returns the container with the time at which its run began.
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

// hasContainer reports whether the runtime has a container with an ID, which is without the name of the runtime.
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

// SandboxIP is the IP of a sandbox, empty if it uses the network of the node.
func (r *Runtime) SandboxIP(ctx context.Context, sandbox string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	said, err := r.runtimes.PodSandboxStatus(ctx, &runtimev1.PodSandboxStatusRequest{PodSandboxId: sandbox})
	if err != nil {
		return "", fmt.Errorf("asking for the address of sandbox %s: %w", sandbox, err)
	}
	return said.GetStatus().GetNetwork().GetIp(), nil
}

// StopContainer stops a container, with a grace after which it is killed. A container that is gone
// counts as stopped.
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

// ExecCommand runs a command in a container and returns its output. It fails if the command prints more than MostOutput.
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

// Ended is the result of a command.
type Ended struct {
	// Code is 0 if it succeeded.
	Code int32
	// Stdout and Stderr are what it printed.
	Stdout, Stderr []byte
}

// RunCommand runs a command in a container to its end, with any exit code. If the command prints more than MostOutput, its exit code
// is not known; see PrintedTooMuch.
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
