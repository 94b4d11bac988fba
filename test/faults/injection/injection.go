// SPDX-License-Identifier: Apache-2.0

// Package injection tries whether each pod gets its sidecars, of one revision and once, while SidecarSets change and managers are
// killed: on a real API server, with simulated nodes.
package injection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/history"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/test/faults/managers"
	"github.com/regatta-sh/regatta/test/faults/retry"
	"github.com/regatta-sh/regatta/test/faults/versions"
)

// Options say how much is tried.
type Options struct {
	Name     string // of the cluster, which is removed afterwards
	Nodes    int
	Programs map[string]string // of install.Build
	Replicas int               // of the manager
	Groups   int               // of pods, each with SidecarSets of all forms
	// Pods are how many are created, or as many as can be until For is over; 0 for no such limit.
	Pods    int
	For     time.Duration
	Clients int
	// Keep is how many pods of each client there are at a time.
	Keep int
	// ChangeEvery is the time between two changes of SidecarSets, and KillEvery the mean time between two kills of managers; 0 for none.
	ChangeEvery, KillEvery time.Duration
	// Late is how long after its end a version of a SidecarSet may still be injected.
	Late time.Duration
	Seed uint64
	Out  io.Writer
}

// arguments have pods wait for their sidecars: with Ignore, the default, they would start without while managers are killed.
func arguments() []string {
	return []string{"--feature-gates=SidecarSetPatchPodMetadataDefaultsAllowed=true", "--pod-failure-policy=Fail"}
}

// Run brings up a cluster, tries, and takes it down.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	trial := managers.Trial{Name: o.Name, Nodes: o.Nodes, Programs: o.Programs, Replicas: o.Replicas, Arguments: arguments(), Out: o.Out}
	err = trial.Run(ctx, func(_ *rest.Config, c client.WithWatch, replicas []*managers.Replica) error {
		report, err = o.try(ctx, c, replicas)
		return err
	})
	return report, err
}

func (o Options) try(ctx context.Context, c client.WithWatch, replicas []*managers.Replica) (*Report, error) {
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, fmt.Errorf("making the namespace: %w", err)
	}
	story := newStory()
	recorder, err := versions.Record(ctx, c, story.note, "", &kruise.SidecarSetList{}, &corev1.PodList{})
	if err != nil {
		return nil, err
	}
	k := newKnown()
	starting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	u, err := newUpdater(starting, c, k, o.Groups, o.ChangeEvery, o.Seed)
	if err != nil {
		return nil, err
	}
	if err := accepted(starting, c); err != nil {
		return nil, err
	}
	pods := &creators{c: c, known: k, groups: o.Groups, seed: o.Seed, keep: o.Keep, starts: map[string]start{}, progress: o.progress()}
	took, err := o.together(ctx, u, pods, replicas)
	if err != nil {
		return nil, err
	}
	if err := o.heard(ctx, c, recorder); err != nil {
		return nil, err
	}
	if err := errors.Join(recorder.End(), story.err); err != nil {
		return nil, err
	}
	checker := &checker{story: story, starts: pods.starts, known: k, late: o.Late}
	report := &Report{options: o, took: took, kills: managers.Kills(replicas), changes: u.changes, retries: pods.retries, made: int(pods.made.Load()), summary: checker.check()}
	return report, report.compare(ctx, c, story)
}

// together creates the pods while SidecarSets change and managers are killed.
func (o Options) together(ctx context.Context, u *updater, pods *creators, replicas []*managers.Replica) (time.Duration, error) {
	beside, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	var killed, changed error
	others.Go(func() { killed = managers.KillAtRandom(beside, replicas, o.KillEvery, 0, o.Seed) })
	others.Go(func() { changed = u.run(beside) })
	began := time.Now()
	if o.For > 0 {
		pods.until = began.Add(o.For)
	}
	err := pods.run(ctx, o.Pods, o.Clients)
	took := time.Since(began)
	stop()
	others.Wait()
	return took, errors.Join(err, killed, changed)
}

func (o Options) progress() func(int64) {
	var mu sync.Mutex
	began, told := time.Now(), time.Now()
	return func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Fprintf(o.Out, "%d of %d pods in %s\n", n, o.Pods, time.Since(began).Round(time.Second))
		}
	}
}

// accepted waits until pods are taken in the namespace.
func accepted(ctx context.Context, c client.Client) error {
	for {
		err := c.Create(ctx, podOf("first", 0), client.DryRunAll)
		if err == nil {
			return nil
		}
		if retry.Pause(ctx, 200*time.Millisecond) != nil {
			return fmt.Errorf("waiting for pods to be taken: %w", err)
		}
	}
}

// heard waits until everything that was stored has been recorded.
func (o Options) heard(ctx context.Context, c client.Client, recorder *versions.Recorder) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, kind := range []struct {
		list client.ObjectList
		is   client.Object
	}{{&kruise.SidecarSetList{}, &kruise.SidecarSet{}}, {&corev1.PodList{}, &corev1.Pod{}}} {
		if err := c.List(ctx, kind.list); err != nil {
			return fmt.Errorf("listing what was stored: %w", err)
		}
		latest := int64(0)
		switch l := kind.list.(type) {
		case *kruise.SidecarSetList:
			for i := range l.Items {
				if n, err := versions.Of(&l.Items[i]); err == nil && n > latest {
					latest = n
					kind.is = &l.Items[i]
				}
			}
		case *corev1.PodList:
			for i := range l.Items {
				if n, err := versions.Of(&l.Items[i]); err == nil && n > latest {
					latest = n
					kind.is = &l.Items[i]
				}
			}
		}
		for latest > 0 && !recorder.Reached(kind.is) {
			if err := retry.Pause(ctx, 100*time.Millisecond); err != nil {
				return fmt.Errorf("waiting for the last versions: %w", err)
			}
		}
	}
	return nil
}

// compare compares the revisions that exist in the end with the pods that name them.
func (r *Report) compare(ctx context.Context, c client.Client, story *story) error {
	list := &appsv1.ControllerRevisionList{}
	if err := c.List(ctx, list, client.HasLabels{kruise.SidecarSetNameKey}); err != nil {
		return fmt.Errorf("listing revisions: %w", err)
	}
	hashes := map[string]string{}
	for i := range list.Items {
		spec, err := history.ApplyRevision(&kruise.SidecarSetSpec{}, &list.Items[i])
		if err != nil {
			return err
		}
		h, err := podmeta.HashesOf(spec)
		if err != nil {
			return err
		}
		hashes[list.Items[i].Name] = h.Hash
	}
	for name, all := range story.pods {
		entries, err := podmeta.Read(all[0].pod, kruise.SidecarSetHashKey)
		if err != nil {
			return fmt.Errorf("reading the marks of pod %s: %w", name, err)
		}
		for _, entry := range entries {
			switch hash, there := hashes[entry.ControllerRevision]; {
			case there && hash != entry.Hash:
				r.violations = append(r.violations, fmt.Sprintf("pod %s names revision %s, whose hash is %s, and has the hash %s", name, entry.ControllerRevision, hash, entry.Hash))
			case there:
				r.named++
			}
		}
	}
	return nil
}
