// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listersv1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

// label is the one that clients set.
const label = policyv1alpha1.UnavailablePodLabelPrefix + "faults"

// Outcomes of requests.
const (
	Allowed = "allowed"
	Denied  = "denied"
	// Failed is of requests that no manager answered, or not even the API server.
	Failed = "no answer"
	// Missed is of pods that were gone or had changed before.
	Missed = "pod gone"
)

// Clients ask for disruptions at random.
type Clients struct {
	// Count is how many ask at a time, and Requests how many all of them ask for.
	Count, Requests int
	Seed            uint64
	// Progress is called with the number of requests that were sent.
	Progress func(sent int64)
}

// Tally counts requests by operation and outcome.
type Tally struct {
	mu     sync.Mutex
	counts map[string]map[string]int
	// Odd are errors that should not be.
	Odd []string
}

// Count is how many there were of an operation with an outcome.
func (t *Tally) Count(operation, outcome string) int { return t.counts[operation][outcome] }

func (t *Tally) add(operation, outcome string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[operation] == nil {
		t.counts[operation] = map[string]int{}
	}
	t.counts[operation][outcome]++
	if outcome == "" && len(t.Odd) < 20 {
		t.Odd = append(t.Odd, fmt.Sprintf("%s: %v", operation, err))
	}
}

// Operations are what clients ask for.
func Operations() []string { return []string{"DELETE", "EVICT", "UPDATE", "RESIZE"} }

// RunJob sends requests until all are sent. Pods that were labelled as unavailable
// get well again after some seconds, at the latest before it returns.
func (c Clients) RunJob(ctx context.Context, config *rest.Config) (*Tally, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // the API server bounds it
	k8s, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(k8s, 0, informers.WithNamespace(Namespace))
	pods := factory.Core().V1().Pods().Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	t := &Tally{counts: map[string]map[string]int{}}
	var sent atomic.Int64
	var all, healing sync.WaitGroup
	for i := range c.Count {
		all.Go(func() {
			r := &requester{k8s: k8s, pods: pods, random: rand.New(rand.NewPCG(c.Seed, uint64(i))), tally: t, healing: &healing}
			for ctx.Err() == nil {
				n := sent.Add(1)
				if n > int64(c.Requests) {
					return
				}
				r.one(ctx)
				if c.Progress != nil {
					c.Progress(n)
				}
			}
		})
	}
	all.Wait()
	healing.Wait()
	return t, context.Cause(ctx)
}

type requester struct {
	k8s     kubernetes.Interface
	pods    listersv1.PodLister
	random  *rand.Rand
	tally   *Tally
	healing *sync.WaitGroup
}

func (r *requester) one(ctx context.Context) {
	list, err := r.pods.List(labels.Everything())
	if err != nil || len(list) == 0 {
		time.Sleep(10 * time.Millisecond)
		return
	}
	pod := list[r.random.IntN(len(list))]
	operation := Operations()[r.random.IntN(4)]
	err = r.ask(ctx, operation, pod)
	outcome := outcomeOf(err)
	r.tally.add(operation, outcome, err)
	if operation == "UPDATE" && outcome == Allowed {
		after := time.Duration(1+r.random.IntN(4)) * time.Second
		r.healing.Go(func() { r.heal(ctx, pod, after) })
	}
}

func (r *requester) ask(ctx context.Context, operation string, pod *corev1.Pod) error {
	pods := r.k8s.CoreV1().Pods(pod.Namespace)
	this := &metav1.Preconditions{UID: ptr.To(pod.UID)} // not the next one of that name
	switch operation {
	case "DELETE":
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: this})
	case "EVICT":
		return pods.EvictV1(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &metav1.DeleteOptions{Preconditions: this},
		})
	case "UPDATE":
		_, err := pods.Patch(ctx, pod.Name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:"x"}}}`, pod.UID, label), metav1.PatchOptions{})
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"%dm"}}}]}}`, pod.UID, 10+r.random.IntN(40))
	_, err := pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "resize")
	return err
}

// heal takes the label off again, however often it takes.
func (r *requester) heal(ctx context.Context, pod *corev1.Pod, after time.Duration) {
	for ; ; after = 500 * time.Millisecond {
		select {
		case <-ctx.Done():
			return
		case <-time.After(after):
		}
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:null}}}`, pod.UID, label)
		_, err := r.k8s.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err == nil || outcomeOf(err) == Missed {
			return
		}
	}
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return Allowed
	case strings.Contains(err.Error(), "denied the request"):
		return Denied
	case strings.Contains(err.Error(), "failed calling webhook"):
		return Failed
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return Missed
	case strings.Contains(err.Error(), "uid mismatch"), strings.Contains(err.Error(), "metadata.uid"), strings.Contains(err.Error(), "Precondition failed"):
		return Missed
	case reconcile.IsIndeterminate(err), apierrors.IsTooManyRequests(err): // the history shows whether it was done
		return Failed
	}
	return ""
}
