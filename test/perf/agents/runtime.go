// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// name is what the runtime calls itself: the scheme of the container IDs that KWOK writes.
const name = "containerd"

// container is one run of a container of a pod. Its kubelet is KWOK, so it runs from the moment the pod says so.
type container struct {
	pod      *corev1.Pod
	name, id string
	restarts int32
	started  time.Time
	exited   bool
}

// runtime answers by CRI v1 for all simulated nodes: their pods have different UIDs, so one is enough.
type runtime struct {
	runtimev1.UnimplementedRuntimeServiceServer
	runtimev1.UnimplementedImageServiceServer

	// pull is how long an image takes.
	pull time.Duration
	// stopped is called with a container that was stopped, once.
	stopped func(container)

	mu      sync.Mutex
	pods    map[string]map[string]*container // by UID of the pod and name
	byID    map[string]*container
	flap    float64         // the share of commands whose result is another one than the time before
	failing map[string]bool // by ID of the container and command
}

func newRuntime(pull time.Duration, stopped func(container)) *runtime {
	return &runtime{pull: pull, stopped: stopped, pods: map[string]map[string]*container{}, byID: map[string]*container{}, failing: map[string]bool{}}
}

// serve answers on a socket until ctx ends, and returns its path.
func (r *runtime) serve(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "regatta-agents-")
	if err != nil {
		return "", fmt.Errorf("making a folder for the socket of the runtime: %w", err)
	}
	path := filepath.Join(dir, "cri.sock")
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return "", fmt.Errorf("listening for the runtime: %w", err)
	}
	server := grpc.NewServer()
	runtimev1.RegisterRuntimeServiceServer(server, r)
	runtimev1.RegisterImageServiceServer(server, r)
	go func() { _ = server.Serve(listener) }() // it ends with Stop
	context.AfterFunc(ctx, func() {
		server.Stop()
		_ = os.RemoveAll(dir) // an empty folder for temporary files is no harm
	})
	return path, nil
}

// see takes what a pod says of its containers.
func (r *runtime) see(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		_, id, ok := strings.Cut(s.ContainerID, "://")
		if !ok || s.State.Running == nil {
			continue
		}
		if known := r.byID[id]; known != nil {
			known.pod = pod
			continue
		}
		c := &container{pod: pod, name: s.Name, id: id, restarts: s.RestartCount, started: s.State.Running.StartedAt.Time}
		r.forget(string(pod.UID), s.Name)
		if r.pods[string(pod.UID)] == nil {
			r.pods[string(pod.UID)] = map[string]*container{}
		}
		r.pods[string(pod.UID)][s.Name], r.byID[id] = c, c
	}
}

// lose forgets a pod.
func (r *runtime) lose(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.pods[string(pod.UID)] {
		r.forget(string(pod.UID), name)
	}
	delete(r.pods, string(pod.UID))
}

// forget removes a run. The caller holds the lock.
func (r *runtime) forget(uid, name string) {
	if old := r.pods[uid][name]; old != nil {
		delete(r.byID, old.id)
		delete(r.pods[uid], name)
	}
}

// Version implements CRI.
func (r *runtime) Version(context.Context, *runtimev1.VersionRequest) (*runtimev1.VersionResponse, error) {
	return &runtimev1.VersionResponse{Version: "0.1.0", RuntimeName: name, RuntimeVersion: "simulated", RuntimeApiVersion: "v1"}, nil
}

// ListContainers implements CRI, for one pod.
func (r *runtime) ListContainers(_ context.Context, q *runtimev1.ListContainersRequest) (*runtimev1.ListContainersResponse, error) {
	uid := q.GetFilter().GetLabelSelector()["io.kubernetes.pod.uid"]
	out := &runtimev1.ListContainersResponse{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.pods[uid] {
		state := runtimev1.ContainerState_CONTAINER_RUNNING
		if c.exited {
			state = runtimev1.ContainerState_CONTAINER_EXITED
		}
		out.Containers = append(out.Containers, &runtimev1.Container{
			Id: c.id, PodSandboxId: uid, State: state, CreatedAt: c.started.UnixNano(),
			Metadata: &runtimev1.ContainerMetadata{Name: c.name, Attempt: uint32(c.restarts)}, //nolint:gosec // the API has it not negative
			Labels:   map[string]string{"io.kubernetes.pod.uid": uid, "io.kubernetes.container.name": c.name},
		})
	}
	return out, nil
}

func (r *runtime) find(id string) (container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.byID[id]; c != nil {
		return *c, nil
	}
	return container{}, status.Errorf(codes.NotFound, "container %s not found", id)
}

// ContainerStatus implements CRI.
func (r *runtime) ContainerStatus(_ context.Context, q *runtimev1.ContainerStatusRequest) (*runtimev1.ContainerStatusResponse, error) {
	c, err := r.find(q.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &runtimev1.ContainerStatusResponse{Status: &runtimev1.ContainerStatus{Id: c.id, StartedAt: c.started.UnixNano()}}, nil
}

// StopContainer implements CRI. The container heeds the signal at once.
func (r *runtime) StopContainer(_ context.Context, q *runtimev1.StopContainerRequest) (*runtimev1.StopContainerResponse, error) {
	r.mu.Lock()
	c := r.byID[q.GetContainerId()]
	first := c != nil && !c.exited
	var copied container
	if first {
		c.exited = true
		copied = *c
	}
	r.mu.Unlock()
	if c == nil {
		return nil, status.Errorf(codes.NotFound, "container %s not found", q.GetContainerId())
	}
	if first {
		r.stopped(copied)
	}
	return &runtimev1.StopContainerResponse{}, nil
}

// ExecSync implements CRI. A command succeeds, or fails, until it flaps.
func (r *runtime) ExecSync(_ context.Context, q *runtimev1.ExecSyncRequest) (*runtimev1.ExecSyncResponse, error) {
	if _, err := r.find(q.GetContainerId()); err != nil {
		return nil, err
	}
	key := q.GetContainerId() + " " + strings.Join(q.GetCmd(), " ")
	r.mu.Lock()
	defer r.mu.Unlock()
	if rand.Float64() < r.flap { //nolint:gosec // a load is no secret
		r.failing[key] = !r.failing[key]
	}
	out := &runtimev1.ExecSyncResponse{}
	if r.failing[key] {
		out.ExitCode = 1
	}
	return out, nil
}

func (r *runtime) setFlap(share float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flap = share
}

// ImageFsInfo implements CRI.
func (r *runtime) ImageFsInfo(context.Context, *runtimev1.ImageFsInfoRequest) (*runtimev1.ImageFsInfoResponse, error) {
	return &runtimev1.ImageFsInfoResponse{}, nil
}

// ImageStatus implements CRI: no node has the image yet.
func (r *runtime) ImageStatus(context.Context, *runtimev1.ImageStatusRequest) (*runtimev1.ImageStatusResponse, error) {
	return &runtimev1.ImageStatusResponse{}, nil
}

// PullImage implements CRI.
func (r *runtime) PullImage(ctx context.Context, q *runtimev1.PullImageRequest) (*runtimev1.PullImageResponse, error) {
	t := time.NewTimer(r.pull)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	case <-t.C:
		return &runtimev1.PullImageResponse{ImageRef: "sha256:" + q.GetImage().GetImage()}, nil
	}
}
