// SPDX-License-Identifier: Apache-2.0

// Package parity lives the same life with a kind of Kubernetes and with ours of the same
// name, on one cluster with the controllers of both, and compares what became of their pods.
package parity

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/manager"
	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/install"
)

const (
	// nodesEach is how many nodes a scenario of DaemonSets has for itself, and those of
	// StatefulSets have together.
	nodesEach = 3
	sets      = "sets"
)

// TestMain has all scenarios run at once, whatever the number of processors: they wait most of their time.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "64"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run()
}

// TestParity runs all scenarios at once: they have namespaces of their own, and nodes of
// their own where nodes matter. The pods are on simulated nodes.
func TestParity(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a cluster, and waits for minutes of the clock to begin")
	}
	c := start(t)
	t.Run("StatefulSet", func(t *testing.T) {
		t.Parallel()
		take(t, c, len(daemonSets()), sets)
		for _, s := range statefulSets() {
			s.kind, s.place = statefulSet, sets
			t.Run(s.name, func(t *testing.T) { t.Parallel(); s.live(t, c) })
		}
	})
	t.Run("DaemonSet", func(t *testing.T) {
		t.Parallel()
		for i, s := range daemonSets() {
			s.kind, s.place = daemonSet, fmt.Sprintf("daemons-%d", i)
			t.Run(s.name, func(t *testing.T) { t.Parallel(); s.nodes = take(t, c, i, s.place); s.live(t, c) })
		}
	})
	t.Run("CronJob", func(t *testing.T) {
		t.Parallel()
		earlyInTheMinute(t)
		for _, s := range cronJobs() {
			s.kind = cronJob
			t.Run(s.name, func(t *testing.T) { t.Parallel(); s.live(t, c) })
		}
	})
}

// start brings up a cluster of simulated nodes with a manager beside it.
func start(t *testing.T) client.WithWatch {
	t.Helper()
	root, err := install.Root()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := install.Build(t.Context(), root, t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("parity-%d", os.Getpid())
	t.Cleanup(func() {
		if err := local.Down(context.WithoutCancel(t.Context()), name, t.Output()); err != nil {
			t.Error(err)
		}
	})
	cluster, err := local.Up(t.Context(), local.Options{Name: name, Simulated: nodesEach * (len(daemonSets()) + 1), Out: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = install.Install(t.Context(), install.Options{
		Root: root, Programs: programs, Cluster: cluster, Out: t.Output(),
		Arguments: []string{"--feature-gates=StatefulSetStartOrdinal=true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	config, err := cluster.RESTConfig("admin")
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	scheme, err := manager.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// take labels nodes, so that the pods of a scenario are on no others: some scenarios break
// their nodes.
func take(t *testing.T, c client.Client, group int, place string) []string {
	t.Helper()
	var names []string
	for i := range nodesEach {
		name := fmt.Sprintf("sim-%d", group*nodesEach+i+1)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		patch := client.RawPatch(mergePatch, fmt.Appendf(nil, `{"metadata": {"labels": {"scenario": %q}}}`, place))
		if err := c.Patch(t.Context(), node, patch); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}
