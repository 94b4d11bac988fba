// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/addresses"
	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

func args(t *testing.T, s *state.State, options Options, name string) []string {
	t.Helper()
	index := slices.IndexFunc(Processes(s, map[string]string{}, options), func(spec process.Spec) bool { return spec.Name == name })
	if index < 0 {
		t.Fatalf("there is no %s", name)
	}
	return Processes(s, map[string]string{}, options)[index].Args
}

func TestRequestRates(t *testing.T) {
	tests := []struct {
		name               string
		options            Options
		manager, scheduler string
	}{
		{"by default, the scheduler's own bounds everybody", Options{}, "--kube-api-qps=2000", ""},
		{"stock leaves both alone", Options{StockQPS: true}, "", ""},
		{"the scheduler's can be raised", Options{SchedulerQPS: 300}, "--kube-api-qps=2000", "--kube-api-qps=300"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for name, want := range map[string]string{ControllerManager: test.manager, Scheduler: test.scheduler} {
				got := args(t, &state.State{}, test.options, name)
				has := slices.ContainsFunc(got, func(arg string) bool { return strings.HasPrefix(arg, "--kube-api-qps") })
				if has != (want != "") || (has && !slices.Contains(got, want)) {
					t.Errorf("%s runs with %v, want %q", name, got, want)
				}
			}
		})
	}
}

func TestFeatureGatesAreOfTheServerAndTheManager(t *testing.T) {
	options := Options{FeatureGates: []string{"A=true", "B=false"}}
	for name, want := range map[string]bool{APIServer: true, ControllerManager: true, Scheduler: false, Etcd: false} {
		if got := args(t, &state.State{}, options, name); slices.Contains(got, "--feature-gates=A=true,B=false") != want {
			t.Errorf("%s runs with %v", name, got)
		}
	}
}

func TestAPIServerListensWhereItMust(t *testing.T) {
	simulated := &state.State{Simulated: 3, Plan: addresses.Plan{Octet: 88}}
	mixed := &state.State{Simulated: 3, Real: 1, Plan: addresses.Plan{Octet: 88}}
	for want, s := range map[string]*state.State{"--bind-address=127.0.0.1": simulated, "--bind-address=10.88.0.1": mixed} {
		if got := args(t, s, Options{}, APIServer); !slices.Contains(got, want) {
			t.Errorf("%q is missing from %v", want, got)
		}
	}
}

func TestWriteFilesEntersEveryUser(t *testing.T) {
	s := &state.State{Name: "h1", Dir: t.TempDir(), Real: 2, Plan: addresses.Plan{Octet: 88}}
	if err := WriteFiles(s, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"admin", "kruise-manager", "system:kube-scheduler", "system:node:node-2"} {
		if _, err := os.Stat(s.Users[user]); err != nil {
			t.Errorf("%s: %v", user, err)
		}
	}
	if _, err := Client(s); err != nil {
		t.Error(err)
	}
}

func TestWaitTellsWhatWasWrong(t *testing.T) {
	err := Wait(t.Context(), 150*time.Millisecond, "a miracle", func(ctx context.Context) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.New("no miracle yet")
	})
	if err == nil || !strings.Contains(err.Error(), "a miracle: no miracle yet") {
		t.Errorf("got %v", err)
	}
}
