// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
)

// revisionLabel and shortLabel name the revision of a pod.
const (
	revisionLabel = appsv1.ControllerRevisionHashLabelKey
	shortLabel    = "pod-template-hash"
)

// Updater carries updates out. A pod costs one write, two more when it has the
// readiness gate, and one when resources change.
type Updater struct {
	Client client.Client
	// Live reads past the cache, after a lost race; nil if the next round is to
	// try again. That costs two more writes: the pod is made ready before it.
	Live client.Reader
	Now  func() time.Time
	// Refused remembers which rollouts are refused, so that pods are not taken out of
	// their services for nothing; nil if that may happen at each try.
	Refused *Refusals
}

// races is how often in a row a kubelet may be faster.
const races = 3

// Start begins an update: not ready first,
// where that is called for, then the record and the change in one write. edit
// adds to that write. It returns the pod as it was written last, nil if it was
// not, even where it fails half-way; and, when a grace period has to pass, how
// long. A pod whose change is refused goes back to its services.
func (u Updater) Start(ctx context.Context, pod *corev1.Pod, spec *kruise.UpdateSpec, edit func(*corev1.Pod)) (*corev1.Pod, time.Duration, error) {
	return u.startUpdate(ctx, pod, spec, RestartsContainers(pod, spec) && HasGate(pod), edit)
}

// StartReady begins an update as Start does, but leaves the readiness gate of the pod open.
func (u Updater) StartReady(ctx context.Context, pod *corev1.Pod, spec *kruise.UpdateSpec, edit func(*corev1.Pod)) (*corev1.Pod, time.Duration, error) {
	return u.startUpdate(ctx, pod, spec, false, edit)
}

// startUpdate begins an update. leaves is true where the pod is made not ready first.
func (u Updater) startUpdate(ctx context.Context, pod *corev1.Pod, spec *kruise.UpdateSpec, leaves bool, edit func(*corev1.Pod)) (*corev1.Pod, time.Duration, error) {
	pod = pod.DeepCopy()
	var written *corev1.Pod
	earlier, served, resizes := unfinishedContainers(pod), false, len(spec.ContainerResources) > 0
	if leaves {
		c := FindCondition(pod, kruise.InPlaceUpdateReady)
		served = c != nil && c.Status == corev1.ConditionTrue
	}
	// A resize is a write of its own: no pod is to get half of an update.
	if (served || resizes) && !u.Refused.isAssumedAllowed(pod, spec.Revision) {
		if err := u.dryRunChange(ctx, pod, earlier, spec, edit); err != nil {
			return nil, 0, err
		}
	}
	if leaves {
		// Only as it was seen: a pod that is chosen because it is not available
		// costs nothing, but it may have become so since.
		if err := u.setReady(ctx, pod, metav1.ConditionFalse, pod.ResourceVersion, nil); err != nil {
			return nil, 0, err
		}
		written = pod.DeepCopy()
	}
	changed, grace, err := u.changeWithRetries(ctx, pod, written, earlier, spec, edit)
	if (leaves || resizes) && (err == nil || isRefused(err)) {
		u.Refused.recordOutcome(pod, spec.Revision, err != nil)
	}
	if served && isRefused(err) {
		changed, err = u.putBack(ctx, changed, err)
	}
	return changed, grace, err
}

// changeWithRetries makes the change of a pod. The kubelet answers a write of the status or of resources
// with one of its own, often before we are back; then it is made once more on the pod as it
// is now. written is the pod if it was written before, else nil. It returns what change does.
func (u Updater) changeWithRetries(ctx context.Context, pod, written *corev1.Pod, earlier containers, spec *kruise.UpdateSpec, edit func(*corev1.Pod)) (*corev1.Pod, time.Duration, error) {
	changed, grace, err := u.changePod(ctx, pod, earlier, spec, edit)
	for range races {
		if changed != nil {
			written = changed
		}
		if !apierrors.IsConflict(err) || written == nil {
			break
		}
		now := u.rereadIfSameSpec(ctx, written)
		if now == nil {
			break // the first error says what happened
		}
		written = now
		changed, grace, err = u.changePod(ctx, now, earlier, spec, edit)
	}
	if changed == nil {
		changed = written
	}
	return changed, grace, err
}

// rereadIfSameSpec is the pod as it is now, if only its status was written since; else nil.
func (u Updater) rereadIfSameSpec(ctx context.Context, written *corev1.Pod) *corev1.Pod {
	now := &corev1.Pod{}
	if u.Live == nil || u.Live.Get(ctx, client.ObjectKeyFromObject(written), now) != nil || !sameButStatus(written, now) {
		return nil
	}
	return now
}

// containers are containers by their names, as an update records them.
type containers = map[string]kruise.InPlaceUpdateContainerStatus

// changePod records an update of a pod as the API server has it, and makes the
// change, or leaves it to the end of the grace period. earlier are the containers
// that an earlier update has left unfinished.
func (u Updater) changePod(ctx context.Context, before *corev1.Pod, earlier containers, spec *kruise.UpdateSpec, edit func(*corev1.Pod)) (*corev1.Pod, time.Duration, error) {
	pod := before.DeepCopy()
	setRevision(pod, spec.Revision)
	dropGrace(pod) // of an update that this one replaces
	if edit != nil {
		edit(pod)
	}
	state := newState(spec.Revision, u.Now())
	maps.Copy(state.LastContainerStatuses, earlier)
	state.UpdateResources = hasPendingResize(before)
	if spec.GraceSeconds > 0 {
		written, err := u.recordGrace(ctx, pod, before, state, spec)
		return written, time.Duration(spec.GraceSeconds) * time.Second, err
	}
	written, err := u.applyFirstBatch(ctx, pod, before, state, spec)
	return written, 0, err
}

// sameButStatus reports whether only the status of a pod was written since.
func sameButStatus(was, is *corev1.Pod) bool {
	same := equality.Semantic.DeepEqual
	return was.UID == is.UID && was.Generation == is.Generation && is.DeletionTimestamp == nil && same(was.Spec, is.Spec) &&
		same(was.Labels, is.Labels) && same(was.Annotations, is.Annotations) && same(was.Finalizers, is.Finalizers) &&
		same(was.OwnerReferences, is.OwnerReferences)
}

func newState(target string, now time.Time) *kruise.InPlaceUpdateState {
	return &kruise.InPlaceUpdateState{
		Revision: target, UpdateTimestamp: metav1.NewTime(now),
		LastContainerStatuses: map[string]kruise.InPlaceUpdateContainerStatus{},
	}
}

// unfinishedContainers are the containers that an earlier update has changed and that were
// not replaced yet, as far as their ids tell. The next update waits for them too,
// and has to know by which image they were started.
func unfinishedContainers(pod *corev1.Pod) containers {
	out := containers{}
	s, err := DecodeState(pod)
	if err != nil || s == nil || (byOpenKruise(s) && readyAgain(pod)) {
		return out
	}
	for name, before := range s.LastContainerStatuses {
		st := statusOf(pod, name)
		if findContainer(pod, name).Name != "" && (st == nil || st.ContainerID == before.ContainerID || !isReplaced(pod, st, before, changedAt(s, name))) {
			out[name] = before
		}
	}
	for _, name := range envPending(pod, s) {
		if st := statusOf(pod, name); st != nil {
			out[name] = kruise.InPlaceUpdateContainerStatus{ContainerID: st.ContainerID}
		}
	}
	return out
}

// recordGrace records what to do when the grace period is over.
func (u Updater) recordGrace(ctx context.Context, pod, before *corev1.Pod, state *kruise.InPlaceUpdateState, spec *kruise.UpdateSpec) (*corev1.Pod, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding update of pod %s: %w", pod.Name, err)
	}
	setAnnotation(pod, kruise.InPlaceUpdateGraceKey, string(raw))
	if err := setState(pod, state); err != nil {
		return nil, err
	}
	return u.patchPod(ctx, pod, before)
}

// applyFirstBatch makes the first batch's change and records it, in one write.
func (u Updater) applyFirstBatch(ctx context.Context, pod, before *corev1.Pod, state *kruise.InPlaceUpdateState, spec *kruise.UpdateSpec) (*corev1.Pod, error) {
	if err := patchMetadata(pod, spec.MetaDataPatch); err != nil {
		return nil, err
	}
	state.UpdateEnvFromMetadata = spec.UpdateEnvFromMetadata
	state.UpdateImages = len(spec.ContainerImages) > 0
	state.UpdateResources = state.UpdateResources || len(spec.ContainerResources) > 0
	w := pendingWork{maps.Clone(spec.ContainerImages), maps.Clone(spec.ContainerRefMetadata), maps.Clone(spec.ContainerResources)}
	return u.applyBatch(ctx, pod, before, state, w)
}

// applyBatch changes the containers whose turn it is. before is the pod as the
// API server has it.
func (u Updater) applyBatch(ctx context.Context, pod, before *corev1.Pod, state *kruise.InPlaceUpdateState, w pendingWork) (*corev1.Pod, error) {
	now, later := splitBatch(pod, w)
	resized := false
	for _, name := range now {
		c := findContainer(pod, name)
		_, image := w.images[name]
		_, meta := w.metadata[name]
		if image || meta {
			state.LastContainerStatuses[name] = recordContainer(before, name, image)
		}
		if image {
			c.Image = w.images[name]
		}
		if meta {
			writeMetadata(pod, w.metadata[name])
		}
		if r, ok := w.resources[name]; ok {
			was := c.Resources.DeepCopy()
			setResources(c, r)
			resized = resized || !equality.Semantic.DeepEqual(*was, c.Resources)
		}
	}
	w.retainContainers(later)
	state.NextContainerImages, state.NextContainerRefMetadata, state.NextContainerResources = w.images, w.metadata, w.resources
	state.PreCheckBeforeNext = nil
	if len(later) > 0 {
		state.PreCheckBeforeNext = &kruise.InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: now}
	}
	if len(now) > 0 {
		state.ContainerBatchesRecord = append(state.ContainerBatchesRecord, kruise.InPlaceUpdateContainerBatch{Timestamp: metav1.NewTime(u.Now()), Containers: now})
	}
	if err := setState(pod, state); err != nil {
		return nil, err
	}
	if !resized {
		return u.patchPod(ctx, pod, before)
	}
	return u.patchResized(ctx, pod, before)
}

// recordContainer is what tells later that a container was replaced. Its imageID is
// kept only where its image changes: where only what its env reads does, nothing
// but a new container is a sign.
func recordContainer(pod *corev1.Pod, name string, image bool) kruise.InPlaceUpdateContainerStatus {
	last := kruise.InPlaceUpdateContainerStatus{}
	st := statusOf(pod, name)
	if st == nil {
		return last
	}
	last.ContainerID = st.ContainerID
	if image {
		last.ImageID, last.Image = st.ImageID, imageOf(pod, name)
		if s, err := DecodeState(pod); err == nil && s != nil {
			if earlier, ok := s.LastContainerStatuses[name]; ok && earlier.Image != "" && earlier.ContainerID == st.ContainerID {
				last.Image = earlier.Image // the container is still the one of before that update
			}
		}
	}
	return last
}

// patchPod writes the difference. It fails if another client wrote the pod since.
func (u Updater) patchPod(ctx context.Context, pod, before *corev1.Pod) (*corev1.Pod, error) {
	p := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := u.Client.Patch(ctx, pod, p); err != nil {
		return nil, fmt.Errorf("updating pod %s in place: %w", pod.Name, err)
	}
	return pod, nil
}

// findContainer is that of a name; an empty one if the pod has none.
func findContainer(pod *corev1.Pod, name string) *corev1.Container {
	return containerByName(pod.Spec.Containers, name)
}

func containerByName(all []corev1.Container, name string) *corev1.Container {
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return &corev1.Container{}
}

func writeMetadata(pod *corev1.Pod, m kruise.ContainerRefMetadata) {
	if pod.Labels == nil && len(m.Labels) > 0 {
		pod.Labels = map[string]string{}
	}
	maps.Copy(pod.Labels, m.Labels)
	for k, v := range m.Annotations {
		setAnnotation(pod, k, v)
	}
}

// setRevision labels the pod with its new revision.
func setRevision(pod *corev1.Pod, name string) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[revisionLabel] = name
	pod.Labels[shortLabel] = revision.ShortHash(name)
}
