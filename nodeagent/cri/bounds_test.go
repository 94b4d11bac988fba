// SPDX-License-Identifier: Apache-2.0

package cri_test

import (
	"bytes"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/cri/critest"
	"github.com/regatta-sh/regatta/nodeagent/message"
	"github.com/regatta-sh/regatta/test/heap"
)

func TestWhatACommandPrintsIsBounded(t *testing.T) {
	server := critest.Start(t, "containerd")
	server.StartRun("u1", "app")
	r := connect(t, server)
	containers, err := r.PodContainers(t.Context(), "u1")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		printed int
		tooMuch bool
	}{
		{"a line is read", 80, false},
		{"what the kubelet looks at is read", 10 << 10, false},
		{"more than the bound is an error", cri.MostOutput + 1, true},
		{"so are 15 MiB", 15 << 20, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server.OnExec = func(string, []string) (*runtimev1.ExecSyncResponse, error) {
				return &runtimev1.ExecSyncResponse{Stdout: bytes.Repeat([]byte("x"), test.printed)}, nil
			}
			ended, err := r.RunCommand(t.Context(), containers["app"], []string{"cat"}, time.Second)
			if cri.PrintedTooMuch(err) != test.tooMuch || (err == nil) == test.tooMuch || !test.tooMuch && len(ended.Stdout) != test.printed {
				t.Errorf("%d bytes, %v", len(ended.Stdout), err)
			}
		})
	}
}

func TestErrorsOfCommandsAreBounded(t *testing.T) {
	server := critest.Start(t, "containerd")
	server.StartRun("u1", "app")
	r := connect(t, server)
	containers, err := r.PodContainers(t.Context(), "u1")
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]func() (*runtimev1.ExecSyncResponse, error){
		"it fails and prints much": func() (*runtimev1.ExecSyncResponse, error) {
			return &runtimev1.ExecSyncResponse{ExitCode: 1, Stderr: bytes.Repeat([]byte("é"), 20<<10)}, nil
		},
		"it prints too much": func() (*runtimev1.ExecSyncResponse, error) {
			return &runtimev1.ExecSyncResponse{ExitCode: 1, Stderr: bytes.Repeat([]byte("é"), 5<<20)}, nil
		},
		"the runtime fails": func() (*runtimev1.ExecSyncResponse, error) {
			return nil, status.Error(codes.Internal, "no such program")
		},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			server.OnExec = func(string, []string) (*runtimev1.ExecSyncResponse, error) { return answer() }
			_, err := r.ExecCommand(t.Context(), containers["app"], []string{"sh", "-c", strings.Repeat("y", 1<<20)}, time.Second)
			if err == nil || len(err.Error()) > 2*message.MostBytes {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

// The answers come from the same process, so that what they take is made before it is measured.
func TestManyCommandsThatPrintMuchTakeLittle(t *testing.T) {
	server := critest.Start(t, "containerd")
	server.StartRun("u1", "app")
	r := connect(t, server)
	containers, err := r.PodContainers(t.Context(), "u1")
	if err != nil {
		t.Fatal(err)
	}
	printed := bytes.Repeat([]byte("x"), 15<<20)
	server.OnExec = func(string, []string) (*runtimev1.ExecSyncResponse, error) {
		return &runtimev1.ExecSyncResponse{Stdout: printed}, nil
	}
	kept := make([]cri.Ended, 20)
	before := heap.CountLiveBytes()
	var group sync.WaitGroup
	for i := range kept {
		group.Go(func() { kept[i], _ = r.RunCommand(t.Context(), containers["app"], []string{"cat"}, time.Second) })
	}
	group.Wait()
	server.StopServer()
	if grown := heap.CountLiveBytes() - before; grown > 8<<20 {
		t.Errorf("%d commands that printed 15 MiB each keep %d bytes", len(kept), grown)
	}
	runtime.KeepAlive(kept)
}

func TestLargeAnswersOfARuntimeAreErrors(t *testing.T) {
	server := critest.Start(t, "containerd")
	server.RunAs("u1", "app", 1, "A="+strings.Repeat("x", cri.MostAnswer))
	r := connect(t, server)
	containers, err := r.PodContainers(t.Context(), "u1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ContainerEnv(t.Context(), containers["app"]); err == nil || !strings.Contains(err.Error(), "asking for the env of container app") {
		t.Errorf("an env of %d bytes: %v", cri.MostAnswer, err)
	}
}
