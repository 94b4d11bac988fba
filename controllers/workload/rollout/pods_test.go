// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
)

func TestGatesOfANewPod(t *testing.T) {
	for name, test := range map[string]struct {
		state kruise.LifecycleStateType
		fails bool
		want  bool
	}{
		"are opened with its creation":                        {state: kruise.LifecycleStateNormal, want: true},
		"are opened where it has no state":                    {want: true},
		"are opened later where its state waits for a node":   {state: kruise.LifecycleStatePreparingNormal},
		"are opened later where the write fails":              {state: kruise.LifecycleStateNormal, fails: true},
		"are opened later where the write fails, and a state": {state: kruise.LifecycleStatePreparingNormal, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			set := logSet()
			k := newKindCluster(t, &nodeKind{}, nil, set)
			k.c.updater.Client = interceptor.NewClient(k.api.(client.WithWatch), interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
					if test.fails {
						return errors.New("no answer")
					}
					return c.SubResource(sub).Patch(ctx, o, p, opts...)
				},
			})
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "log-1", UID: "log-1"}, Spec: set.Spec.Template.Spec}
			if test.state != "" {
				lifecycle.SetState(pod, test.state, k.now)
			}
			inplace.AddGate(pod, kruise.KruisePodReady)
			inplace.AddGate(pod, kruise.InPlaceUpdateReady)
			r := &Round{c: k.c, Workload: set, Now: k.now}
			if err := r.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			stored := k.pods()[0]
			for _, gate := range []corev1.PodConditionType{kruise.KruisePodReady, kruise.InPlaceUpdateReady} {
				for what, p := range map[string]*corev1.Pod{"stored": stored, "returned": pod} {
					c := inplace.FindCondition(p, gate)
					if got := c != nil && c.Status == corev1.ConditionTrue; got != test.want {
						t.Errorf("%s: %s is %+v", what, gate, c)
					}
				}
			}
			if pod.ResourceVersion != stored.ResourceVersion {
				t.Errorf("the pod is known as version %s and stored as %s", pod.ResourceVersion, stored.ResourceVersion)
			}
		})
	}
}
