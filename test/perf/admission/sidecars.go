// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/stand"
)

// manySidecars measures what many SidecarSets cost, each with some pods: memory, and what a change of one of them does.
type manySidecars struct {
	*place
	sets, pods, changes int

	stand *stand.Stand
}

func sidecarsCommand(p *place) *cobra.Command {
	o := &manySidecars{place: p}
	c := &cobra.Command{
		Use: "sidecars", Short: "Measure what many SidecarSets cost", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), c.OutOrStdout()) },
	}
	f := c.Flags()
	f.IntVar(&o.sets, "sets", 1000, "how many SidecarSets there are")
	f.IntVar(&o.pods, "pods", 10_000, "pods of all of them together")
	f.IntVar(&o.changes, "changes", 20, "how many SidecarSets are changed, one after the other")
	return c
}

func (o *manySidecars) run(ctx context.Context, out io.Writer) error {
	return o.measure(ctx, out, func(ctx context.Context, s *stand.Stand) error {
		o.stand = s
		return o.all(ctx, out)
	})
}

func (o *manySidecars) all(ctx context.Context, out io.Writer) error {
	if err := (&injections{place: o.place, stand: o.stand}).prepare(ctx); err != nil {
		return err
	}
	empty, err := o.usage(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := o.fill(ctx); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%d SidecarSets and %d pods were there after %s\n", o.sets, o.pods, time.Since(start).Round(time.Second))
	const quiet = 15 * time.Second
	if err := o.calm(ctx); err != nil {
		return err
	}
	full, err := o.usage(ctx)
	if err != nil {
		return err
	}
	if err := settle(ctx, quiet); err != nil {
		return err
	}
	idle, err := o.usage(ctx)
	if err != nil {
		return err
	}
	start = time.Now()
	for i := range o.changes {
		if err := o.change(ctx, i); err != nil {
			return err
		}
	}
	took := time.Since(start)
	changed, err := o.usage(ctx)
	if err != nil {
		return err
	}
	background := (idle.cpu - full.cpu) / quiet.Seconds() * took.Seconds()
	n := float64(max(o.changes, 1))
	fmt.Fprint(out, report.Markdown([]string{"", "all managers"}, [][]string{
		{"memory without any, MiB", fmt.Sprintf("%.0f", empty.memory/(1<<20))},
		{fmt.Sprintf("memory with %d SidecarSets and %d pods, MiB", o.sets, o.pods), fmt.Sprintf("%.0f", full.memory/(1<<20))},
		{"CPU seconds in a second while nothing changes", fmt.Sprintf("%.3f", (idle.cpu-full.cpu)/quiet.Seconds())},
		{"milliseconds of a change, until the status is of it", fmt.Sprintf("%.0f", float64(took.Milliseconds())/n)},
		{"CPU milliseconds of a change, beyond that", fmt.Sprintf("%.1f", max(changed.cpu-idle.cpu-background, 0)*1000/n)},
		{"reconciles of SidecarSets for a change", fmt.Sprintf("%.1f", (changed.reconciles-idle.reconciles)/n)},
	}))
	return nil
}

// use is what the managers have used.
type use struct{ memory, cpu, reconciles float64 }

func (o *manySidecars) usage(ctx context.Context) (out use, err error) {
	err = scrape(ctx, o.stand.Target.Metrics, func(name, labels string, value float64) {
		switch {
		case name == "process_resident_memory_bytes":
			out.memory += value
		case name == "process_cpu_seconds_total":
			out.cpu += value
		case name == "controller_runtime_reconcile_total" && strings.Contains(labels, `controller="sidecarset-controller"`):
			out.reconciles += value
		}
	})
	return out, err
}

// fill makes the SidecarSets and their pods, and waits until each knows its own.
func (o *manySidecars) fill(ctx context.Context) error {
	for i := range o.sets {
		if err := o.stand.Client.Create(ctx, sidecarSet(i)); err != nil {
			return fmt.Errorf("making a SidecarSet: %w", err)
		}
	}
	var all []*corev1.Pod
	for i := range o.pods {
		all = append(all, unscheduled(fmt.Sprint("many-", i), fmt.Sprint(i%o.sets)))
	}
	if err := each(all, 8, func(p *corev1.Pod) error { return o.stand.Client.Create(ctx, p) }); err != nil {
		return fmt.Errorf("making pods: %w", err)
	}
	return until(ctx, "all SidecarSets to know their pods", func() (bool, error) {
		list := &kruise.SidecarSetList{}
		if err := o.stand.Client.List(ctx, list); err != nil {
			return false, fmt.Errorf("listing SidecarSets: %w", err)
		}
		matched := 0
		for i := range list.Items {
			matched += int(list.Items[i].Status.MatchedPods)
		}
		return matched == o.pods, nil
	})
}

// calm waits until the managers do nothing for some seconds.
func (o *manySidecars) calm(ctx context.Context) error {
	last := -1.0
	return until(ctx, "the managers to be at rest", func() (bool, error) {
		if err := settle(ctx, 5*time.Second); err != nil {
			return false, err
		}
		now, err := o.usage(ctx)
		same := now.reconciles == last
		last = now.reconciles
		return same, err
	})
}

// change gives a SidecarSet another image, and waits until it is seen in the status.
func (o *manySidecars) change(ctx context.Context, i int) error {
	set := &kruise.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: sidecarSet(i).Name}}
	if err := o.stand.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return fmt.Errorf("reading a SidecarSet: %w", err)
	}
	before := set.DeepCopy()
	set.Spec.Containers[0].Image = "registry.k8s.io/pause:3.9"
	if err := o.stand.Client.Patch(ctx, set, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("changing a SidecarSet: %w", err)
	}
	generation := set.Generation
	for set.Status.ObservedGeneration < generation {
		if err := settle(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for the status of a SidecarSet: %w", err)
		}
		if err := o.stand.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return fmt.Errorf("reading a SidecarSet: %w", err)
		}
	}
	return nil
}

func settle(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
