// SPDX-License-Identifier: Apache-2.0

// Package spreads tries whether no subset of a WorkloadSpread gets more pods than it may have while many are created at once
// and managers are killed: on a real API server.
package spreads

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/test/faults/managers"
)

// Options say how much is tried.
type Options struct {
	Name     string // of the cluster, which is removed afterwards
	Nodes    int
	Programs map[string]string // of install.Build
	Replicas int               // of the manager
	// Pods are how many are created at once, in each of the rounds.
	Pods, Rounds int
	Seed         uint64
	Out          io.Writer
}

// Run brings up a cluster, tries, and takes it down.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	trial := managers.Trial{
		Name: o.Name, Nodes: o.Nodes, Programs: o.Programs, Replicas: o.Replicas, Out: o.Out,
		Arguments: append(managers.ShortLease(), "--pod-failure-policy=Fail"), // else pods are let in without a subset while no manager answers
	}
	err = trial.Run(ctx, func(_ *rest.Config, c client.WithWatch, replicas []*managers.Replica) error {
		report, err = o.try(ctx, c, replicas)
		return err
	})
	return report, err
}

func (o Options) try(ctx context.Context, c client.WithWatch, replicas []*managers.Replica) (*Report, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "faults"}}
	if err := c.Create(ctx, ns); err != nil {
		return nil, fmt.Errorf("making the namespace: %w", err)
	}
	k := &killer{ctx: ctx, replicas: replicas, random: rand.New(rand.NewPCG(o.Seed, 2))}
	load := Load{Namespace: ns.Name, Pods: o.Pods, Rounds: o.Rounds, Seed: o.Seed, Progress: o.progress, Kill: k.kill, Ready: k.ready}
	return load.RunJob(ctx, c)
}

// killer kills a manager at a time.
type killer struct {
	ctx      context.Context
	replicas []*managers.Replica
	random   *rand.Rand
	dead     *managers.Replica
}

func (k *killer) kill() error {
	k.dead = k.replicas[k.random.IntN(len(k.replicas))]
	return k.dead.Kill(k.ctx)
}

// ready starts the manager that was killed, and waits for it.
func (k *killer) ready() error {
	if k.dead == nil {
		return nil
	}
	if err := k.dead.Start(); err != nil {
		return fmt.Errorf("starting a manager again: %w", err)
	}
	k.dead = nil
	ctx, cancel := context.WithTimeout(k.ctx, 2*time.Minute)
	defer cancel()
	return managers.AwaitReady(ctx, k.replicas)
}

func (o Options) progress(rounds int) {
	if rounds%10 == 0 {
		fmt.Fprintf(o.Out, "%d of %d rounds\n", rounds, o.Rounds)
	}
}
