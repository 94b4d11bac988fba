// SPDX-License-Identifier: Apache-2.0

package sidecars

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/policies"
)

// shared is a cache, which answers a list without copying what its objects point to.
type shared struct {
	client.Reader
	sets []kruise.SidecarSet
}

func (s *shared) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch list := into.(type) {
	case *kruise.SidecarSetList:
		list.Items = slices.Clone(s.sets)
	case *appsv1.ControllerRevisionList:
	}
	return nil
}

func (*shared) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetName(key.Name)
	into.SetLabels(map[string]string{corev1.LabelMetadataName: key.Name})
	return nil
}

// BenchmarkWebhook measures what a manager does with a new pod, from the request to the response, by how many SidecarSets there are of
// which one selects it.
func BenchmarkWebhook(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("sets=%d", n), func(b *testing.B) {
			cached := &shared{}
			for i := range n {
				cached.sets = append(cached.sets, *setOf(fmt.Sprint("agent-", i), "agent:1", func(s *kruise.SidecarSet) {
					s.UID, s.Generation, s.Status.ObservedGeneration = types.UID(s.Name), 1, 1
					s.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "shop"}}
					s.Spec.Selector.MatchLabels = map[string]string{"app": fmt.Sprint("web-", i)}
				}))
			}
			e, err := engine.New(policies.Builtin)
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			p := webPod()
			p.Labels["app"] = "web-0"
			raw, err := json.Marshal(p)
			if err != nil {
				b.Fatal(err)
			}
			m, _ := pod.New(cached, pod.Steps{Mutating: []pod.MutatingStep{New(Options{Cached: cached, Live: cached, Engine: e, Namespace: "kruise-system"})}}, 0)
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "shop", Object: runtime.RawExtension{Raw: raw}}}
			b.ReportAllocs()
			for b.Loop() {
				if got := m.Handle(b.Context(), req); !got.Allowed || len(got.Patches) == 0 {
					b.Fatalf("%+v", got)
				}
			}
		})
	}
}
