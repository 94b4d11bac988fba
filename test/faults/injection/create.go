// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/test/faults/retry"
)

// namespace is where the pods are.
const namespace = "faults"

// own is the container that each pod has of its own.
const own = "app"

// start is when a request was sent, and what the client knew then.
type start struct {
	at    time.Time
	known map[string]int64
}

// creators create pods.
type creators struct {
	c      client.Client
	known  *known
	groups int
	seed   uint64
	// keep is how many pods of each client there are at a time.
	keep int
	// until is when no more pods are begun; never if it is zero.
	until    time.Time
	progress func(int64)

	mu      sync.Mutex
	starts  map[string]start
	retries int
	made    atomic.Int64
}

// run creates so many pods, some at a time.
func (o *creators) run(ctx context.Context, pods, clients int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(o.seed, uint64(i)+2))
			var mine []*corev1.Pod
			for ctx.Err() == nil && (o.until.IsZero() || time.Now().Before(o.until)) {
				n := next.Add(1)
				if n > int64(pods) {
					return
				}
				p, err := o.create(ctx, fmt.Sprint("p-", n), random.IntN(o.groups))
				if err != nil {
					cancel(err)
					return
				}
				o.made.Add(1)
				if mine = append(mine, p); len(mine) > o.keep {
					if err := client.IgnoreNotFound(o.c.Delete(ctx, mine[0], client.GracePeriodSeconds(0))); err != nil && !retry.Again(err) {
						cancel(fmt.Errorf("deleting pod %s: %w", mine[0].Name, err))
						return
					}
					mine = mine[1:]
				}
				o.progress(n)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// create creates a pod, however often it takes. What was known when the last request was sent is what the pod is held to.
func (o *creators) create(ctx context.Context, name string, group int) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		sent := start{at: time.Now(), known: o.known.now()}
		p := podOf(name, group)
		err := o.c.Create(ctx, p)
		switch {
		case err == nil:
			o.note(name, sent, true)
			return p, nil
		case apierrors.IsAlreadyExists(err): // an earlier request was carried out, and only its answer was lost
			return p, nil
		case !retry.Again(err):
			return nil, fmt.Errorf("creating pod %s: %w", name, err)
		}
		o.note(name, sent, false)
		if err := retry.Pause(ctx, 20*time.Millisecond); err != nil {
			return nil, fmt.Errorf("creating pod %s: %w", name, err)
		}
	}
}

func (o *creators) note(name string, sent start, done bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.starts[name] = sent
	if !done {
		o.retries++
	}
}

func podOf(name string, group int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{groupLabel: fmt.Sprint(group)}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(0)), AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{Name: own, Image: "registry.k8s.io/pause:3.8"}},
		},
	}
}
