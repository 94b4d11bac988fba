// SPDX-License-Identifier: Apache-2.0

// Package stand is the cluster on which programs measure controllers that have no pods of their own: simulated nodes, and
// one manager beside them.
package stand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/manager"
	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/perf/measure"
	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/target"
)

// Options are the flags that such programs have in common.
type Options struct {
	Name  string
	Nodes int
	// Real are real nodes, which have the managers and real agents in pods; the program sets them.
	Real  int
	Keep  bool
	Limit time.Duration
	// SchedulerQPS is how many requests a second the scheduler may send, its default if 0; the program sets it.
	SchedulerQPS int
	// FeatureGates are those of the manager, and Agents is the user agent of agents of nodes, whose writes are counted too;
	// the program sets them.
	FeatureGates string
	Agents       string
	Out          io.Writer
}

// Flags adds the flags, with the name of the cluster and the number of nodes that are the default.
func (o *Options) Flags(f *pflag.FlagSet, name string, nodes int) {
	f.StringVar(&o.Name, "name", name, "name of the local cluster that is brought up, and taken down afterwards")
	f.IntVar(&o.Nodes, "nodes", nodes, "its simulated nodes")
	f.BoolVar(&o.Keep, "keep", false, "leave the cluster up")
	f.DurationVar(&o.Limit, "limit", 20*time.Minute, "how long a step may take")
}

// userAgent is that of the requests of programs that measure.
const userAgent = "regatta-perf"

// A Stand is the cluster.
type Stand struct {
	Options
	Target *target.Target
	// Client reads past any cache, and watches.
	Client client.WithWatch
}

// Run brings up a cluster, has f measure there, and takes the cluster down.
func (o Options) Run(ctx context.Context, f func(context.Context, *Stand) error) (err error) {
	bin, err := os.MkdirTemp("", "regatta-perf-")
	if err != nil {
		return fmt.Errorf("making a folder for the programs: %w", err)
	}
	if !o.Keep {
		defer func() {
			err = errors.Join(err, local.Down(context.WithoutCancel(ctx), o.Name, o.Out), os.RemoveAll(bin))
		}()
	}
	t, err := target.Own(ctx, target.OwnOptions{
		Name: o.Name, Real: o.Real, Simulated: o.Nodes, SchedulerQPS: o.SchedulerQPS, FeatureGates: o.FeatureGates, Bin: bin, Out: o.Out,
	})
	if err != nil {
		return err
	}
	scheme, err := manager.NewScheme()
	if err != nil {
		return err
	}
	config := rest.CopyConfig(t.Config)
	config.UserAgent = userAgent
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return f(ctx, &Stand{Options: o, Target: t, Client: c})
}

// A Phase is something that was measured.
type Phase struct {
	Name    string
	Things  int
	Seconds float64
	// Usage is that of the manager.
	report.Usage
	// Agents are what agents of nodes wrote meanwhile, nil where there are none.
	Agents *report.Writes
}

// quiet is how long the manager may still write after a phase has reached its goal.
const quiet = 2 * time.Second

// Measure does something about so many things, waits until so says that it is done, and says what that took. The seconds
// end when it is done; what is used and written is counted a moment longer.
func (s *Stand) Measure(ctx context.Context, name string, things int, do func(context.Context) error, so func(context.Context) (bool, error)) (Phase, error) {
	p := Phase{Name: name, Things: things}
	ctx, cancel := context.WithTimeoutCause(ctx, s.Limit, fmt.Errorf("it took longer than %s", s.Limit))
	defer cancel()
	w, err := measure.Begin(ctx, s.Target)
	if err != nil {
		return p, err
	}
	start := time.Now()
	err = do(ctx)
	if err == nil {
		err = Until(ctx, so)
	}
	if err != nil {
		return p, fmt.Errorf("measuring %s: %w", name, w.Abandon(err))
	}
	p.Seconds = time.Since(start).Seconds()
	if err := sleep(ctx, quiet); err != nil {
		return p, w.Abandon(err)
	}
	if p.Agents, err = s.byAgents(start, time.Now(), things); err != nil {
		return p, err
	}
	if p.Usage, err = w.End(ctx, things); err != nil {
		return p, err
	}
	fmt.Fprintf(s.Out, "  %-40s %8.2f s\n", name, p.Seconds)
	return p, nil
}

// between is the time between two looks of Until.
const between = 100 * time.Millisecond

// Until waits until something is so. so looks at what a watch has found out, or asks the API server rarely: what is
// measured is not to be disturbed.
func Until(ctx context.Context, so func(context.Context) (bool, error)) error {
	for {
		done, err := so(ctx)
		if err != nil || done {
			return err
		}
		if err := sleep(ctx, between); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
