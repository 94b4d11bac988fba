package cloneset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
)

// idLength is how long an instance id is: the end of a pod's and a claim's name.
const idLength = 5

// create makes a pod of each id, the first of them from the current revision and
// the rest from the update revision (CS-05). It starts slowly, so that a template
// that cannot work costs one failed write and not a thousand; one that has worked
// the last time need not: a recreation comes here many times.
func (r *Reconciler) create(ctx context.Context, w *world, ids []string, current int) error {
	acts := make([]func() error, 0, len(ids))
	last := ""
	for i, id := range ids {
		rev := w.history.Update
		if i < current {
			rev = w.history.Current
		}
		last = rev.Name
		acts = append(acts, func() error { return r.createPod(ctx, w, rev, id) })
	}
	size := 1
	if w.memory.proven == last {
		size = r.writes
	}
	err := slowly(r.writes, size, r.inTurn(w, acts))
	if err != nil {
		last = ""
	}
	w.memory.proven = last
	return err
}

// freeIDs returns ids for at most n of the missing pods: first ids that were tried
// in vain, then ids of claims that no pod uses, so that the claims are reused, then
// new ids. The replacement of a terminating pod whose claims are kept waits for the
// end of that pod, and takes its id then: no other pod is made in its place.
func (w *world) freeIDs(missing, n int) []string {
	awaited := w.awaitedIDs()
	n = min(n, missing-len(awaited))
	used := map[string]bool{}
	for _, p := range slices.Concat(w.raw, w.gone) {
		used[p.Labels[kruise.CloneSetInstanceIDKey]] = true
	}
	for _, id := range w.going { // a pod that waited for such a claim would wait for ever
		used[id] = true
	}
	for _, name := range w.set.Spec.ScaleStrategy.PodsToDelete { // a pod of this name would be deleted at once
		used[strings.TrimPrefix(name, podName(w.set, ""))] = true
	}
	var ids []string
	for _, id := range w.memory.toTry() {
		if awaited[id] {
			continue
		}
		if used[id] { // it was made after all
			w.memory.try(id, true)
		} else if len(ids) < n {
			used[id] = true
			ids = append(ids, id)
		}
	}
	for _, c := range w.claims {
		if id := c.Labels[kruise.CloneSetInstanceIDKey]; id != "" && !used[id] && !w.memory.taken(id) && len(ids) < n {
			used[id] = true
			ids = append(ids, id)
		}
	}
	for _, c := range w.claims {
		used[c.Labels[kruise.CloneSetInstanceIDKey]] = true
	}
	for len(ids) < n {
		if id := rand.String(idLength); !used[id] {
			used[id] = true
			ids = append(ids, id)
		}
	}
	for id := range awaited { // first in turn when the pod has ended
		w.memory.try(id, false)
	}
	return ids
}

func (r *Reconciler) createPod(ctx context.Context, w *world, rev *appsv1.ControllerRevision, id string) error {
	pod, err := r.newPod(w, rev, id)
	if err == nil {
		err = r.createClaims(ctx, w, pod, id)
	}
	if err == nil {
		err = r.createObject(ctx, w, pod, id)
	}
	w.memory.try(id, err == nil || w.memory.taken(id))
	if errors.Is(err, errTerminating) {
		w.again.in(time.Second)
		return nil
	}
	if err != nil {
		r.warn(w.set, kruise.FailedCreateReason, fmt.Sprintf("failed to create pod: %v", err))
		return &createError{err}
	}
	r.overlay.Created(w.set.UID, pod)
	r.normal(w.set, kruise.SuccessfulCreateReason, fmt.Sprintf(kruise.SuccessfulCreateMessage, pod.Name))
	// The gate is opened at once, so that the pod is ready as soon as its
	// containers are. Should it fail, the next round does it.
	if ready, err := r.updater.MarkCreated(ctx, pod); err == nil {
		r.wrote(ctx, w, pod, ready, nil)
	}
	return nil
}

// errTerminating is returned while a terminating pod of the CloneSet still has the
// name of the pod to create. The same name is tried again after its end.
var errTerminating = errors.New("a pod of this name is terminating")

// createObject creates a pod. One that is there already may be ours, if the answer
// to an earlier attempt was lost or the cache does not show it yet; or somebody
// else's, such as one that was released, whose id is not used again.
func (r *Reconciler) createObject(ctx context.Context, w *world, pod *corev1.Pod, id string) error {
	err := r.client.Create(ctx, pod)
	if err == nil {
		return nil
	}
	if apierrors.IsAlreadyExists(err) || indeterminate(err) {
		found := &corev1.Pod{}
		read := r.live.Get(ctx, client.ObjectKeyFromObject(pod), found)
		if read == nil && metav1.IsControlledBy(found, w.set) {
			if found.DeletionTimestamp != nil {
				return errTerminating
			}
			found.DeepCopyInto(pod)
			return nil
		}
		if read == nil {
			w.memory.take(id)
		}
	}
	return fmt.Errorf("creating pod %s: %w", pod.Name, err)
}

func podName(set *kruise.CloneSet, id string) string { return set.Name + "-" + id }

// newPod makes a pod of a revision's template.
func (r *Reconciler) newPod(w *world, rev *appsv1.ControllerRevision, id string) (*corev1.Pod, error) {
	template, err := revision.Template(rev)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: podName(w.set, id), Namespace: w.set.Namespace,
			Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.set, OwnerKind())},
		},
		Spec: template.Spec,
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[kruise.CloneSetInstanceIDKey] = id
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = w.label(rev.Name)
	pod.Labels[podTemplateHash] = revision.Short(rev.Name)
	for _, gate := range []corev1.PodConditionType{kruise.InPlaceUpdateReady, kruise.KruisePodReady} {
		inplace.AddGate(pod, gate)
	}
	state := kruise.LifecycleStatePreparingNormal
	if w.set.Spec.Lifecycle == nil {
		state = kruise.LifecycleStateNormal // no hook can hold it: one write less for each pod
	}
	lifecycle.Set(pod, state, w.now)
	pod.Spec.Volumes = withClaims(pod.Spec.Volumes, w.set, id)
	return pod, nil
}

// podTemplateHash is the label with the short hash, always.
const podTemplateHash = "pod-template-hash"

// label is how a pod is labelled with a revision.
func (w *world) label(name string) string {
	if w.gates.ShortHash {
		return revision.Short(name)
	}
	return name
}
