package inplace

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
)

// Updater carries updates out. A pod costs one write, two more when it has the
// readiness gate, and one when resources change.
type Updater struct {
	Client client.Client
	Now    func() time.Time
}

// Start begins an update (features.md 1.5, steps a to c): not ready first,
// where that is called for, then the record and the change in one write. edit
// adds to that write. It returns the pod as written and, when a grace period
// has to pass, how long.
func (u Updater) Start(ctx context.Context, pod *corev1.Pod, spec *kruise.UpdateSpec, edit func(*corev1.Pod)) (*corev1.Pod, time.Duration, error) {
	pod = pod.DeepCopy()
	if RestartsContainers(pod, spec) && HasGate(pod) {
		if err := u.setReady(ctx, pod, metav1.ConditionFalse); err != nil {
			return nil, 0, err
		}
	}
	before := pod.DeepCopy()
	now := metav1.NewTime(u.Now())
	setRevision(pod, spec.Revision)
	if edit != nil {
		edit(pod)
	}
	state := &kruise.InPlaceUpdateState{
		Revision: spec.Revision, UpdateTimestamp: now,
		LastContainerStatuses: map[string]kruise.InPlaceUpdateContainerStatus{},
	}
	if spec.GraceSeconds > 0 {
		raw, err := json.Marshal(spec)
		if err != nil {
			return nil, 0, fmt.Errorf("encoding update of pod %s: %w", pod.Name, err)
		}
		setAnnotation(pod, kruise.InPlaceUpdateGraceKey, string(raw))
		if err := setState(pod, state); err != nil {
			return nil, 0, err
		}
		return pod, time.Duration(spec.GraceSeconds) * time.Second, u.patch(ctx, pod, before)
	}
	if err := u.apply(ctx, pod, before, state, spec); err != nil {
		return nil, 0, err
	}
	return pod, 0, nil
}

// apply makes the first batch's change and records it, in one write.
func (u Updater) apply(ctx context.Context, pod, before *corev1.Pod, state *kruise.InPlaceUpdateState, spec *kruise.UpdateSpec) error {
	if err := patchMetadata(pod, spec.MetaDataPatch); err != nil {
		return err
	}
	state.UpdateEnvFromMetadata = spec.UpdateEnvFromMetadata
	state.UpdateImages = len(spec.ContainerImages) > 0
	state.UpdateResources = len(spec.ContainerResources) > 0
	w := work{maps.Clone(spec.ContainerImages), maps.Clone(spec.ContainerRefMetadata), maps.Clone(spec.ContainerResources)}
	return u.applyBatch(ctx, pod, before, state, w)
}

func (u Updater) applyBatch(ctx context.Context, pod, before *corev1.Pod, state *kruise.InPlaceUpdateState, w work) error {
	now, later := batch(pod, w)
	resized := false
	for _, name := range now {
		c := container(pod, name)
		_, image := w.images[name]
		_, meta := w.metadata[name]
		if image || meta {
			last := kruise.InPlaceUpdateContainerStatus{}
			if st := statusOf(pod, name); st != nil {
				last.ImageID, last.ContainerID = st.ImageID, st.ContainerID
			}
			state.LastContainerStatuses[name] = last
		}
		if image {
			c.Image = w.images[name]
			delete(w.images, name)
		}
		if meta {
			writeMetadata(pod, w.metadata[name])
			delete(w.metadata, name)
		}
		if r, ok := w.resources[name]; ok {
			resize(c, r)
			delete(w.resources, name)
			resized = true
		}
	}
	state.NextContainerImages, state.NextContainerRefMetadata, state.NextContainerResources = w.images, w.metadata, w.resources
	state.PreCheckBeforeNext = nil
	if len(later) > 0 {
		state.PreCheckBeforeNext = &kruise.InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: now}
	}
	if len(now) > 0 {
		state.ContainerBatchesRecord = append(state.ContainerBatchesRecord, kruise.InPlaceUpdateContainerBatch{Timestamp: metav1.NewTime(u.Now()), Containers: now})
	}
	if err := setState(pod, state); err != nil {
		return err
	}
	if !resized {
		return u.patch(ctx, pod, before)
	}
	return u.patchResized(ctx, pod, before)
}

// patchResized writes resources by the sub-resource that Kubernetes 1.33 and
// newer want them by, after everything else: the record tells a crash between.
func (u Updater) patchResized(ctx context.Context, pod, before *corev1.Pod) error {
	wanted := pod.DeepCopy()
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Resources = before.Spec.Containers[i].Resources
	}
	if err := u.patch(ctx, pod, before); err != nil {
		return err
	}
	base := pod.DeepCopy()
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Resources = wanted.Spec.Containers[i].Resources
	}
	if err := u.Client.SubResource("resize").Patch(ctx, pod, client.StrategicMergeFrom(base)); err != nil {
		return fmt.Errorf("resizing pod %s: %w", pod.Name, err)
	}
	return nil
}

// patch writes the difference, provided nobody wrote the pod since.
func (u Updater) patch(ctx context.Context, pod, before *corev1.Pod) error {
	p := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := u.Client.Patch(ctx, pod, p); err != nil {
		return fmt.Errorf("updating pod %s in place: %w", pod.Name, err)
	}
	return nil
}

func container(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i]
		}
	}
	return &corev1.Container{} // batch only names containers of the pod
}

func resize(c *corev1.Container, r corev1.ResourceRequirements) {
	for name, q := range r.Limits {
		if c.Resources.Limits == nil {
			c.Resources.Limits = corev1.ResourceList{}
		}
		c.Resources.Limits[name] = q
	}
	for name, q := range r.Requests {
		if c.Resources.Requests == nil {
			c.Resources.Requests = corev1.ResourceList{}
		}
		c.Resources.Requests[name] = q
	}
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

// setRevision labels the pod with its new revision, in the form it had.
func setRevision(pod *corev1.Pod, name string) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels["controller-revision-hash"] = name
	pod.Labels["pod-template-hash"] = revision.Short(name)
}
