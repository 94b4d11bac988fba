// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/watch"
	"github.com/regatta-sh/regatta/test/perf/workload"
)

// step is a phase: what is asked of the cluster, and what it is to lead to. One that
// asks nothing of it lasts a while instead.
type step struct {
	name string
	do   func(context.Context) error
	goal watch.Goal
	idle time.Duration
}

// RunJob measures one workload through all its phases.
func (m *Session) RunJob(ctx context.Context, kind workload.Kind) ([]report.Phase, error) {
	var phases []report.Phase
	name := m.name(kind)
	if err := m.prepare(ctx, kind, name); err != nil {
		return nil, fmt.Errorf("preparing a %s: %w", kind.Name, err)
	}
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

// heard is how long the API server may take to call the webhook for the pods of what is
// there before them.
const heard = 5 * time.Second

// prepare creates the objects that exist before a workload.
func (m *Session) prepare(ctx context.Context, kind workload.Kind, name string) error {
	if len(kind.Before) == 0 {
		return nil
	}
	for _, part := range kind.Before {
		if _, err := m.client(part).Create(ctx, part.Object(m.shape(kind, name)), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return m.watcher.Settle(ctx, max(m.Settings.Settle, heard))
}

func (m *Session) steps(kind workload.Kind, name string) []step {
	pods, object := m.pods(kind), kind.Main.Object(m.shape(kind, name))
	steps := []step{{name: workload.Create, do: func(ctx context.Context) error {
		_, err := m.client(kind.Main).Create(ctx, object, metav1.CreateOptions{})
		return err
	}, goal: goal(kind, kind.First, pods)}}
	if kind.Idles && m.Idle > 0 {
		steps = append(steps, step{name: workload.Idle, idle: m.Idle})
	}
	for _, u := range kind.Updates {
		steps = append(steps, step{name: u.Phase, do: func(ctx context.Context) error {
			return m.update(ctx, kind, u, name)
		}, goal: goal(kind, u.Image, pods)})
	}
	return append(steps, step{name: workload.Delete, do: func(ctx context.Context) error {
		background := metav1.DeletePropagationBackground
		for _, part := range slices.Backward(kind.Parts()) {
			if err := m.client(part).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
				return err
			}
		}
		return nil
	}, goal: gone(pods)})
}

func (m *Session) update(ctx context.Context, kind workload.Kind, u workload.Update, name string) error {
	_, err := m.client(kind.Updated(u)).Patch(ctx, name, types.JSONPatchType, u.Patch, metav1.PatchOptions{})
	return err
}

// goal is that all pods run an image and are available, by their own account
// and by that of their workload, which alone tells that they have completed.
func goal(kind workload.Kind, image string, pods int) watch.Goal {
	if kind.Ends {
		return watch.Goal{
			First:    func(v *watch.View) bool { return v.Pods > 0 },
			Complete: func(v *watch.View) bool { return v.Pods == pods && kind.Reached(v.Objects, pods) },
		}
	}
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
	if s.idle > 0 {
		return m.idle(ctx, kind, s)
	}
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
	p.Usage, err = reading.end(ctx, m.pods(kind))
	return p, err
}

// idle leaves the cluster alone, and counts the heartbeats of its nodes meanwhile.
func (m *Session) idle(ctx context.Context, kind workload.Kind, s step) (report.Phase, error) {
	p := report.Phase{Name: s.name, Started: time.Now(), Seconds: s.idle.Seconds()}
	reading, err := begin(ctx, m.target, kind)
	if err != nil {
		return p, err
	}
	select {
	case <-ctx.Done():
		return p, reading.abandon(ctx.Err())
	case <-time.After(s.idle):
	}
	if p.Usage, err = reading.end(ctx, m.pods(kind)); err != nil {
		return p, err
	}
	p.Heartbeats, err = heartbeats(m.target, p.Started, p.Started.Add(s.idle))
	return p, err
}

// round leaves milliseconds: watches are not more exact.
func round(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
