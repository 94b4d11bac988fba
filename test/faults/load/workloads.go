// SPDX-License-Identifier: Apache-2.0

// Package load makes budgets with pods of simulated nodes, asks for disruptions
// of them, and notes what the API server stores meanwhile.
package load

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
)

// BudgetLabel is on every pod, with the name of its budget.
const BudgetLabel = "faults.regatta.sh/budget"

// Namespace is where everything is.
const Namespace = "faults"

// Workloads says what to make.
type Workloads struct {
	Budgets, Pods int // pods of each budget
}

// Make makes budgets of all forms with a Deployment each, and waits until all of
// them are in force. It returns how many available pods each requires.
func Make(ctx context.Context, c client.Client, w Workloads) (map[string]int, error) {
	if err := client.IgnoreAlreadyExists(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}})); err != nil {
		return nil, fmt.Errorf("making the namespace: %w", err)
	}
	want := map[string]int{}
	for i := range w.Budgets {
		budget, n := budget(i, w.Pods)
		want[budget.Name] = n
		for _, o := range []client.Object{budget, deployment(budget.Name, w.Pods)} {
			if err := c.Create(ctx, o); err != nil {
				return nil, fmt.Errorf("making the workloads: %w", err)
			}
		}
	}
	return want, inForce(ctx, c, want, w.Pods)
}

// budget returns the i-th of several forms, and how many available pods it requires.
func budget(i, pods int) (*policy.PodUnavailableBudget, int) {
	name := fmt.Sprintf("web-%d", i)
	b := &policy.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
	b.Spec.ProtectOperations = []policy.PubOperation{
		policy.PubDeleteOperation, policy.PubUpdateOperation, policy.PubEvictOperation, policy.PubResizeOperation,
	}
	if i%2 == 0 {
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{BudgetLabel: name}}
	} else {
		b.Spec.TargetReference = &policy.TargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	}
	unavailable := 1 + i%3
	switch i % 4 {
	case 0:
		b.Spec.MaxUnavailable = ptr.To(intstr.FromInt(unavailable))
	case 1:
		b.Spec.MinAvailable = ptr.To(intstr.FromInt(pods - unavailable))
	case 2:
		b.Spec.MaxUnavailable = ptr.To(intstr.FromString("25%"))
		unavailable = (pods*25 + 99) / 100 // rounded up
	case 3:
		b.Spec.MinAvailable = ptr.To(intstr.FromString("75%"))
		unavailable = pods - (pods*75+99)/100
	}
	return b, pods - unavailable
}

func deployment(name string, pods int) *appsv1.Deployment {
	labels := map[string]string{BudgetLabel: name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(pods)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To(int64(1)),
					Containers: []corev1.Container{{Name: "app", Image: "registry.k8s.io/pause:3.8", Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")},
					}}},
				},
			},
		},
	}
}

// inForce waits until the status of every budget counts all of its pods.
func inForce(ctx context.Context, c client.Client, want map[string]int, pods int) error {
	for {
		list := &policy.PodUnavailableBudgetList{}
		if err := c.List(ctx, list, client.InNamespace(Namespace)); err != nil {
			return fmt.Errorf("listing budgets: %w", err)
		}
		ready := 0
		for _, b := range list.Items {
			if s := b.Status; int(s.CurrentAvailable) == pods && int(s.DesiredAvailable) == want[b.Name] {
				ready++
			}
		}
		if ready == len(want) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for budgets: %w: %d of %d are in force", context.Cause(ctx), ready, len(want))
		case <-time.After(500 * time.Millisecond):
		}
	}
}
