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

// Updater carries out updates. An update takes one write, two more if the pod has the
// readiness gate, and one more if resources change.
type Updater struct {
	Client client.Client
	// Live reads past the cache after a conflict. If it is nil, the next round
	// tries again. That takes two more writes, since the pod is made ready before it.
	Live client.Reader
	Now  func() time.Time
	// Refused remembers which rollouts are refused, so that pods do not leave
	// their services for a change that is refused. If it is nil, each try may do that.
	Refused *Refusals
}

// races is how many times a change is tried again after a conflict with the kubelet.
const races = 3

// Start begins an update. If the update requires it, the pod is made not ready
// first. Then the record and the change are one write; edit
// adds to it. Start returns the pod as it was last written, nil if it was
// not, also if it fails half-way, and the length of the grace period that has to pass,
// if any. A pod whose change is refused returns to its services.
func (u Updater) Start(ctx context.Context, pod *corev1.Pod, spec *kruise.UpdateSpec, edit func(*corev1.Pod)) (*corev1.Pod, time.Duration, error) {
	return u.startUpdate(ctx, pod, spec, RestartsContainers(pod, spec) && HasGate(pod), edit)
}

// StartReady begins an update as Start does, but leaves the readiness gate of the pod open.
func (u Updater) StartReady(ctx context.Context, pod *corev1.Pod, spec *kruise.UpdateSpec, edit func(*corev1.Pod)) (*corev1.Pod, time.Duration, error) {
	return u.startUpdate(ctx, pod, spec, false, edit)
}

// startUpdate begins an update. leaves is true if the pod is to be made not ready first.
func (u Updater) startUpdate(ctx context.Context, pod *corev1.Pod, spec *kruise.UpdateSpec, leaves bool, edit func(*corev1.Pod)) (*corev1.Pod, time.Duration, error) {
	pod = pod.DeepCopy()
	var written *corev1.Pod
	earlier, served, resizes := unfinishedContainers(pod), false, len(spec.ContainerResources) > 0
	if leaves {
		c := FindCondition(pod, kruise.InPlaceUpdateReady)
		served = c != nil && c.Status == corev1.ConditionTrue
	}
	// A resize is a separate write. The dry run makes sure that no pod gets only that half of an update.
	if (served || resizes) && !u.Refused.isAssumedAllowed(pod, spec.Revision) {
		if err := u.dryRunChange(ctx, pod, earlier, spec, edit); err != nil {
			return nil, 0, err
		}
	}
	if leaves {
		// The write fails if the pod has changed: a pod that was chosen because it is not available
		// does not reduce availability, but it may have become available since.
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

// changeWithRetries changes a pod. After a write of the status or of resources, the kubelet writes
// the status, often before the next write here. After such a conflict the change is repeated on the pod as it
// is then. written is the pod if it was written before, else nil. The results are those of changePod.
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
			break // return the first error, which is the cause
		}
		written = now
		changed, grace, err = u.changePod(ctx, now, earlier, spec, edit)
	}
	if changed == nil {
		changed = written
	}
	return changed, grace, err
}

// rereadIfSameSpec returns the pod as it is now, if only its status was written since; else nil.
func (u Updater) rereadIfSameSpec(ctx context.Context, written *corev1.Pod) *corev1.Pod {
	now := &corev1.Pod{}
	if u.Live == nil || u.Live.Get(ctx, client.ObjectKeyFromObject(written), now) != nil || !sameButStatus(written, now) {
		return nil
	}
	return now
}

// containers are records of containers by name, as an update writes them.
type containers = map[string]kruise.InPlaceUpdateContainerStatus

// changePod records an update of a pod as the API server has it, and makes the
// change, or records it for the end of the grace period. earlier are the containers
// that an earlier update has not finished.
func (u Updater) changePod(ctx context.Context, before *corev1.Pod, earlier containers, spec *kruise.UpdateSpec, edit func(*corev1.Pod)) (*corev1.Pod, time.Duration, error) {
	pod := before.DeepCopy()
	setRevision(pod, spec.Revision)
	dropGrace(pod) // the grace period of an update that this one replaces
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
// not replaced yet, as far as their IDs show. The next update waits for them too,
// and needs the images from which they were started.
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

// applyFirstBatch changes the containers of the first batch and records it, in one write.
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

// applyBatch changes the containers of the next batch. before is the pod as the
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

// recordContainer returns the record that later shows whether a container was replaced. It has the imageID
// only if the image changes. If only the env changes, a new container is the only
// evidence.
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
				last.Image = earlier.Image // the container still runs the image from before that update
			}
		}
	}
	return last
}

// patchPod writes the changes. It fails if another client wrote the pod since.
func (u Updater) patchPod(ctx context.Context, pod, before *corev1.Pod) (*corev1.Pod, error) {
	p := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := u.Client.Patch(ctx, pod, p); err != nil {
		return nil, fmt.Errorf("updating pod %s in place: %w", pod.Name, err)
	}
	return pod, nil
}

// findContainer returns the container with a name; an empty one if the pod has none.
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
