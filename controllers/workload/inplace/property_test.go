// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// drawTemplate is any template that differs from others of its kind only by what
// can be changed in place.
func drawTemplate(t *rapid.T, containers []string) *corev1.PodTemplateSpec {
	p := &corev1.PodTemplateSpec{Spec: *barriered(containers...).Spec.DeepCopy()}
	keys := func(label string) map[string]string {
		out := map[string]string{"always": rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value")}
		for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"k", "l", "m/n"}), 0, 3, rapid.ID).Draw(t, label) {
			out[k] = rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "value")
		}
		return out
	}
	p.Labels, p.Annotations = keys("labels"), keys("annotations")
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		c.Image = c.Name + ":" + rapid.SampledFrom([]string{"1-a", "1-b", "2-a"}).Draw(t, "image")
		for _, key := range []string{"labels['k']", "annotations['l']", "labels['m/n']"}[:1+i%3] {
			c.Env = append(c.Env, corev1.EnvVar{Name: "X", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata." + key}}})
		}
		c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "cpu"))}
	}
	return p
}

// Wherever an update is overtaken by the next one, in a batch, between batches or
// before the kubelet has seen it, the pod comes to be as the last template says.
func TestAPodBecomesWhatItsLastTemplateSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var containers []string
		for i := range rapid.IntRange(1, 3).Draw(t, "containers") {
			name := fmt.Sprint("c", i)
			if rapid.Bool().Draw(t, "has a barrier") {
				name += fmt.Sprint("/p_", rapid.IntRange(0, 2).Draw(t, "barrier"))
			}
			containers = append(containers, name)
		}
		at := drawTemplate(t, containers)
		w := newWorld(t, podOf(at, rapid.Bool().Draw(t, "gate")))
		w.kubelet()
		for i := range rapid.IntRange(1, 3).Draw(t, "updates") {
			to := drawTemplate(t, containers)
			from, err := classify(at, to)
			if err != nil {
				t.Fatal(err)
			}
			spec, err := from.UpdateSpec(fmt.Sprint("web-", i+2), int32(rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "grace")), true)
			if err != nil {
				t.Fatal(err)
			}
			from.ResumePending(spec, w.pod())
			if _, _, err := w.u.Start(context.Background(), w.pod(), spec, nil); err != nil {
				t.Fatal(err)
			}
			at = to
			for range rapid.IntRange(0, 4).Draw(t, "steps before the next") {
				if rapid.Bool().Draw(t, "kubelet") {
					w.kubelet()
					continue
				}
				next, left, err := w.u.NextStep(w.pod())
				if err != nil {
					t.Fatal(err)
				}
				w.now = w.now.Add(left)
				if next == Batch || next == Grace {
					if _, err := w.u.ContinueUpdate(context.Background(), w.pod(), next); err != nil {
						t.Fatal(err)
					}
				}
			}
			for InGrace(w.pod()) { // such a pod is no candidate
				next, left, err := w.u.NextStep(w.pod())
				if err != nil {
					t.Fatal(err)
				}
				w.now = w.now.Add(left)
				if next == Grace {
					if _, err := w.u.ContinueUpdate(context.Background(), w.pod(), next); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		w.finish()
		w.kubelet()
		got := w.pod()
		for i := range at.Spec.Containers {
			want, has := at.Spec.Containers[i], got.Spec.Containers[i]
			want.Resources.Requests = defaultedRequests(&want)
			if has.Image != want.Image {
				t.Fatalf("container %s has image %s, want %s", want.Name, has.Image, want.Image)
			}
			if diff := cmp.Diff(want.Resources, has.Resources); diff != "" {
				t.Fatalf("container %s: %s", want.Name, diff)
			}
			if w.running[want.Name] != w.wants(got, &has) {
				t.Fatalf("container %s runs %s", want.Name, w.running[want.Name])
			}
		}
		for _, k := range []string{revisionLabel, shortLabel, "instance"} {
			delete(got.Labels, k)
		}
		delete(got.Annotations, kruise.InPlaceUpdateStateKey)
		if !maps.Equal(got.Labels, at.Labels) || !maps.Equal(got.Annotations, at.Annotations) {
			t.Fatalf("labels %v, annotations %v; want %v, %v", got.Labels, got.Annotations, at.Labels, at.Annotations)
		}
	})
}

func FuzzAnnotationsOfAPod(f *testing.F) {
	f.Add(`{"revision":"web-1","updateTimestamp":"2026-01-01T00:00:00Z","lastContainerStatuses":null}`, `{"revision":"web-1","containerImages":{"a":"a:2"},"graceSeconds":30}`)
	f.Add(`{"nextContainerImages":{"a":"a:2","gone":"x"},"preCheckBeforeNext":{"containersRequiredReady":["a"]}}`, "")
	f.Add(`{"nextContainerResources":{"a":{"limits":{"cpu":"2"}}},"updateResources":true}`, "")
	f.Add(`{"nextContainerRefMetadata":{"a":{"labels":{"k":"v"}}}}`, `{"metaDataPatch":"e30="}`)
	f.Add(`null`, `null`)
	f.Add(`{"lastContainerStatuses":{"a":null}}`, `{"metaDataPatch":"bnVsbA==","containerRefMetadata":{"a":{}}}`)
	f.Fuzz(func(t *testing.T, state, grace string) {
		pod := barriered("a/p_1", "b")
		pod.Name, pod.Namespace, pod.UID = "web-a", "shop", "uid"
		pod.Annotations = map[string]string{kruise.InPlaceUpdateStateKey: state}
		if grace != "" {
			pod.Annotations[kruise.InPlaceUpdateGraceKey] = grace
		}
		pod.Labels = map[string]string{revisionLabel: "web-1"}
		u := Updater{Client: accepting{}, Now: func() time.Time { return time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC) }}
		for range 10 {
			_, _ = IncompleteReason(pod), WantsReady(pod)
			Difference{New: twoContainers()}.ResumePending(&kruise.UpdateSpec{}, pod)
			next, left, err := u.NextStep(pod)
			if err != nil || left > 0 || (next != Batch && next != Grace) {
				return
			}
			if pod, err = u.ContinueUpdate(context.Background(), pod, next); err != nil {
				return
			}
			for i := range pod.Spec.Containers {
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: pod.Spec.Containers[i].Name, ImageID: "x", Ready: true})
			}
		}
		t.Error("it never comes to an end")
	})
}

// accepting is an API server that takes any pod as it is.
type accepting struct{ client.Client }

func (accepting) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}

func (a accepting) SubResource(string) client.SubResourceClient { return acceptingSub{} }

type acceptingSub struct{ client.SubResourceClient }

func (acceptingSub) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}
