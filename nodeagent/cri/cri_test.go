// SPDX-License-Identifier: Apache-2.0

package cri_test

import (
	"errors"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/cri/critest"
)

func TestSocketsAreTriedInTheirOrder(t *testing.T) {
	got := cri.CandidateEndpoints("/hostvarrun", "")
	want := []string{
		"/hostvarrun/containerd.sock", "/hostvarrun/containerd/containerd.sock", "/hostvarrun/crio.sock", "/hostvarrun/crio/crio.sock",
		"/hostvarrun/cri-dockerd.sock", "/hostvarrun/cri-dockerd/cri-dockerd.sock", "/hostvarrun/k3s/containerd/containerd.sock",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if got := cri.CandidateEndpoints("/hostvarrun", "my/own.sock"); !slices.Equal(got, []string{"/hostvarrun/my/own.sock"}) {
		t.Errorf("a socket that is named: %v", got)
	}
}

func TestTheRuntimesOfANode(t *testing.T) {
	first, second := critest.Start(t, "containerd"), critest.Start(t, "cri-o")
	node := cri.NewNode(filepath.Join(t.TempDir(), "none.sock"), first.Socket, second.Socket)
	t.Cleanup(func() {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
	all, err := node.ListRuntimes(t.Context())
	if err != nil || len(all) != 2 || all[0].Name != "containerd" || all[0].Version != "1.6.20" || all[0].ImagesMissing != "" {
		t.Fatalf("got %v, %v", all, err)
	}
	if r, err := node.ContainerRuntime(t.Context(), "cri-o://x"); err != nil || r != all[1] {
		t.Errorf("the runtime of a container: %v, %v", r, err)
	}
	for id, want := range map[string]string{"docker://x": "no container runtime docker, only containerd, cri-o", "x": "names no runtime"} {
		if _, err := node.ContainerRuntime(t.Context(), id); err == nil || !strings.Contains(err.Error(), want) || cri.IsUnavailable(err) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestARuntimeThatComesLateIsFound(t *testing.T) {
	late := critest.New(t, "containerd")
	node := cri.NewNode(late.Socket)
	if _, err := node.ContainerRuntime(t.Context(), "containerd://x"); !cri.IsUnavailable(err) || !errors.As(err, new(cri.NoRuntimeError)) || !strings.Contains(err.Error(), late.Socket) {
		t.Fatalf("before it listens: %v", err)
	}
	late.StartServer(t)
	deadline := time.Now().Add(10 * time.Second)
	for {
		r, err := node.ContainerRuntime(t.Context(), "containerd://x")
		if err == nil && r.Name == "containerd" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after it listens: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestOfTwoRuntimesOfOneNameThatOfTheContainerIsFound(t *testing.T) {
	first, second := critest.Start(t, "containerd"), critest.Start(t, "containerd")
	first.StartRun("u1", "other")
	second.StartRun("u2", "other")
	id := second.StartRun("u2", "app") // which has an ID that the first does not have
	node := cri.NewNode(first.Socket, second.Socket)
	t.Cleanup(func() { _ = node.Close() })
	if r, err := node.ContainerRuntime(t.Context(), id); err != nil || r.Endpoint != second.Socket {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err := node.ContainerRuntime(t.Context(), "containerd://gone"); err != nil || r.Endpoint != first.Socket {
		t.Errorf("a container that is gone: %+v, %v", r, err)
	}
	second.StopServer()
	if r, err := node.ContainerRuntime(t.Context(), id); err != nil || r.Endpoint != second.Socket {
		t.Errorf("while its runtime restarts: %+v, %v", r, err)
	}
}

func TestASecondRuntimeThatComesLateIsFound(t *testing.T) {
	for name, kind := range map[string]string{"of another name": "cri-o", "of the same name": "containerd"} {
		t.Run(name, func(t *testing.T) {
			first, late := critest.Start(t, "containerd"), critest.New(t, kind)
			node := cri.NewNode(late.Socket, first.Socket)
			t.Cleanup(func() { _ = node.Close() })
			if all, err := node.ListRuntimes(t.Context()); err != nil || len(all) != 1 {
				t.Fatalf("before it listens: %v, %v", all, err)
			}
			late.StartServer(t)
			id := late.StartRun("u1", "app")
			deadline := time.Now().Add(10 * time.Second)
			for {
				r, err := node.ContainerRuntime(t.Context(), id)
				if err == nil && r.Endpoint == late.Socket {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("after it listens: %+v, %v", r, err)
				}
				time.Sleep(50 * time.Millisecond)
			}
			if all, err := node.ListRuntimes(t.Context()); err != nil || len(all) != 2 || all[0].Endpoint != late.Socket {
				t.Errorf("got %v, %v", all, err)
			}
		})
	}
}

func TestARuntimeWithoutImagesSaysSo(t *testing.T) {
	r := critest.New(t, "containerd")
	r.NoImages = true
	r.StartServer(t)
	got := connect(t, r)
	if !strings.Contains(got.ImagesMissing, "serves no images by CRI v1") {
		t.Errorf("got %q", got.ImagesMissing)
	}
}

func TestContainersAreTheirLatestRuns(t *testing.T) {
	server := critest.Start(t, "containerd")
	server.StartRun("u1", "app")
	server.ExitContainer("u1", "app")
	newest := server.StartRun("u1", "app")
	server.StartRun("u1", "side")
	server.ExitContainer("u1", "side")
	server.StartRun("u2", "app")
	got, err := connect(t, server).PodContainers(t.Context(), "u1")
	if err != nil || len(got) != 2 {
		t.Fatalf("got %v, %v", got, err)
	}
	if app := got["app"]; app.ID != newest || app.Restarts != 1 || !app.Running || app.Exited {
		t.Errorf("app: %+v", app)
	}
	if side := got["side"]; side.Running || !side.Exited {
		t.Errorf("side: %+v", side)
	}
}

func TestAContainerIsStoppedWithItsGrace(t *testing.T) {
	server := critest.Start(t, "containerd")
	server.StartRun("u1", "app")
	r := connect(t, server)
	containers, err := r.PodContainers(t.Context(), "u1")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.StopContainer(t.Context(), containers["app"], 2500*time.Millisecond); err != nil {
		t.Error(err)
	}
	server.RemovePod("u1")
	if err := r.StopContainer(t.Context(), containers["app"], time.Second); err != nil {
		t.Errorf("a container that is gone: %v", err)
	}
	if got := server.RecordedCalls(); !slices.Equal(got, []string{"stop c1 3", "stop c1 1"}) {
		t.Errorf("got %q", got)
	}
	server.BeforeStop = func(string, int64) error { return status.Error(codes.Internal, "it hangs") }
	if err := r.StopContainer(t.Context(), containers["app"], 0); err == nil || !strings.Contains(err.Error(), "stopping container app: ") || cri.IsUnavailable(err) {
		t.Errorf("a stop that fails: %v", err)
	}
}

func TestACommandInAContainer(t *testing.T) {
	server := critest.Start(t, "containerd")
	server.StartRun("u1", "app")
	r := connect(t, server)
	containers, err := r.PodContainers(t.Context(), "u1")
	if err != nil {
		t.Fatal(err)
	}
	server.OnExec = func(string, []string) (*runtimev1.ExecSyncResponse, error) {
		return &runtimev1.ExecSyncResponse{Stdout: []byte("out"), Stderr: []byte("wrong"), ExitCode: 3}, nil
	}
	out, err := r.ExecCommand(t.Context(), containers["app"], []string{"sync"}, time.Second)
	if string(out) != "out" || err == nil || !strings.Contains(err.Error(), "it exited with 3: wrong") {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestTheHashOfAContainerIsTheKubelets(t *testing.T) {
	server := critest.Start(t, "containerd")
	server.RunAs("u1", "app", 3756620215)
	server.StartRun("u1", "side")
	got, err := connect(t, server).PodContainers(t.Context(), "u1")
	if err != nil || got["app"].PlainHash != 3756620215 || got["side"].PlainHash != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

// The env of a container is what the runtime says, else what the command env prints in it.
func TestTheEnvOfAContainer(t *testing.T) {
	want := map[string]string{"PATH": "/bin", "COLOR": "blue", "TEXT": "one\ntwo words = 2", "NONE": ""}
	for name, silent := range map[string]bool{"by the runtime": false, "by the command": true} {
		t.Run(name, func(t *testing.T) {
			server := critest.Start(t, "containerd")
			server.NoInfo = silent
			server.OnExec = func(string, []string) (*runtimev1.ExecSyncResponse, error) {
				return &runtimev1.ExecSyncResponse{Stdout: []byte("COLOR=red\nPATH=/bin\nTEXT=one\ntwo words = 2\nNONE=\nCOLOR=blue\n")}, nil
			}
			server.RunAs("u1", "app", 0, "COLOR=red", "PATH=/bin", "TEXT=one\ntwo words = 2", "NONE=", "COLOR=blue")
			r := connect(t, server)
			containers, err := r.PodContainers(t.Context(), "u1")
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.ContainerEnv(t.Context(), containers["app"])
			if err != nil || !maps.Equal(got, want) {
				t.Errorf("got %q, %v", got, err)
			}
			if ran := len(server.RecordedCalls()) > 0; ran != silent {
				t.Errorf("a command was run: %t", ran)
			}
			server.RemovePod("u1")
			if _, err := r.ContainerEnv(t.Context(), containers["app"]); !cri.IsGone(err) || !strings.Contains(err.Error(), "asking for the env of container app") {
				t.Errorf("a container that is gone: %v", err)
			}
		})
	}
}

// A connection that was lost is made again by the call that needs it.
func TestARuntimeThatRestarts(t *testing.T) {
	server := critest.Start(t, "containerd")
	server.StartRun("u1", "app")
	r := connect(t, server)
	server.StopServer()
	if _, err := r.PodContainers(t.Context(), "u1"); !cri.IsUnavailable(err) {
		t.Fatalf("while it is away: %v", err)
	}
	server.StartServer(t)
	deadline := time.Now().Add(10 * time.Second)
	for {
		got, err := r.PodContainers(t.Context(), "u1")
		if err == nil && len(got) == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("when it is back: %v, %v", got, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func connect(t *testing.T, server *critest.Runtime) *cri.Runtime {
	t.Helper()
	r, err := cri.Connect(t.Context(), server.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// A socket that is there and that nothing serves keeps the runtimes behind it from nothing.
func TestASocketWithoutAnAnswerHidesNoRuntimeBehindIt(t *testing.T) {
	first, late := critest.Start(t, "containerd"), critest.New(t, "cri-o")
	silent := filepath.Join(t.TempDir(), "silent.sock")
	node := cri.NewNode(first.Socket, silent, late.Socket)
	t.Cleanup(func() { _ = node.Close() })
	if all, err := node.ListRuntimes(t.Context()); err != nil || len(all) != 1 {
		t.Fatalf("before they listen: %v, %v", all, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", silent) // connections wait for ever
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	late.StartServer(t)
	id := late.StartRun("u1", "app")
	deadline := time.Now().Add(10 * time.Second)
	for {
		r, err := node.ContainerRuntime(t.Context(), id)
		if err == nil && r.Endpoint == late.Socket {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after it listens: %+v, %v", r, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
