// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// meet has a write wait until another one has begun.
func meet(t *testing.T, mine, other chan struct{}) error {
	close(mine)
	select {
	case <-other:
		return nil
	case <-time.After(20 * time.Second):
		t.Error("a write waits for one of the same round")
		return errors.New("it was alone")
	}
}

// The gates of a pod that was created before are opened while another pod is created.
func TestGatesAreOpenedBesideTheRestOfARound(t *testing.T) {
	set := logSet()
	set.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}}
	kind := &nodeKind{nodes: []string{"n1"}, of: func(p *corev1.Pod) string { return p.Spec.NodeName }}
	opens, creates := make(chan struct{}), make(chan struct{})
	writes := interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, ok := o.(*corev1.Pod); ok && o.GetName() == "log-n2" {
				if err := meet(t, creates, opens); err != nil {
					return err
				}
			}
			return c.Create(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if _, ok := o.(*corev1.Pod); ok {
				if err := meet(t, opens, creates); err != nil {
					return err
				}
			}
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
	}
	k := newInterceptedCluster(t, kind, bundle.Set{}, writes, set)
	k.c.writes = 2
	k.round() // the pod of n1 is there, and its gate is shut
	kind.nodes = append(kind.nodes, "n2")
	k.round()
	pods := k.pods()
	if len(pods) != 2 {
		t.Fatalf("there are %d pods", len(pods))
	}
	opened := func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == kruise.InPlaceUpdateReady && c.Status == corev1.ConditionTrue
		})
	}
	if !opened(pods[0]) {
		t.Errorf("the gate of %s is shut", pods[0].Name)
	}
}
