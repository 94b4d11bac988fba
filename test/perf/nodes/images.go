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
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/perf/agents"
	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/stand"
)

// images measures an ImagePullJob over all nodes.
type images struct {
	stand.Options
	percent int
	pull    time.Duration
}

func imagesCommand() *cobra.Command {
	o := &images{Options: stand.Options{Out: os.Stderr, FeatureGates: "ImagePullJobGate=true", Agents: agents.UserAgent}}
	c := &cobra.Command{
		Use: "images", Short: "Measure an ImagePullJob over all nodes", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.Run(c.Context(), func(ctx context.Context, s *stand.Stand) error {
				return with(ctx, s, agents.Options{Images: true, Pull: o.pull}, func(ctx context.Context, _ *agents.Agents) error {
					return o.measure(ctx, s, c.OutOrStdout())
				})
			})
		},
	}
	o.Flags(c.Flags(), "perf-images", 1000)
	c.Flags().IntVar(&o.percent, "parallelism", 10, "on what share of the nodes the image is pulled at once, in percent")
	c.Flags().DurationVar(&o.pull, "pull", second, "how long a node takes to pull the image")
	return c
}

func (o *images) measure(ctx context.Context, s *stand.Stand, out io.Writer) error {
	var seen pulling
	if err := stand.Follow(ctx, s, &kruise.NodeImage{}, seen.see); err != nil {
		return err
	}
	if err := s.MakeNamespace(ctx); err != nil {
		return err
	}
	if err := s.Await(ctx, fmt.Sprintf("%d NodeImages, known to agents", o.Nodes), func(context.Context) (bool, error) {
		return seen.synced() == o.Nodes, nil
	}); err != nil {
		return err
	}
	job := &kruise.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: stand.Namespace, Name: "all"}}
	job.Spec.Image = "registry.example/app:v1"
	atOnce := max(o.Nodes*o.percent/100, 1)
	job.Spec.Parallelism = ptr.To(intstr.FromInt(atOnce))
	p, err := s.Measure(ctx, "ImagePullJob", o.Nodes, func(ctx context.Context) error { return s.Client.Create(ctx, job) }, func(ctx context.Context) (bool, error) {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return false, fmt.Errorf("reading the job: %w", err)
		}
		return job.Status.CompletionTime != nil, nil
	})
	if err != nil {
		return err
	}
	if int(job.Status.Succeeded) != o.Nodes {
		return fmt.Errorf("measuring the job: %d of %d nodes have the image: %s", job.Status.Succeeded, o.Nodes, job.Status.Message)
	}
	header := slices.Concat(stand.Header("node"), stand.AgentsHeader("node"), []string{"at once: allowed / most"})
	row := slices.Concat(p.Row(), p.AgentsRow(), []string{fmt.Sprintf("%d / %d", atOnce, seen.most)})
	fmt.Fprintf(out, "%s\nA node pulls for %s, so that %d nodes take %s at least.\n\n%s", report.Markdown(header, [][]string{row}),
		o.pull, o.Nodes, time.Duration((o.Nodes+atOnce-1)/atOnce)*o.pull, stand.Requests([]stand.Phase{p}))
	return nil
}

// pulling is what NodeImages say.
type pulling struct {
	mu    sync.Mutex
	known map[string]bool // agents have written their status
	busy  map[string]bool
	most  int // at once
}

func (p *pulling) see(_, now *kruise.NodeImage) {
	if now == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known, p.busy = map[string]bool{}, map[string]bool{}
	}
	if now.Status.FirstSyncStatus != nil {
		p.known[now.Name] = true
	}
	if int(now.Status.Succeeded+now.Status.Failed) < len(now.Spec.Images) {
		p.busy[now.Name] = true
	} else {
		delete(p.busy, now.Name)
	}
	p.most = max(p.most, len(p.busy))
}

func (p *pulling) synced() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.known)
}
