// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/watch"
	"github.com/regatta-sh/regatta/test/perf/workload"
)

// step is a phase: what is asked of the cluster, and what it is to lead to.
type step struct {
	name string
	do   func(context.Context) error
	goal watch.Goal
}

// Run measures one workload through all its phases.
func (m *Session) Run(ctx context.Context, kind workload.Kind) ([]report.Phase, error) {
	var phases []report.Phase
	name := kind.ID()
	for _, s := range m.steps(kind, name) {
		phase, err := m.phase(ctx, kind, name, s)
		if err != nil {
			return phases, fmt.Errorf("measuring %s of a %s: %w", s.name, kind.Name, err)
		}
		fmt.Fprintf(m.Out, "  %-20s %-8s %7.2f s\n", kind.Name, phase.Name, phase.Seconds)
		phases = append(phases, phase)
	}
	return phases, nil
}

func (m *Session) steps(kind workload.Kind, name string) []step {
	client := m.client(kind)
	object := kind.Main.Object(workload.Shape{Name: name, Namespace: m.namespace, Pods: m.Pods, NodeSelector: m.NodeSelector})
	steps := []step{{workload.Create, func(ctx context.Context) error {
		_, err := client.Create(ctx, object, metav1.CreateOptions{})
		return err
	}, goal(kind, workload.FirstImage(), m.Pods)}}
	for _, u := range kind.Updates {
		steps = append(steps, step{u.Phase, func(ctx context.Context) error {
			_, err := client.Patch(ctx, name, types.JSONPatchType, u.Patch, metav1.PatchOptions{})
			return err
		}, goal(kind, u.Image, m.Pods)})
	}
	return append(steps, step{workload.Delete, func(ctx context.Context) error {
		background := metav1.DeletePropagationBackground
		return client.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	}, gone(m.Pods)})
}

// goal is that all pods run an image and are available, by their own account
// and by that of their workload.
func goal(kind workload.Kind, image string, pods int) watch.Goal {
	return watch.Goal{
		Pods:  pods,
		First: func(v *watch.View) bool { return v.Images[image].Pods > 0 },
		Complete: func(v *watch.View) bool {
			return v.Pods == pods && v.Images[image].Available == pods && kind.Reached(v.Objects, pods)
		},
	}
}

func gone(pods int) watch.Goal {
	return watch.Goal{
		First:    func(v *watch.View) bool { return v.Pods < pods },
		Complete: func(v *watch.View) bool { return len(v.Objects) == 0 && v.Pods+v.Terminating == 0 },
	}
}

func (m *Session) phase(ctx context.Context, kind workload.Kind, name string, s step) (report.Phase, error) {
	p := report.Phase{Name: s.name}
	limited, cancel := context.WithTimeout(ctx, m.Limit)
	defer cancel()
	reading, err := begin(limited, m.target, kind)
	if err != nil {
		return p, err
	}
	race := m.watcher.Start(map[string]watch.Goal{name: s.goal})
	p.Started = race.Started()
	if err := s.do(limited); err != nil {
		return p, reading.abandon(err)
	}
	results, err := race.Wait(limited, m.watcher)
	if err != nil {
		return p, reading.abandon(err)
	}
	result := results[name]
	p.Seconds, p.FirstSeconds = round(result.Complete), round(result.First)
	p.MostMissing, p.MeanMissing = result.MostMissing, result.MeanMissing
	if err := m.watcher.Settle(limited, m.Settings.Settle); err != nil {
		return p, reading.abandon(err)
	}
	p.Usage, err = reading.end(ctx, m.Pods)
	return p, err
}

// round leaves milliseconds: watches are not more exact.
func round(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
