// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/perf/agents"
	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/stand"
)

// restarting measures ContainerRecreateRequests that are made at once.
type restarting struct {
	stand.Options
	requests int
	restart  time.Duration
}

func restartsCommand() *cobra.Command {
	o := &restarting{Options: stand.Options{Out: os.Stderr, Agents: agents.UserAgent}}
	c := &cobra.Command{
		Use: "restarts", Short: "Measure many ContainerRecreateRequests at once", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.Run(c.Context(), func(ctx context.Context, s *stand.Stand) error {
				seen := &recreated{made: map[string]time.Time{}}
				return with(ctx, s, agents.Options{Restarts: true, Restart: o.restart, Stopped: seen.stop}, func(ctx context.Context, _ *agents.Agents) error {
					return o.measure(ctx, s, seen, c.OutOrStdout())
				})
			})
		},
	}
	o.Flags(c.Flags(), "perf-restarts", 1000)
	c.Flags().IntVar(&o.requests, "requests", 500, "how many requests are made at once, each for a pod of its own")
	c.Flags().DurationVar(&o.restart, "restart", second, "how long a kubelet takes to start a container again and say so")
	return c
}

// together is how many requests a client has under way at once.
const together = 50

func (o *restarting) measure(ctx context.Context, s *stand.Stand, seen *recreated, out io.Writer) error {
	if err := s.MakeNamespace(ctx); err != nil {
		return err
	}
	if err := makePods(ctx, s, o.requests); err != nil {
		return err
	}
	if err := s.NodesKnown(ctx); err != nil {
		return err
	}
	if err := stand.Follow(ctx, s, &kruise.ContainerRecreateRequest{}, seen.see); err != nil {
		return err
	}
	p, err := s.Measure(ctx, "ContainerRecreateRequests", o.requests, func(ctx context.Context) error {
		return stand.All(o.requests, together, func(i int) error {
			r := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: stand.Namespace, Name: podName(i)}}
			r.Spec.PodName, r.Spec.Containers = podName(i), []kruise.ContainerRecreateRequestContainer{{Name: "app"}}
			seen.make(r.Name)
			if err := s.Client.Create(ctx, r); err != nil {
				return fmt.Errorf("making a request: %w", err)
			}
			return nil
		})
	}, func(context.Context) (bool, error) { return seen.done(o.requests) })
	if err != nil {
		return err
	}
	header := slices.Concat(stand.Header("request"), stand.AgentsHeader("request"), []string{"to the stop: p50 / p99 / most", "to the end"})
	row := slices.Concat(p.Row(), p.AgentsRow(), []string{stand.Times(seen.stopped), stand.Times(seen.ended)})
	fmt.Fprintf(out, "%s\nA kubelet starts a container again after %s. Times are those from the creation of a request.\n\n%s",
		report.Markdown(header, [][]string{row}), o.restart, stand.Requests([]stand.Phase{p}))
	return nil
}

// recreated is what became of requests, by name, which is also that of their pods.
type recreated struct {
	mu      sync.Mutex
	made    map[string]time.Time
	stopped []time.Duration
	ended   []time.Duration
	wrong   error
}

func (r *recreated) make(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made[name] = time.Now()
}

// stop is called when a container is stopped.
func (r *recreated) stop(_, pod string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = append(r.stopped, time.Since(r.made[pod]))
}

func (r *recreated) see(before, now *kruise.ContainerRecreateRequest) {
	if now == nil || now.Status.CompletionTime == nil || before != nil && before.Status.CompletionTime != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = append(r.ended, time.Since(r.made[now.Name]))
	for _, s := range now.Status.ContainerRecreateStates {
		if s.Phase != kruise.ContainerRecreateRequestSucceeded {
			r.wrong = fmt.Errorf("request %s ended with container %s %s: %s%s", now.Name, s.Name, s.Phase, s.Message, now.Status.Message)
		}
	}
}

// done says whether so many have ended, and what went wrong.
func (r *recreated) done(n int) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ended) == n, r.wrong
}
