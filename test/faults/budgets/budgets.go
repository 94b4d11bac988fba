// SPDX-License-Identifier: Apache-2.0

// Package budgets tries whether budgets hold while everything is asked for at
// once and managers are killed: on a real API server, with simulated nodes.
package budgets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/test/faults/history"
	"github.com/regatta-sh/regatta/test/faults/load"
	"github.com/regatta-sh/regatta/test/faults/managers"
)

// Options say how much is tried.
type Options struct {
	Name     string // of the cluster, which is removed afterwards
	Nodes    int
	Programs map[string]string // of install.Build
	Replicas int               // of the manager
	Budgets  int
	Pods     int // of each budget
	Clients  int
	Requests int
	// KillEvery is the mean time between two kills of managers; 0 for none.
	KillEvery time.Duration
	Seed      uint64
	Out       io.Writer
}

// arguments let budgets refuse what they cannot be asked about: with Ignore, the
// default, budgets would not hold while managers are killed. The lease is
// short, so that another one leads soon.
func arguments() []string {
	return append(managers.ShortLease(), "--feature-gates=PodUnavailableBudgetUpdateGate=true", "--pod-failure-policy=Fail")
}

// Run brings up a cluster, tries, and takes it down.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	trial := managers.Trial{Name: o.Name, Nodes: o.Nodes, Programs: o.Programs, Replicas: o.Replicas, Arguments: arguments(), Out: o.Out}
	err = trial.Run(ctx, func(config *rest.Config, c client.WithWatch, replicas []*managers.Replica) error {
		report, err = o.try(ctx, config, c, replicas)
		return err
	})
	return report, err
}

func (o Options) try(ctx context.Context, config *rest.Config, c client.WithWatch, replicas []*managers.Replica) (*Report, error) {
	fmt.Fprintf(o.Out, "making %d budgets of %d pods each\n", o.Budgets, o.Pods)
	starting, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	want, err := load.Make(starting, c, load.Workloads{Budgets: o.Budgets, Pods: o.Pods})
	if err != nil {
		return nil, err
	}
	recorder, err := load.Record(ctx, c)
	if err != nil {
		return nil, err
	}
	killing, stop := context.WithCancel(ctx)
	var killer sync.WaitGroup
	var killed error
	// Often all at once, so that no manager is left with its memory.
	killer.Go(func() { killed = managers.KillAtRandom(killing, replicas, o.KillEvery, 1, o.Seed) })
	start, told := time.Now(), time.Now()
	var telling sync.Mutex
	tally, err := load.Clients{Count: o.Clients, Requests: o.Requests, Seed: o.Seed, Progress: func(sent int64) {
		telling.Lock()
		defer telling.Unlock()
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Fprintf(o.Out, "%d of %d requests in %s\n", sent, o.Requests, time.Since(start).Round(time.Second))
		}
	}}.RunJob(ctx, config)
	took := time.Since(start)
	stop()
	killer.Wait()
	if err := errors.Join(err, killed); err != nil {
		return nil, err
	}
	report := &Report{Options: o, Tally: tally, Took: took, Want: want, Kills: managers.Kills(replicas)}
	recovering, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	report.Recovered, err = recovery(recovering, c, recorder, o.Pods)
	if err != nil {
		return nil, err
	}
	events, err := recorder.Events()
	if err != nil {
		return nil, err
	}
	report.History = history.Check(events, want)
	return report, nil
}

// recovery waits until every budget allows all again that it ever may, and the
// recorder has seen that. It returns how long that took.
func recovery(ctx context.Context, c client.Client, recorder *load.Recorder, pods int) (time.Duration, error) {
	start := time.Now()
	for {
		list := &policy.PodUnavailableBudgetList{}
		if err := c.List(ctx, list, client.InNamespace(load.Namespace)); err != nil {
			return 0, fmt.Errorf("listing budgets: %w", err)
		}
		well, heard := 0, 0
		for i := range list.Items {
			s := list.Items[i].Status
			if int(s.CurrentAvailable) == pods && len(s.DisruptedPods) == 0 && len(s.UnavailablePods) == 0 {
				well++
			}
			if recorder.Reached(&list.Items[i]) {
				heard++
			}
		}
		if well == len(list.Items) && heard == well {
			return time.Since(start), nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("waiting for the budgets to recover: %w: %d of %d did", context.Cause(ctx), well, len(list.Items))
		case <-time.After(500 * time.Millisecond):
		}
	}
}
