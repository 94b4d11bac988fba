// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/test/perf/agents"
	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/stand"
)

// probing measures the probes of a PodProbeMarker.
type probing struct {
	stand.Options
	pods   int // of each node
	probes int // of each pod
	period time.Duration
	flaps  float64
	rest   time.Duration
	flap   time.Duration
}

func probesCommand() *cobra.Command {
	o := &probing{Options: stand.Options{Out: os.Stderr, FeatureGates: "PodProbeMarkerGate=true", Agents: agents.UserAgent}}
	c := &cobra.Command{
		Use: "probes", Short: "Measure the probes of a PodProbeMarker", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.Run(c.Context(), func(ctx context.Context, s *stand.Stand) error {
				return with(ctx, s, agents.Options{Probes: true}, func(ctx context.Context, a *agents.Agents) error {
					return o.measure(ctx, s, a, c.OutOrStdout())
				})
			})
		},
	}
	o.Flags(c.Flags(), "perf-probes", 200)
	f := c.Flags()
	f.IntVar(&o.pods, "pods", 10, "pods on each node")
	f.IntVar(&o.probes, "probes", 5, "probes of each pod")
	f.DurationVar(&o.period, "period", 10*second, "how often each probe runs, in whole seconds")
	f.Float64Var(&o.flaps, "flaps", 50, "how many results change in a second, of all probes together")
	f.DurationVar(&o.rest, "rest", 30*second, "how long all results stay as they are")
	f.DurationVar(&o.flap, "for", 60*second, "how long results change")
	return c
}

func (o *probing) all() int { return o.Nodes * o.pods * o.probes }

func (o *probing) measure(ctx context.Context, s *stand.Stand, a *agents.Agents, out io.Writer) error {
	if err := s.MakeNamespace(ctx); err != nil {
		return err
	}
	if err := makePods(ctx, s, o.Nodes*o.pods); err != nil {
		return err
	}
	seen := newResults()
	if err := stand.Follow(ctx, s, &v1alpha1.NodePodProbe{}, seen.seeNode); err != nil {
		return err
	}
	if err := stand.Follow(ctx, s, &corev1.Pod{}, seen.seePod); err != nil {
		return err
	}
	if err := s.Await(ctx, fmt.Sprintf("%d NodePodProbes", o.Nodes), func(context.Context) (bool, error) { return seen.nodes() == o.Nodes, nil }); err != nil {
		return err
	}
	if err := s.NodesKnown(ctx); err != nil {
		return err
	}
	settled := func(context.Context) (bool, error) { return seen.settled(o.all()), nil }
	var rows [][]string
	var phases []stand.Phase
	for _, phase := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"first results", func(ctx context.Context) error { return s.Client.Create(ctx, o.marker()) }},
		{"at rest", func(ctx context.Context) error { return wait(ctx, o.rest) }},
		{"results change", func(ctx context.Context) error {
			a.Flap(min(o.flaps*o.period.Seconds()/float64(o.all()), 1))
			defer a.Flap(0)
			return wait(ctx, o.flap)
		}},
	} {
		seen.reset()
		p, err := s.Measure(ctx, phase.name, o.all(), phase.do, settled)
		if err != nil {
			return fmt.Errorf("%w: %s", err, seen.missing())
		}
		rows, phases = append(rows, o.row(p, seen)), append(phases, p)
	}
	header := slices.Concat(stand.Header("probe"), stand.AgentsHeader("probe"),
		[]string{"results that changed", "writes for each: manager / agents", "status to condition: p50 / p99 / most"})
	fmt.Fprintf(out, "%s\n%d nodes with %d pods of %d probes each, each every %s\n\n%s", report.Markdown(header, rows),
		o.Nodes, o.pods, o.probes, o.period, stand.Requests(phases))
	return nil
}

func (o *probing) row(p stand.Phase, seen *results) []string {
	changed, took := seen.changes()
	each, agents := "-", "-"
	if changed > 0 && p.Writes != nil {
		each, agents = perThing(p.Writes.Total, changed), perThing(p.Agents.Total, changed)
	}
	return slices.Concat(p.Row(), p.AgentsRow(), []string{fmt.Sprint(changed), each + " / " + agents, stand.Times(took)})
}

// marker has every pod probed. Each probe has a condition of its own.
func (o *probing) marker() *v1alpha1.PodProbeMarker {
	m := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: stand.Namespace, Name: "all"}}
	m.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{podLabel: "app"}}
	for i := range o.probes {
		name := fmt.Sprintf("p%d", i)
		m.Spec.Probes = append(m.Spec.Probes, v1alpha1.PodContainerProbe{
			Name: name, ContainerName: "app", PodConditionType: conditionPrefix + name,
			Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"probe", name}}},
				PeriodSeconds: int32(o.period.Seconds()), TimeoutSeconds: 5, SuccessThreshold: 1, FailureThreshold: 1,
			}},
		})
	}
	return m
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
