// SPDX-License-Identifier: Apache-2.0

package spreads

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
	"github.com/regatta-sh/regatta/test/faults/retry"
	"github.com/regatta-sh/regatta/test/faults/versions"
)

// name is that of the workload and its spread.
const name = "web"

// Load creates the pods of a workload at once and deletes half of them at once, in turns. The subsets a and b take two
// fifths of them each, and the subset rest as many as come.
type Load struct {
	Namespace string
	// Pods are how many there are after each round, each by a client of its own.
	Pods, Rounds int
	// Kill kills a manager, in the middle of the creates of one round and of the deletes of the next. Ready is called before
	// each round, and comes back when all managers are ready. Both are nil if none is killed.
	Kill, Ready func() error
	Seed        uint64
	// Progress is called with the number of rounds that are over; nil for none.
	Progress func(rounds int)
}

func (l Load) most() int { return l.Pods * 2 / 5 }

// RunJob makes the namespace's workload and spread, tries, and holds what was stored to the limits.
func (l Load) RunJob(ctx context.Context, c client.WithWatch) (*Report, error) {
	r := &run{Load: l, c: c, random: rand.New(rand.NewPCG(l.Seed, 1))}
	if err := r.make(ctx); err != nil {
		return nil, err
	}
	story := &story{most: map[string]int{"a": l.most(), "b": l.most()}, of: map[string]string{}}
	recorder, err := versions.Record(ctx, c, story.note, l.Namespace, &corev1.PodList{}, &kruise.WorkloadSpreadList{})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for n := range l.Rounds {
		if err := r.round(ctx, n); err != nil {
			return nil, err
		}
		if l.Progress != nil {
			l.Progress(n + 1)
		}
	}
	took := time.Since(began)
	r.Kill = nil
	settled, err := r.settle(ctx)
	if err != nil {
		return nil, err
	}
	if err := recorder.End(); err != nil {
		return nil, err
	}
	return &Report{load: l, took: took, settled: settled, created: int(r.created.Load()), deleted: int(r.deleted.Load()), retries: int(r.retries.Load()), kills: r.kills, summary: story.summary}, nil
}

// run is a Load that runs.
type run struct {
	Load
	c                         client.Client
	random                    *rand.Rand
	owner                     metav1.OwnerReference
	made, kills               int
	created, deleted, retries atomic.Int64
}

// make makes a Job that another controller is to run, so that nothing but the clients creates its pods, and waits until they
// are put into subsets.
func (r *run) make(ctx context.Context) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name}}
	job.Spec.ManagedBy, job.Spec.Template = ptr.To("faults.regatta.sh/clients"), corev1.PodTemplateSpec{Spec: podSpec()}
	job.Spec.Parallelism = ptr.To(int32(r.Pods)) //nolint:gosec // some hundred
	w := &kruise.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name}}
	w.Spec.TargetReference = kruise.TargetReference{APIVersion: "batch/v1", Kind: "Job", Name: name}
	most := ptr.To(intstr.FromInt(r.most()))
	w.Spec.Subsets = []kruise.WorkloadSpreadSubset{{Name: "a", MaxReplicas: most}, {Name: "b", MaxReplicas: most}, {Name: "rest"}}
	for _, o := range []client.Object{job, w} {
		if err := r.insist(ctx, func() error { return r.c.Create(ctx, o) }); err != nil {
			return fmt.Errorf("making %T: %w", o, err)
		}
	}
	r.owner = metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: job.UID, Controller: ptr.To(true)}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for known := 0; known < 10; { // each of several managers must have the spread in its cache
		pod := r.pod()
		err := r.insist(ctx, func() error { return r.c.Create(ctx, pod, client.DryRunAll) })
		if err != nil {
			return fmt.Errorf("trying a pod: %w", err)
		}
		if known++; spread.MarkOf(pod) != nil {
			continue
		}
		known = 0
		if err := retry.Pause(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for pods to be put into subsets: %w", err)
		}
	}
	return nil
}

// podSpec is of pods that no scheduler looks at: they count from the moment they are stored.
func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, SchedulingGates: []corev1.PodSchedulingGate{{Name: "faults.regatta.sh/never"}},
		TerminationGracePeriodSeconds: ptr.To(int64(0)), AutomountServiceAccountToken: ptr.To(false),
		Containers: []corev1.Container{{Name: "app", Image: "registry.k8s.io/pause:3.8"}},
	}
}

// pod is the next one; every other has no name of its own.
func (r *run) pod() *corev1.Pod {
	r.made++
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, GenerateName: name + "-", Labels: map[string]string{"app": name}, OwnerReferences: []metav1.OwnerReference{r.owner}}, Spec: podSpec()}
	if r.made%2 == 0 {
		p.Name = fmt.Sprintf("%s-p-%d", name, r.made)
	}
	return p
}

// round fills up the pods, and deletes half of them. Never both: a pod may take the place of one that is to be deleted
// before that is gone.
func (r *run) round(ctx context.Context, n int) error {
	if r.Ready != nil {
		if err := r.Ready(); err != nil {
			return err
		}
	}
	pods, err := r.pods(ctx)
	if err != nil {
		return err
	}
	var creates []func() error
	for range r.Pods - len(pods) {
		pod := r.pod()
		creates = append(creates, func() error {
			defer r.created.Add(1)
			return r.insist(ctx, func() error {
				fresh := pod.DeepCopy()
				err := r.c.Create(ctx, fresh)
				if apierrors.IsAlreadyExists(err) { // an earlier request was carried out, and only its answer was lost
					return nil
				}
				return err
			})
		})
	}
	if err := r.together(creates, n%2 == 0); err != nil {
		return fmt.Errorf("creating pods: %w", err)
	}
	// The record of a pod that is gone before the controller has counted it takes its place until it is too old.
	if err := r.await(ctx, counted); err != nil {
		return err
	}
	if pods, err = r.pods(ctx); err != nil {
		return err
	}
	r.random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	var deletes []func() error
	for i := range pods[:len(pods)/2] {
		deletes = append(deletes, func() error {
			defer r.deleted.Add(1)
			return r.insist(ctx, func() error { return client.IgnoreNotFound(r.c.Delete(ctx, &pods[i])) })
		})
	}
	if err := r.together(deletes, n%2 == 1); err != nil {
		return fmt.Errorf("deleting pods: %w", err)
	}
	return nil
}

func (r *run) pods(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := r.insist(ctx, func() error { return r.c.List(ctx, list, client.InNamespace(r.Namespace)) }); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	return list.Items, nil
}

// together does all at once. A manager is killed a moment later if so asked, while it has requests to answer.
func (r *run) together(acts []func() error, kill bool) error {
	if kill && r.Kill != nil {
		after := time.Duration(r.random.IntN(200)) * time.Millisecond
		acts = append(acts, func() error {
			time.Sleep(after)
			r.kills++
			return r.Kill()
		})
	}
	errs := make([]error, len(acts))
	var all sync.WaitGroup
	for i, act := range acts {
		all.Go(func() { errs[i] = act() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// insist sends a request until it is answered.
func (r *run) insist(ctx context.Context, send func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := send()
		if err == nil || !retry.Again(err) {
			return err
		}
		r.retries.Add(1)
		if retry.Pause(ctx, 50*time.Millisecond) != nil {
			return err
		}
	}
}

// settle fills up once more when no record of a lost answer counts any longer, and waits until the status is that of the
// pods. It gives how long that took.
func (r *run) settle(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := r.await(ctx, quiet); err != nil {
		return 0, err
	}
	if err := r.round(ctx, 0); err != nil { // which leaves half of them
		return 0, err
	}
	if err := r.await(ctx, func(s *kruise.WorkloadSpreadSubsetStatus, pods int) bool { return quiet(s, pods) && counted(s, pods) }); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// counted: the status of a subset counts the pods that exist.
func counted(s *kruise.WorkloadSpreadSubsetStatus, pods int) bool { return int(s.Replicas) == pods }

// quiet: the status of a subset remembers no pods that it does not count.
func quiet(s *kruise.WorkloadSpreadSubsetStatus, _ int) bool {
	return len(s.CreatingPods)+len(s.DeletingPods) == 0
}

// await waits until the status of each subset is as it should be for its pods.
func (r *run) await(ctx context.Context, is func(s *kruise.WorkloadSpreadSubsetStatus, pods int) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		pods, err := r.pods(ctx)
		if err != nil {
			return err
		}
		have := map[string]int{}
		for i := range pods {
			if m := spread.MarkOf(&pods[i]); m != nil {
				have[m.Subset]++
			}
		}
		w := &kruise.WorkloadSpread{}
		if err := r.insist(ctx, func() error { return r.c.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, w) }); err != nil {
			return fmt.Errorf("reading the spread: %w", err)
		}
		said, same := "", len(w.Status.SubsetStatuses) > 0
		for i := range w.Status.SubsetStatuses {
			s := &w.Status.SubsetStatuses[i]
			same = same && is(s, have[s.Name])
			said += fmt.Sprintf(" %s=%d of %d, %d recorded", s.Name, s.Replicas, have[s.Name], len(s.CreatingPods)+len(s.DeletingPods))
		}
		if same {
			return nil
		}
		if err := retry.Pause(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for the status: %w; it says%s", err, said)
		}
	}
}
