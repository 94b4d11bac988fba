// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
)

// world is an API server with one pod, and a kubelet for it.
type world struct {
	t interface {
		Helper()
		Fatal(...any)
	}
	client client.Client
	u      Updater
	now    time.Time
	writes int
	fail   func(write int) error // nil: none fails
	// running is what each container runs, as far as the kubelet got.
	running map[string]string
	started int
	// cannot is why the node cannot give resources: Infeasible or Deferred; "" if it can.
	cannot string
}

func newWorld(t interface {
	Helper()
	Fatal(...any)
}, pod *corev1.Pod) *world {
	w := &world{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), running: map[string]string{}}
	attempt := func() error {
		w.writes++
		if w.fail != nil {
			return w.fail(w.writes)
		}
		return nil
	}
	base := fake.NewClientBuilder().WithObjects(pod).WithStatusSubresource(&corev1.Pod{}).Build()
	w.client = interceptor.NewClient(base, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := attempt(); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := attempt(); err != nil {
				return err
			}
			if sub == "resize" { // the fake client knows none; it takes resources with the rest
				all := client.SubResourcePatchOptions{}
				for _, opt := range opts {
					opt.ApplyToSubResourcePatch(&all)
				}
				return c.Patch(ctx, o, p, &all.PatchOptions)
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	w.u = Updater{Client: w.client, Now: func() time.Time { return w.now }}
	return w
}

func (w *world) pod() *corev1.Pod {
	w.t.Helper()
	var list corev1.PodList
	if err := w.client.List(context.Background(), &list); err != nil || len(list.Items) != 1 {
		w.t.Fatal("listing pods:", err, len(list.Items))
	}
	return &list.Items[0]
}

// kubelet starts what the spec says anew, as far as anything changed, and tells
// of it. Tags of one digest share the part before the dash: web:1-a, web:1-b.
func (w *world) kubelet() {
	w.t.Helper()
	pod := w.pod()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ObservedGeneration = pod.Generation
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		st := statusOf(pod, c.Name)
		if st == nil {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name})
			st = statusOf(pod, c.Name)
		}
		if wants := w.wants(pod, c); w.running[c.Name] != wants || awaited(pod, st) {
			w.started++
			w.running[c.Name] = wants
			st.ContainerID = fmt.Sprint("c", w.started)
			before := st.ImageID
			st.ImageID = digest(c.Image)
			if before != st.ImageID || st.Image == "" { // a runtime may go on telling the other name of one digest
				st.Image = "docker.io/library/" + c.Image
			}
		}
		st.Ready, st.State = true, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	}
	w.size(pod)
	if err := w.client.Status().Update(context.Background(), pod); err != nil {
		w.t.Fatal("updating the status:", err)
	}
}

// size gives the containers of a pod the resources of its spec, by new containers where
// their policy says so, or says that the node cannot.
func (w *world) size(pod *corev1.Pod) {
	late := false
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		st := statusOf(pod, c.Name)
		changed := differingResources(c, st)
		switch {
		case st.Resources != nil && len(changed) > 0 && w.cannot != "":
			late = true
			continue
		case st.Resources != nil && slices.ContainsFunc(changed, func(name corev1.ResourceName) bool { return restartsFor(c, name) }):
			w.started++
			st.ContainerID = fmt.Sprint("c", w.started)
		}
		st.Resources = c.Resources.DeepCopy()
	}
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
	if late {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: w.cannot, Message: "Node didn't have enough capacity: cpu",
		})
	}
}

// awaited reports whether the record waits for a container to be started anew though
// its image stays: that is what a node agent goes by. The values that it reads
// may well be what they were, when one update has undone another.
func awaited(pod *corev1.Pod, st *corev1.ContainerStatus) bool {
	s, err := DecodeState(pod)
	if err != nil || s == nil {
		return false
	}
	last, ok := s.LastContainerStatuses[st.Name]
	return ok && last.ImageID == "" && last.ContainerID != "" && last.ContainerID == st.ContainerID
}

// wants is what a container is to run: its image and what its env reads. Only
// the node agent restarts a container for its env; here the kubelet represents it.
func (w *world) wants(pod *corev1.Pod, c *corev1.Container) string {
	text := c.Image
	for _, e := range c.Env {
		if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
			continue
		}
		if kind, key, ok := runtimemeta.FieldRef(e.ValueFrom.FieldRef.FieldPath); ok {
			m := Metadata{Labels: pod.Labels, Annotations: pod.Annotations}
			value, _ := m.getEntry(kind, key)
			text += fmt.Sprintf(" %s=%s", key, value)
		}
	}
	return text
}

func digest(image string) string {
	for i := range image {
		if image[i] == '-' {
			image = image[:i]
			break
		}
	}
	h := fnv.New32a()
	h.Write([]byte(image))
	return fmt.Sprintf("docker.io/library/x@sha256:%x", h.Sum32())
}

// finish goes on with the pod's update until there is nothing to do.
func (w *world) finish() {
	w.t.Helper()
	for range 50 {
		next, left, err := w.u.NextStep(w.pod())
		switch {
		case err != nil:
			w.t.Fatal(err)
		case left > 0:
			w.now = w.now.Add(left)
		case next == Batch || next == Grace:
			if _, err := w.u.ContinueUpdate(context.Background(), w.pod(), next); err != nil {
				w.t.Fatal(err)
			}
		case IncompleteReason(w.pod()) == "":
			return
		default:
			w.kubelet()
		}
	}
	w.t.Fatal("the update does not come to an end: ", IncompleteReason(w.pod()), " ", w.pod().Annotations)
}

// podOf is a pod of a template, as a workload creates it.
func podOf(template *corev1.PodTemplateSpec, gated bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Name, pod.Namespace, pod.UID = "web-a", "shop", "uid"
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[revisionLabel], pod.Labels["instance"] = "web-1", "a"
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		c.Resources.Requests = defaultedRequests(c) // by the API server
	}
	if gated {
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}}
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Unix(1, 0))},
			{Type: kruise.InPlaceUpdateReady, Status: corev1.ConditionTrue},
		}
	}
	return pod
}

func conditions(p *corev1.Pod) []string {
	var out []string
	for _, c := range p.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	slices.Sort(out)
	return out
}
