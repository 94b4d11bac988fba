// SPDX-License-Identifier: Apache-2.0

// Package critest serves a fake container runtime, by CRI v1 over a real socket, for tests.
package critest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Runtime is the server. Tests set its containers and images.
type Runtime struct {
	runtimev1.UnimplementedRuntimeServiceServer
	runtimev1.UnimplementedImageServiceServer

	// Socket is the path of the socket.
	Socket string
	// Name is the name of the runtime.
	Name string
	// NoImages omits the image service, and NoInfo the verbose part of the status of containers.
	NoImages, NoInfo bool

	mu         sync.Mutex
	server     *grpc.Server
	containers []*runtimev1.Container
	env        map[string][]string // by the ID of the container
	addresses  map[string]string
	images     []*runtimev1.Image
	calls      []string
	next       int

	// BeforeStop, OnExec and OnPull answer in place of success if they are set.
	BeforeStop func(id string, grace int64) error
	OnExec     func(id string, command []string) (*runtimev1.ExecSyncResponse, error)
	OnPull     func(ctx context.Context, request *runtimev1.PullImageRequest) error
}

// New makes a Runtime that does not listen yet.
func New(t testing.TB, name string) *Runtime {
	t.Helper()
	r := &Runtime{Socket: filepath.Join(t.TempDir(), "cri.sock"), Name: name, addresses: map[string]string{}, env: map[string][]string{}}
	t.Cleanup(r.StopServer)
	return r
}

// Start makes a Runtime that listens.
func Start(t testing.TB, name string) *Runtime {
	t.Helper()
	r := New(t, name)
	r.StartServer(t)
	return r
}

// StartServer starts the server, also again after Stop.
func (r *Runtime) StartServer(t testing.TB) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", r.Socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimev1.RegisterRuntimeServiceServer(server, r)
	if !r.NoImages {
		runtimev1.RegisterImageServiceServer(server, r)
	}
	r.mu.Lock()
	r.server = server
	r.mu.Unlock()
	go func() { _ = server.Serve(listener) }() // it ends with Stop
}

// StopServer ends the server and its calls.
func (r *Runtime) StopServer() {
	r.mu.Lock()
	server := r.server
	r.server = nil
	r.mu.Unlock()
	if server != nil {
		server.Stop()
	}
}

// RecordedCalls returns the calls so far that changed something, a line each.
func (r *Runtime) RecordedCalls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.calls...)
}

func (r *Runtime) recordCall(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

// StartRun starts a new run of a container and returns its ID as in the status of pods.
func (r *Runtime) StartRun(podUID, name string) string { return r.RunAs(podUID, name, 0) }

// RunAs is StartRun with the kubelet's hash of the container, and its env as NAME=value.
func (r *Runtime) RunAs(podUID, name string, hash uint64, env ...string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	attempt := uint32(0)
	for _, c := range r.containers {
		if c.Labels["io.kubernetes.pod.uid"] == podUID && c.Metadata.Name == name {
			attempt = c.Metadata.Attempt + 1
		}
	}
	r.next++
	id := fmt.Sprintf("c%d", r.next)
	r.containers = append(r.containers, &runtimev1.Container{
		Id: id, PodSandboxId: "sandbox-" + podUID, State: runtimev1.ContainerState_CONTAINER_RUNNING, CreatedAt: time.Now().UnixNano(),
		Metadata: &runtimev1.ContainerMetadata{Name: name, Attempt: attempt},
		Labels:   map[string]string{"io.kubernetes.pod.uid": podUID, "io.kubernetes.container.name": name},

		Annotations: map[string]string{"io.kubernetes.container.hash": strconv.FormatUint(hash, 16)},
	})
	r.env[id] = env
	return r.Name + "://" + id
}

// ExitContainer ends the runs of a container.
func (r *Runtime) ExitContainer(podUID, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.Labels["io.kubernetes.pod.uid"] == podUID && c.Metadata.Name == name {
			c.State = runtimev1.ContainerState_CONTAINER_EXITED
		}
	}
}

// RemovePod removes a pod with its containers.
func (r *Runtime) RemovePod(podUID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var rest []*runtimev1.Container
	for _, c := range r.containers {
		if c.Labels["io.kubernetes.pod.uid"] != podUID {
			rest = append(rest, c)
		}
	}
	r.containers = rest
}

// SetAddress sets the IP of a pod.
func (r *Runtime) SetAddress(podUID, ip string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addresses["sandbox-"+podUID] = ip
}

// Version implements CRI.
func (r *Runtime) Version(context.Context, *runtimev1.VersionRequest) (*runtimev1.VersionResponse, error) {
	return &runtimev1.VersionResponse{Version: "0.1.0", RuntimeName: r.Name, RuntimeVersion: "1.6.20", RuntimeApiVersion: "v1"}, nil
}

// ListContainers implements CRI.
func (r *Runtime) ListContainers(_ context.Context, q *runtimev1.ListContainersRequest) (*runtimev1.ListContainersResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &runtimev1.ListContainersResponse{}
	for _, c := range r.containers {
		if c.Labels["io.kubernetes.pod.uid"] == q.GetFilter().GetLabelSelector()["io.kubernetes.pod.uid"] {
			out.Containers = append(out.Containers, c)
		}
	}
	return out, nil
}

// ContainerStatus implements CRI. A run starts when it is made. The verbose part is like
// that of containerd and CRI-O.
func (r *Runtime) ContainerStatus(_ context.Context, q *runtimev1.ContainerStatusRequest) (*runtimev1.ContainerStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.Id == q.GetContainerId() {
			out := &runtimev1.ContainerStatusResponse{Status: &runtimev1.ContainerStatus{Id: c.Id, State: c.State, StartedAt: c.CreatedAt}}
			if q.GetVerbose() && !r.NoInfo {
				info, err := json.Marshal(map[string]any{"runtimeSpec": map[string]any{"process": map[string]any{"env": r.env[c.Id]}}})
				if err != nil {
					return nil, err
				}
				out.Info = map[string]string{"info": string(info)}
			}
			return out, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "container %s not found", q.GetContainerId())
}

// PodSandboxStatus implements CRI.
func (r *Runtime) PodSandboxStatus(_ context.Context, q *runtimev1.PodSandboxStatusRequest) (*runtimev1.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &runtimev1.PodSandboxStatusResponse{Status: &runtimev1.PodSandboxStatus{
		Id: q.GetPodSandboxId(), Network: &runtimev1.PodSandboxNetworkStatus{Ip: r.addresses[q.GetPodSandboxId()]},
	}}, nil
}

// StopContainer implements CRI.
func (r *Runtime) StopContainer(_ context.Context, q *runtimev1.StopContainerRequest) (*runtimev1.StopContainerResponse, error) {
	r.recordCall("stop %s %d", q.GetContainerId(), q.GetTimeout())
	if r.BeforeStop != nil {
		if err := r.BeforeStop(q.GetContainerId(), q.GetTimeout()); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.Id == q.GetContainerId() {
			c.State = runtimev1.ContainerState_CONTAINER_EXITED
			return &runtimev1.StopContainerResponse{}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "container %s not found", q.GetContainerId())
}

// ExecSync implements CRI.
func (r *Runtime) ExecSync(_ context.Context, q *runtimev1.ExecSyncRequest) (*runtimev1.ExecSyncResponse, error) {
	r.recordCall("exec %s %v", q.GetContainerId(), q.GetCmd())
	if r.OnExec != nil {
		return r.OnExec(q.GetContainerId(), q.GetCmd())
	}
	return &runtimev1.ExecSyncResponse{}, nil
}
