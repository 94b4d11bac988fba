// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/watch"
	"github.com/regatta-sh/regatta/test/perf/workload"
)

// Scale creates many workloads at once and then updates all of them in the first
// way their kind has, to see whether any is left behind by the others.
func (m *Session) Scale(ctx context.Context, kind workload.Kind, workloads int) (*report.Scale, error) {
	scale := &report.Scale{Workloads: workloads, Pods: m.Pods}
	names := make([]string, workloads)
	for i := range names {
		names[i] = fmt.Sprintf("scale-%03d", i)
	}
	update := kind.Updates[0]
	for _, one := range []struct {
		name, image string
		do          func(ctx context.Context, name string) error
	}{
		{workload.Create, kind.First, func(ctx context.Context, name string) error {
			_, err := m.client(kind.Main).Create(ctx, kind.Main.Object(m.shape(kind, name)), metav1.CreateOptions{})
			return err
		}},
		{update.Phase, update.Image, func(ctx context.Context, name string) error {
			return m.update(ctx, kind, update, name)
		}},
	} {
		phase, err := m.scalePhase(ctx, kind, names, one.image, one.do)
		if err != nil {
			return scale, fmt.Errorf("measuring %s of %d %ss: %w", one.name, workloads, kind.Name, err)
		}
		phase.Name = one.name
		fmt.Fprintf(m.Out, "  %d x %-20s %-8s %7.2f s\n", workloads, kind.Name, phase.Name, phase.Seconds)
		scale.Phases = append(scale.Phases, phase)
	}
	return scale, nil
}

// together is how many requests are made at a time: all at once, as far as one
// connection goes.
const together = 50

func (m *Session) scalePhase(ctx context.Context, kind workload.Kind, names []string, image string, do func(context.Context, string) error) (report.ScalePhase, error) {
	p := report.ScalePhase{}
	limited, cancel := context.WithTimeout(ctx, m.Limit)
	defer cancel()
	goals := map[string]watch.Goal{}
	for _, name := range names {
		goals[name] = goal(kind, image, m.Pods)
	}
	reading, err := begin(limited, m.target, kind)
	if err != nil {
		return p, err
	}
	race := m.watcher.Start(goals)
	var g errgroup.Group
	g.SetLimit(together)
	for _, name := range names {
		g.Go(func() error { return do(limited, name) })
	}
	if err := g.Wait(); err != nil {
		return p, reading.abandon(err)
	}
	results, err := race.Wait(limited, m.watcher)
	if err != nil {
		return p, reading.abandon(err)
	}
	var first, complete []float64
	for _, r := range results {
		first, complete = append(first, round(r.First)), append(complete, round(r.Complete))
	}
	p.First, p.Complete = Spread(first), Spread(complete)
	p.Seconds = p.Complete.Max
	if err := m.watcher.Settle(limited, m.Settings.Settle); err != nil {
		return p, reading.abandon(err)
	}
	p.Usage, err = reading.end(ctx, m.Pods*len(names))
	return p, err
}

// Spread sums up numbers. A percentile is the smallest number that so many of
// them do not exceed.
func Spread(all []float64) report.Spread {
	if len(all) == 0 {
		return report.Spread{}
	}
	sorted := slices.Sorted(slices.Values(all))
	at := func(share float64) float64 { return sorted[max(int(math.Ceil(share*float64(len(sorted))))-1, 0)] }
	return report.Spread{Min: sorted[0], Median: at(0.5), P99: at(0.99), Max: sorted[len(sorted)-1]}
}
