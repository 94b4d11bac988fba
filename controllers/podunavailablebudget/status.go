// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/accounting"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
)

// How long a pod whose disruption was allowed counts as unavailable although it looks available
// (PUB-07).
const (
	disruptedFor   = 20 * time.Second
	unavailableFor = 10 * time.Second
)

// readsAtOnce bounds the pods that one reconcile reads from the API server. The other pods are read in
// the next reconcile, and count as unavailable until then.
const readsAtOnce = 64

// outcome is the status that a budget is to have.
type outcome struct {
	status policy.PodUnavailableBudgetStatus
	again  time.Duration
	// stayed are pods whose deletion was allowed and that still exist.
	stayed []*corev1.Pod
}

// podCount computes the next status.
type podCount struct {
	*state
	r     *Reconciler
	now   time.Time
	out   outcome
	reads int
}

// computeStatus computes the status (PUB-06, PUB-07).
func (r *Reconciler) computeStatus(ctx context.Context, w *state) (outcome, error) {
	c := &podCount{state: w, r: r, now: r.Now()}
	s := &c.out.status
	*s = *w.budget.Status.DeepCopy()
	desired, err := desiredAvailable(w.budget, int(w.expected))
	if err != nil {
		return outcome{}, err
	}
	if s.DisruptedPods, err = c.pruneRecords(ctx, s.DisruptedPods, disruptedFor, c.isDisruptionOver); err != nil {
		return outcome{}, err
	}
	if s.UnavailablePods, err = c.pruneRecords(ctx, s.UnavailablePods, unavailableFor, c.isUpdateOver); err != nil {
		return outcome{}, err
	}
	current := 0
	for _, pod := range w.active {
		_, disrupted := s.DisruptedPods[pod.Name]
		_, updated := s.UnavailablePods[pod.Name]
		if !disrupted && !updated && r.isAvailable(pod) {
			current++
		}
	}
	s.ObservedGeneration, s.TotalReplicas = w.budget.Generation, w.expected
	s.DesiredAvailable, s.CurrentAvailable, s.UnavailableAllowed = int32(desired), int32(current), int32(max(current-desired, 0))
	// A budget that is used up is ready, as a PodDisruptionBudget is current for kstatus: it protects its pods.
	failure.SetSummary(s, kstatus.NewReady(kruise.ObservedReason, "The budget protects its pods."), w.budget.Generation, c.now)
	return c.out, nil
}

// desiredAvailable is how many pods have to be available. Percentages are rounded up, of
// either kind.
func desiredAvailable(b *policy.PodUnavailableBudget, expected int) (int, error) {
	if v := b.Spec.MaxUnavailable; v != nil {
		n, err := budget.ResolvePercent(*v, expected, true)
		if err != nil {
			return 0, fmt.Errorf("reading spec.maxUnavailable: %w", err)
		}
		return max(expected-max(n, 0), 0), nil
	}
	if v := b.Spec.MinAvailable; v != nil {
		n, err := budget.ResolvePercent(*v, expected, true)
		if err != nil {
			return 0, fmt.Errorf("reading spec.minAvailable: %w", err)
		}
		return max(n, 0), nil
	}
	return 0, nil // the schema requires one of both
}

// rule reports whether a record that has not expired may be removed.
type rule func(pod *corev1.Pod) bool

// isDisruptionOver is always false: a record of a disruption stays while the pod exists.
func (c *podCount) isDisruptionOver(*corev1.Pod) bool { return false }

// isUpdateOver is true once the pod is seen to be unavailable: it needs no record then.
func (c *podCount) isUpdateOver(pod *corev1.Pod) bool { return !c.r.isAvailable(pod) }

// pruneRecords returns the records that still count. A record prevents a pod whose disruption was
// allowed from being counted as available. So a record is removed only when the cache is known to show
// the current pod: caches of pods and of budgets are filled by two watches, and either may be behind.
func (c *podCount) pruneRecords(ctx context.Context, records map[string]metav1.Time, life time.Duration, over rule) (map[string]metav1.Time, error) {
	out := maps.Clone(records)
	for _, name := range slices.Sorted(maps.Keys(records)) {
		at := records[name].Time
		expired := !c.now.Before(at.Add(life))
		pod, matched := c.pods[name]
		switch {
		case matched && !availability.IsActive(pod):
			delete(out, name) // the pod is not counted any more
		case matched && pod.CreationTimestamp.After(at.Add(accounting.Skew)):
			delete(out, name) // the record is of an earlier pod
		case !matched || expired || over(pod):
			shown, err := c.isCacheCurrent(ctx, name, pod, at, expired)
			if err != nil {
				return nil, err
			}
			if !shown {
				c.requeueAfter(time.Second)
				continue
			}
			delete(out, name)
			if matched && expired && life == disruptedFor {
				c.out.stayed = append(c.out.stayed, pod)
			}
		default:
			c.requeueAfter(at.Add(life).Sub(c.now))
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

func (c *podCount) requeueAfter(d time.Duration) {
	d = max(d, time.Millisecond)
	if c.out.again == 0 || d < c.out.again {
		c.out.again = d
	}
}

// isCacheCurrent reports whether the cache shows the current state of a pod. pod is nil if the budget
// has no such pod in the cache. A pod that is gone may still appear, running and ready, in a cache
// that is behind, unless the cache dropped the pod since. So its record stays until it expires.
func (c *podCount) isCacheCurrent(ctx context.Context, name string, pod *corev1.Pod, recorded time.Time, expired bool) (bool, error) {
	key := types.NamespacedName{Namespace: c.budget.Namespace, Name: name}
	if pod == nil {
		pod = &corev1.Pod{}
		err := c.r.Client.Get(ctx, key, pod)
		if err == nil {
			return true, nil // the pod exists, and the budget does not select it
		}
		if !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("reading pod %s: %w", name, err)
		}
	}
	if c.reads++; c.reads > readsAtOnce {
		return false, nil
	}
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err := c.r.Live.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return pod.UID == "" && (expired || c.r.wasDropped(key, recorded)), nil
	}
	if err != nil {
		return false, fmt.Errorf("reading pod %s past the cache: %w", name, err)
	}
	return found.UID == pod.UID && found.ResourceVersion == pod.ResourceVersion, nil
}

// podCheck is the cached availability of a version of a pod.
type podCheck struct {
	version   string
	available bool
}

// mostChecks bounds the cached checks: the check of a pod may be stored just after the pod is gone.
const mostChecks = 100_000

// isAvailable caches its results: to parse the annotations of thousands of pods each time that one of
// them changes would be most of the work.
func (r *Reconciler) isAvailable(pod *corev1.Pod) bool {
	r.mu.Lock()
	got, ok := r.checks[pod.UID]
	r.mu.Unlock()
	if ok && got.version == pod.ResourceVersion {
		return got.available
	}
	got = podCheck{pod.ResourceVersion, availability.IsAvailable(pod)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.checks) >= mostChecks {
		clear(r.checks)
	}
	r.checks[pod.UID] = got
	return got.available
}

// recordDrop notes that the cache dropped a pod.
func (r *Reconciler) recordDrop(key types.NamespacedName, pod types.UID) {
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.checks, pod)
	r.drops[key] = now
	if len(r.drops) < mostDrops {
		return
	}
	maps.DeleteFunc(r.drops, func(_ types.NamespacedName, at time.Time) bool { return now.Sub(at) > disruptedFor })
}

// mostDrops is how many drops are remembered before those whose records have expired are forgotten.
const mostDrops = 1000

// wasDropped reports whether the cache dropped the pod of a name at a time or later.
func (r *Reconciler) wasDropped(key types.NamespacedName, since time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.drops[key]
	return ok && !at.Before(since)
}
