// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/coalesce"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/placement"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=workloadspreads,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=workloadspreads/status,verbs=update

const (
	// tries is how many times a status is written before the callers have to try again.
	tries = 8
	// patience is the deadline of one round of reads and writes.
	patience = 5 * time.Second
	// most is how many callers one write serves.
	most = 64
	// pace is the time between two writes of one spread. It makes the cost of many pods at once
	// depend on time, not on their number.
	pace = 100 * time.Millisecond
)

var errContended = errors.New("the status of the WorkloadSpread changed too often while the pod was to be recorded; try again")

// Recorder puts pods into subsets. It records a pod of a subset with a limit in the status of
// the spread before the pod is admitted, by a write that fails if another client wrote since. So any
// number of managers keep the limit. One write records all pods that wait at the same time.
type Recorder struct {
	client  client.Client
	live    client.Reader
	engine  *engine.Engine
	targets *Targets
	version Versions
	now     func() time.Time
	callers coalesce.Queue[types.NamespacedName, *pendingRecord]
}

// pendingRecord is a caller that waits for a record.
type pendingRecord struct {
	ctx context.Context
	// write changes the spread as it is now, and reports whether it changed anything.
	write recordFunc
	// undo, if it is not nil, takes back what was written for a caller that has left, whose pod is therefore refused.
	undo recordFunc
	// isUndo is true for a record that is an undo itself. It comes before the callers that wait, which see its place free.
	isUndo bool
	// ended is true once the caller has left or has its answer, whichever came first.
	ended atomic.Bool
	done  chan struct{}
	err   error
}

// giveAnswer gives the caller its answer. It returns false if the caller has left.
func (c *pendingRecord) giveAnswer() bool {
	stays := c.ended.CompareAndSwap(false, true)
	close(c.done)
	return stays
}

// Option changes a Recorder.
type Option func(*Recorder)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(b *Recorder) { b.now = now } }

// WithPace sets the minimum time between two writes of one spread; 100 ms if unset.
func WithPace(every time.Duration) Option { return func(b *Recorder) { b.callers.Every = every } }

// NewRecorder makes a Recorder. The client may read from a cache; live must not.
func NewRecorder(c client.Client, live client.Reader, e *engine.Engine, targets *Targets, versions Versions, opts ...Option) *Recorder {
	b := &Recorder{client: c, live: live, engine: e, targets: targets, version: versions, now: time.Now}
	b.callers = coalesce.Queue[types.NamespacedName, *pendingRecord]{Most: most, Patience: patience, Every: pace, Answer: b.writeBatch, Fail: failWaiting}
	for _, opt := range opts {
		opt(b)
	}
	return b
}

// Place is the place of a pod in a subset; nil if the pod gets none.
type Place struct {
	Subset *kruise.WorkloadSpreadSubset
	// UID is the key under which a pod without a name is recorded.
	UID string
	// Cost is the deletion cost of the pod, as the controller would write it; 0 if the workload does not use costs.
	Cost int
}

// Create decides the subset of a new pod, and records the pod unless it is a dry run (WS-02, WS-03).
func (b *Recorder) Create(ctx context.Context, cached *kruise.WorkloadSpread, pod *corev1.Pod, dryRun bool) (*Place, error) {
	version := b.version.PodVersion(cached, pod)
	limits, replicas, err := b.currentLimits(ctx, cached)
	if err != nil {
		return nil, err
	}
	name := b.decideSubset(ctx, cached, version, limits, pod)
	if dryRun || PodOrdinal(cached, pod) != nil || name != "" && !goesByStatus(cached, limits, subsetIndex(cached, name)) {
		return placeNext(cached, version, name, replicas), nil
	}
	var at *Place
	undo := func(ctx context.Context, w *kruise.WorkloadSpread) (bool, error) {
		if at == nil || at.UID == "" { // a pod with a name has one record, which the next request for it relies on
			return false, nil
		}
		return b.dropRecord(ctx, w, version, at.UID)
	}
	err = b.coalesceWrite(ctx, cached, undo, func(ctx context.Context, w *kruise.WorkloadSpread) (changed bool, err error) {
		limits, replicas, err := b.currentLimits(ctx, w)
		if err != nil {
			return false, err
		}
		if at, changed = b.placeNewPod(ctx, w, version, limits, replicas, pod); at != nil || !hasPercentages(w) {
			return changed, nil
		}
		// By the replicas in the cache there is no room. The workload may have been scaled since, which the cache may not show yet.
		t, err := b.targets.readLive(ctx, w)
		if err != nil || t == nil || t.Replicas == replicas {
			return false, err
		}
		if limits, err = limitsOf(w, t.Replicas); err != nil {
			return false, err
		}
		at, changed = b.placeNewPod(ctx, w, version, limits, t.Replicas, pod)
		return changed, nil
	})
	if apierrors.IsNotFound(err) { // the spread was deleted
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return at, nil
}

// goesByStatus reports whether the decision for a subset depends on the status of the spread, or has to be recorded in it. A late cache
// may lack the record of a deleted pod, whose place is free, or the condition that a subset has no room.
func goesByStatus(w *kruise.WorkloadSpread, limits []*int, chosen int) bool {
	s := &w.Spec.ScheduleStrategy
	return s.Type == kruise.AdaptiveWorkloadSpreadScheduleStrategyType && len(limits) > 1 ||
		slices.ContainsFunc(limits[:chosen+1], func(limit *int) bool { return limit != nil })
}

func (b *Recorder) placeNewPod(ctx context.Context, w *kruise.WorkloadSpread, version string, limits []*int, replicas int, pod *corev1.Pod) (*Place, bool) {
	if pod.Name != "" { // the API server may send the request twice
		for _, s := range w.Status.VersionedSubsetStatuses[version] {
			_, creating := s.CreatingPods[pod.Name]
			if _, deleting := s.DeletingPods[pod.Name]; creating || deleting {
				return placeOf(w, s.Name, CountPods(&s), replicas), false
			}
		}
	}
	name := b.decideSubset(ctx, w, version, limits, pod)
	if name == "" || limits[subsetIndex(w, name)] == nil {
		return placeNext(w, version, name, replicas), false
	}
	key, uid := pod.Name, ""
	if key == "" {
		uid = string(uuid.NewUUID())
		key = uid
	}
	s := *statusOfCopy(w, version, name)
	if s.CreatingPods == nil {
		s.CreatingPods = map[string]metav1.Time{}
	}
	s.CreatingPods[key] = metav1.NewTime(b.now()).Rfc3339Copy()
	setSubsetStatus(w, version, limits, s)
	at := placeOf(w, name, CountPods(&s), replicas)
	at.UID = uid
	return at, true
}

// dropRecord drops the record of a pod that is not created after all.
func (b *Recorder) dropRecord(ctx context.Context, w *kruise.WorkloadSpread, version, key string) (bool, error) {
	for _, part := range w.Status.VersionedSubsetStatuses[version] {
		if _, known := part.CreatingPods[key]; !known {
			continue
		}
		limits, _, err := b.currentLimits(ctx, w)
		if err != nil {
			return false, err
		}
		s := *part.DeepCopy()
		delete(s.CreatingPods, key)
		setSubsetStatus(w, version, limits, s)
		return true, nil
	}
	return false, nil
}

func statusOfCopy(w *kruise.WorkloadSpread, version, name string) *kruise.WorkloadSpreadSubsetStatus {
	s := statusOf(w, version, name)
	return s.DeepCopy()
}

func subsetIndex(w *kruise.WorkloadSpread, name string) int {
	return slices.IndexFunc(w.Spec.Subsets, func(s kruise.WorkloadSpreadSubset) bool { return s.Name == name })
}

// placeOf returns the place of the n-th pod of a subset; nil if there is no such subset.
func placeOf(w *kruise.WorkloadSpread, name string, n, replicas int) *Place {
	i := subsetIndex(w, name)
	if i < 0 {
		return nil
	}
	at := &Place{Subset: &w.Spec.Subsets[i]}
	if UsesCosts(w) {
		at.Cost = CostsOf(w, replicas).CostOf(i, n)
	}
	return at
}

// placeNext returns the place of the next pod of a subset, by the records.
func placeNext(w *kruise.WorkloadSpread, version, name string, replicas int) *Place {
	s := statusOf(w, version, name)
	return placeOf(w, name, CountPods(&s)+1, replicas)
}

// decideSubset evaluates which subset a pod gets.
func (b *Recorder) decideSubset(ctx context.Context, w *kruise.WorkloadSpread, version string, limits []*int, pod *corev1.Pod) string {
	in := buildSubsetInput(w, version, limits, pod, b.now())
	subject := decision.Subject{Kind: "Pod", Namespace: w.Namespace, Name: in.Pod.Name}
	out, _ := engine.Decide(ctx, b.engine, placement.SubsetPoint(), subject, in)
	return out.PermittedSubset(in)
}

// currentLimits returns the limits of the subsets for the present number of replicas, and that number. It reads the number
// only if a limit is a percentage; otherwise it is 0.
func (b *Recorder) currentLimits(ctx context.Context, w *kruise.WorkloadSpread) ([]*int, int, error) {
	replicas := 0
	if hasPercentages(w) {
		t, err := b.targets.ReadTarget(ctx, w)
		if err != nil {
			return nil, 0, err
		}
		if t != nil {
			replicas = t.Replicas
		}
	}
	limits, err := limitsOf(w, replicas)
	return limits, replicas, err
}

// Delete records the deletion of a pod, so that another pod can take its place (WS-04).
func (b *Recorder) Delete(ctx context.Context, cached *kruise.WorkloadSpread, pod *corev1.Pod, mark *Mark) error {
	version := b.version.PodVersion(cached, pod)
	err := b.coalesceWrite(ctx, cached, nil, func(ctx context.Context, w *kruise.WorkloadSpread) (bool, error) {
		i := subsetIndex(w, mark.Subset)
		if i < 0 {
			return false, nil
		}
		limits, _, err := b.currentLimits(ctx, w)
		if err != nil {
			return false, err
		}
		s := statusOfCopy(w, version, mark.Subset)
		if _, known := s.DeletingPods[pod.Name]; known || limits[i] == nil {
			return false, nil
		}
		if s.DeletingPods == nil {
			s.DeletingPods = map[string]metav1.Time{}
		}
		s.DeletingPods[pod.Name] = metav1.NewTime(b.now()).Rfc3339Copy()
		setSubsetStatus(w, version, limits, *s)
		return true, nil
	})
	return client.IgnoreNotFound(err)
}

// ChangeStatus changes the present status of a spread, in the same write as waiting records of pods.
// change reports whether it changed anything; it is called again if another client has written meanwhile.
// The error is a 404 if the spread is gone.
func (b *Recorder) ChangeStatus(ctx context.Context, w *kruise.WorkloadSpread, change func(*kruise.WorkloadSpread) bool) error {
	return b.coalesceWrite(ctx, w, nil, func(_ context.Context, now *kruise.WorkloadSpread) (bool, error) {
		return now.UID == w.UID && change(now), nil
	})
}

// recordFunc changes a spread as it is now, and reports whether it changed anything.
type recordFunc func(context.Context, *kruise.WorkloadSpread) (bool, error)

// coalesceWrite writes the status together with other waiting callers. If ctx ends first, undo is written later, so that
// the refused request leaves nothing; nil if there is nothing to undo.
func (b *Recorder) coalesceWrite(ctx context.Context, w *kruise.WorkloadSpread, undo, write recordFunc) error {
	c := &pendingRecord{ctx: ctx, write: write, undo: undo, done: make(chan struct{})}
	b.callers.EnqueueCaller(client.ObjectKeyFromObject(w), c)
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
	}
	if !c.ended.CompareAndSwap(false, true) { // the answer came at the same time
		<-c.done
		return c.err
	}
	return fmt.Errorf("recording a pod in WorkloadSpread %s: %w", w.Name, ctx.Err())
}

// compareUndos orders undos before callers.
func compareUndos(a, b *pendingRecord) int {
	switch {
	case a.isUndo && !b.isUndo:
		return -1
	case b.isUndo && !a.isUndo:
		return 1
	}
	return 0
}

// writeBatch serves a batch with one read of the spread. The callers change it one after the other, so each sees the changes of
// those before it.
func (b *Recorder) writeBatch(ctx context.Context, key types.NamespacedName, batch []*pendingRecord) {
	slices.SortStableFunc(batch, compareUndos)
	for try := 1; ; try++ {
		batch = slices.DeleteFunc(batch, func(c *pendingRecord) bool { return c.ctx.Err() != nil })
		w := &kruise.WorkloadSpread{}
		err := b.live.Get(ctx, key, w)
		changed := false
		for _, c := range batch {
			if err != nil {
				break
			}
			did := false
			c.err = recovery.Call("workloadspread", func() (err error) {
				did, err = c.write(ctx, w)
				return err
			})
			if c.err == nil {
				changed = changed || did
			}
		}
		wrote := err == nil && changed
		if wrote {
			err = b.client.Status().Update(ctx, w)
		}
		if apierrors.IsConflict(err) && try < tries {
			coalesce.SleepJitter(ctx, try)
			continue
		}
		if apierrors.IsConflict(err) {
			err, wrote = errContended, false
		}
		b.answerCallers(key, batch, wrote, err)
		return
	}
}

// answerCallers gives each caller of a batch its answer: the error, if it is not nil. wrote is true if the status may have
// been written; what was written for callers that have left, or that get an error, is taken back.
func (b *Recorder) answerCallers(key types.NamespacedName, batch []*pendingRecord, wrote bool, err error) {
	for _, c := range batch {
		if err != nil {
			c.err = err
		}
		failed := c.err != nil // perhaps only the response was lost
		if left := !c.giveAnswer(); wrote && (left || failed) && c.undo != nil {
			// If the undo fails, the record ends by its age.
			b.callers.EnqueueCaller(key, &pendingRecord{ctx: context.Background(), write: c.undo, isUndo: true, done: make(chan struct{})})
		}
	}
}

// failWaiting gives an error to the callers that still wait.
func failWaiting(batch []*pendingRecord, err error) {
	for _, c := range batch {
		select {
		case <-c.done:
		default:
			c.err = err
			c.giveAnswer()
		}
	}
}
