// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// hostileTexts are what a user may write where JSON is expected.
func hostileTexts() []string {
	return []string{
		"null", "[]", "{}", "0", "-1", "1e999", "true", `"x"`, "", " ", "x", "{", `{"logs":null}`, `{"logs":{}}`, `{"logs":[]}`, `{"logs":"x"}`, `{"logs":0}`,
		`{"logs":{"lastContainerStatuses":null}}`, `{"logs":{"lastContainerStatuses":{"shipper":null}}}`, `{"logs":{"sidecarList":null,"hash":null}}`, `{"logs":{"sidecarList":[null]}}`,
		"[null]", `[{"userAgent":null}]`, strings.Repeat("[", 100_000), `{"logs":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}",
		`{"logs":"` + strings.Repeat("x", 256<<10) + `"}`, "\xff\xfe", `{"logs":{"hash":"\ud800"}}`,
	}
}

// annotationsThatAreRead are those of a pod that the rounds of a SidecarSet read.
func annotationsThatAreRead() []string {
	return []string{
		kruise.SidecarSetInPlaceUpdateStateKey, kruise.SidecarSetHashKey, kruise.SidecarSetHashWithoutImageKey, kruise.SidecarSetInjectedListKey,
		kruise.SidecarSetWorkingHotUpgradeKey, kruise.InPlaceUpdateStateKey, kruise.InPlaceUpdateGraceKey, kruise.RuntimeContainerMetaKey,
	}
}

// Each pod but two says something that no manager wrote. The manager lives, and the two are updated.
func TestNoAnnotationOfAPodEndsTheManager(t *testing.T) {
	texts := hostileTexts()
	for _, key := range append(annotationsThatAreRead(), "condition") {
		t.Run(key, func(t *testing.T) {
			set := logs(func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromString("100%")) })
			n := 0
			w := started(t, "", len(texts)+2, set, func(p *corev1.Pod) {
				n++
				switch {
				case n > len(texts) || key == "condition":
				case key == kruise.SidecarSetInjectedListKey: // it selects the pods of a round
					p.Annotations[key] += "," + texts[n-1]
				default:
					p.Annotations[key] = texts[n-1]
				}
			})
			if key == "condition" {
				for i, text := range texts {
					p := w.pod(fmt.Sprint("web-", i))
					p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kruise.SidecarSetUpgradableCondition, Status: corev1.ConditionTrue, Message: text})
					if err := w.api.Status().Update(t.Context(), p); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.edit("logs", image("logs:2"))
			for range 3 {
				_, _ = w.c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "logs"}}) // hostile pods may be errors
				w.run()
			}
			updated := strings.Fields(w.with("shipper", "logs:2"))
			for _, healthy := range []int{len(texts), len(texts) + 1} {
				if !slices.Contains(updated, fmt.Sprint("web-", healthy)) {
					t.Errorf("pod web-%d is not updated, but %v are", healthy, updated)
				}
			}
		})
	}
}

// pod returns the pod of a name.
func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	p := &corev1.Pod{}
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: "shop", Name: name}, p); err != nil {
		w.t.Fatal(err)
	}
	return p
}
