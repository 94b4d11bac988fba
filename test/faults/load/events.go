// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/test/faults/history"
)

// Recorder notes every version of pods and budgets.
type Recorder struct {
	mu     sync.Mutex
	events []history.Event
	last   map[string]int64 // kind to revision
	err    error
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// Record starts with what is there.
func Record(ctx context.Context, c client.WithWatch) (*Recorder, error) {
	ctx, stop := context.WithCancel(ctx)
	r := &Recorder{stop: stop, last: map[string]int64{}}
	for _, list := range []client.ObjectList{&corev1.PodList{}, &policy.PodUnavailableBudgetList{}} {
		if err := r.follow(ctx, c, list); err != nil {
			stop()
			return nil, err
		}
	}
	return r, nil
}

func (r *Recorder) follow(ctx context.Context, c client.WithWatch, list client.ObjectList) error {
	if err := c.List(ctx, list, client.InNamespace(Namespace)); err != nil {
		return fmt.Errorf("listing what is to be recorded: %w", err)
	}
	switch l := list.(type) {
	case *corev1.PodList:
		for i := range l.Items {
			r.add(watch.Event{Type: watch.Added, Object: &l.Items[i]})
		}
	case *policy.PodUnavailableBudgetList:
		for i := range l.Items {
			r.add(watch.Event{Type: watch.Added, Object: &l.Items[i]})
		}
	}
	start := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.AllowWatchBookmarks = true
		return c.Watch(ctx, list.DeepCopyObject().(client.ObjectList), &client.ListOptions{Namespace: Namespace, Raw: &options})
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &toolscache.ListWatch{WatchFuncWithContext: start})
	if err != nil {
		return fmt.Errorf("watching what is to be recorded: %w", err)
	}
	r.ended.Go(func() {
		defer watcher.Stop()
		for e := range watcher.ResultChan() {
			r.add(e)
		}
	})
	return nil
}

// Events are those until now. The error says that some may be missing.
func (r *Recorder) Events() ([]history.Event, error) {
	r.stop()
	r.ended.Wait()
	return r.events, r.err
}

// Reached says whether everything up to the revision of the object was noted.
func (r *Recorder) Reached(o client.Object) bool {
	revision, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	r.mu.Lock()
	defer r.mu.Unlock()
	return err == nil && r.last[fmt.Sprintf("%T", o)] >= revision
}

func (r *Recorder) add(e watch.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok := e.Object.(client.Object)
	if e.Type == watch.Error || !ok {
		r.err = fmt.Errorf("watching: %s", text(e.Object))
		return
	}
	revision, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		r.err = fmt.Errorf("reading a resource version: %w", err)
		return
	}
	r.last[fmt.Sprintf("%T", o)] = revision
	if e.Type == watch.Bookmark {
		return
	}
	out := history.Event{Revision: revision}
	switch v := o.(type) {
	case *corev1.Pod:
		out.Budget, out.Pod = v.Labels[BudgetLabel], pod(v, e.Type == watch.Deleted)
	case *policy.PodUnavailableBudget:
		out.Budget, out.Status = v.Name, status(v)
	}
	r.events = append(r.events, out)
}

func text(o runtime.Object) string {
	raw, err := json.Marshal(o)
	if err != nil {
		return fmt.Sprintf("%T", o)
	}
	return string(raw)
}

func pod(p *corev1.Pod, gone bool) *history.Pod {
	ready := false
	for _, c := range p.Status.Conditions {
		ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	labelled := false
	for key := range p.Labels {
		labelled = labelled || strings.HasPrefix(key, policyv1alpha1.UnavailablePodLabelPrefix)
	}
	return &history.Pod{
		Why:  fmt.Sprintf("ready=%t labelled=%t terminating=%t", ready, labelled, p.DeletionTimestamp != nil),
		Name: p.Name, UID: string(p.UID), Created: p.CreationTimestamp.Time, Gone: gone,
		Available: ready && !labelled && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning,
		Spec:      p.Spec.Containers[0].Image + " " + p.Spec.Containers[0].Resources.Requests.Cpu().String(),
	}
}

func status(b *policy.PodUnavailableBudget) *history.Status {
	out := &history.Status{Allowed: int(b.Status.UnavailableAllowed), Current: int(b.Status.CurrentAvailable), Recorded: map[string]time.Time{}}
	for _, list := range []map[string]metav1.Time{b.Status.DisruptedPods, b.Status.UnavailablePods} {
		for name, at := range list {
			if at.After(out.Recorded[name]) {
				out.Recorded[name] = at.Time
			}
		}
	}
	return out
}
