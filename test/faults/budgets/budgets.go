// SPDX-License-Identifier: Apache-2.0

// Package budgets tries whether budgets hold while everything is asked for at
// once and managers are killed: on a real API server, with simulated nodes.
package budgets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/manager"
	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/faults/history"
	"github.com/regatta-sh/regatta/test/faults/load"
	"github.com/regatta-sh/regatta/test/faults/managers"
	"github.com/regatta-sh/regatta/test/install"
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
	return []string{
		"--feature-gates=PodUnavailableBudgetUpdateGate=true", "--pod-failure-policy=Fail",
		"--leader-election-lease-duration=6s", "--leader-election-renew-deadline=4s", "--leader-election-retry-period=1s",
	}
}

// Run brings up a cluster, tries, and takes it down.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	root, err := install.Root()
	if err != nil {
		return nil, err
	}
	cluster, err := local.Up(ctx, local.Options{Name: o.Name, Simulated: o.Nodes, SchedulerQPS: 500, Out: o.Out})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, local.Down(context.WithoutCancel(ctx), o.Name, o.Out)) }()
	replicas, balancer, err := managers.Install(ctx, install.Options{Root: root, Programs: o.Programs, Cluster: cluster, Out: o.Out}, o.Replicas, arguments()...)
	if err != nil {
		return nil, err
	}
	defer balancer.Close()
	config, err := cluster.RESTConfig("admin")
	if err != nil {
		return nil, err
	}
	return o.try(ctx, config, replicas)
}

func (o Options) try(ctx context.Context, config *rest.Config, replicas []*managers.Replica) (*Report, error) {
	scheme, err := manager.Scheme()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
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
	killer.Go(func() { killed = o.kill(killing, replicas) })
	start, told := time.Now(), time.Now()
	var telling sync.Mutex
	tally, err := load.Clients{Count: o.Clients, Requests: o.Requests, Seed: o.Seed, Progress: func(sent int64) {
		telling.Lock()
		defer telling.Unlock()
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Fprintf(o.Out, "%d of %d requests in %s\n", sent, o.Requests, time.Since(start).Round(time.Second))
		}
	}}.Run(ctx, config)
	took := time.Since(start)
	stop()
	killer.Wait()
	if err := errors.Join(err, killed); err != nil {
		return nil, err
	}
	report := &Report{Options: o, Tally: tally, Took: took, Want: want}
	for _, r := range replicas {
		report.Kills += r.Kills
	}
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

// kill kills managers at random until ctx is done, and starts them again.
func (o Options) kill(ctx context.Context, replicas []*managers.Replica) error {
	if o.KillEvery == 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(o.Seed, 0))
	sleep := func(mean time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration((0.2 + 1.6*random.Float64()) * float64(mean))):
		}
	}
	for {
		sleep(o.KillEvery)
		if ctx.Err() != nil {
			return nil
		}
		// Often all at once, so that no manager is left with its memory.
		victims := replicas[random.IntN(len(replicas)):][:1]
		if random.IntN(4) == 0 {
			victims = replicas
		}
		for _, r := range victims {
			if err := r.Kill(context.WithoutCancel(ctx)); err != nil {
				return fmt.Errorf("killing a manager: %w", err)
			}
		}
		sleep(time.Second)
		for _, r := range victims {
			if err := r.Start(); err != nil {
				return fmt.Errorf("starting a manager again: %w", err)
			}
		}
	}
}

// recovery waits until every budget allows all again that it ever may, and the
// recorder has heard of it. It says how long that took.
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

// Programs builds what Run needs into a folder.
func Programs(ctx context.Context, out io.Writer) (map[string]string, func() error, error) {
	root, err := install.Root()
	if err != nil {
		return nil, nil, err
	}
	bin, err := os.MkdirTemp("", "regatta-faults-")
	if err != nil {
		return nil, nil, fmt.Errorf("making a folder for the programs: %w", err)
	}
	programs, err := install.Build(ctx, root, filepath.Join(bin, "bin"), out)
	return programs, func() error { return os.RemoveAll(bin) }, err
}
