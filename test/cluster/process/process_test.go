// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// sleeper is a process that goes on until it is killed.
func sleeper(dir, name string) Spec {
	return Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", "sleep 60 & wait"}, Log: filepath.Join(dir, "logs", name+".log")}
}

func TestStartedProcessesAreFoundAndKilled(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for _, name := range []string{"one", "two"} {
		if _, err := Start(dir, sleeper(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Start(other, sleeper(other, "one")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := KillAll(t.Context(), other); err != nil {
			t.Log(err)
		}
	})
	// The children of processes belong to the cluster, too.
	eventually(t, func() bool { return len(find(t, dir)) == 4 })
	if names := Names(find(t, dir)); !names["one"] || !names["two"] {
		t.Errorf("found %v", names)
	}
	if err := Kill(t.Context(), dir, func(running Running) bool { return running.Name == "one" }); err != nil {
		t.Fatal(err)
	}
	if names := Names(find(t, dir)); names["one"] || !names["two"] {
		t.Errorf("after killing one, there is %v", names)
	}
	if err := KillAll(t.Context(), dir, "two"); err != nil {
		t.Fatal(err)
	}
	if left := find(t, dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if len(find(t, other)) == 0 {
		t.Error("another cluster's processes were killed as well")
	}
}

func TestEnvironmentHoldsNothingOfTheCallers(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://nowhere")
	dir := t.TempDir()
	spec := Spec{Name: "env", Path: "/usr/bin/env", Log: filepath.Join(dir, "env.log")}
	if _, err := Start(dir, spec); err != nil {
		t.Fatal(err)
	}
	var printed []byte
	eventually(t, func() bool {
		var err error
		printed, err = os.ReadFile(spec.Log)
		return err == nil && len(printed) > 0
	})
	cluster, name := marks([]byte("X=1\x00" + clusterVariable + "=" + dir + "\x00" + nameVariable + "=env"))
	if cluster != dir || name != "env" {
		t.Errorf("the marks read as %q, %q", cluster, name)
	}
	for _, unwanted := range []string{"HTTPS_PROXY"} {
		if strings.Contains(string(printed), unwanted) {
			t.Errorf("%s is in the environment:\n%s", unwanted, printed)
		}
	}
}

func TestStartingWhatIsNotThereIsAnError(t *testing.T) {
	dir := t.TempDir()
	if _, err := Start(dir, Spec{Name: "none", Path: "/nonexistent", Log: filepath.Join(dir, "log")}); err == nil {
		t.Error("no error")
	}
	if _, err := Start(dir, Spec{Name: "none", Path: "/bin/true", Log: filepath.Join(dir, "log"), Machine: "regatta-no-such"}); err == nil {
		t.Error("no error for a missing network namespace")
	}
}

// TestMain is a server instead, if a test says so by the arguments: one that takes
// its time to die, as each of its threads has the port.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		l, err := net.Listen("tcp", os.Args[2])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for range 500 {
			go func() { runtime.LockOSThread(); select {} }()
		}
		time.Sleep(100 * time.Millisecond)
		fmt.Println("serving")
		_, _ = l.Accept()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestThePortOfWhatWasKilledIsFree(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	for range 5 {
		dir := t.TempDir()
		log := filepath.Join(dir, "log")
		if _, err := Start(dir, Spec{Name: "server", Path: self, Args: []string{"serve", address}, Log: log}); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { text, _ := os.ReadFile(log); return strings.Contains(string(text), "serving") })
		if err := Kill(t.Context(), dir, func(Running) bool { return true }); err != nil {
			t.Fatal(err)
		}
		next, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		next.Close()
	}
}

func find(t *testing.T, dir string) []Running {
	t.Helper()
	found, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatal("it did not happen in time")
}
