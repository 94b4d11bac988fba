// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// pausedSuffix ends the name that a HorizontalPodAutoscaler scales during the migration. No object has it, since names
// have no capital letters, so the autoscaler finds nothing to scale.
const pausedSuffix = ".MIGRATING"

// references are the objects that depend on the pods of a source or on its name.
type references struct {
	// autoscalers scale the source, the target, or nothing since a migration paused them.
	autoscalers []autoscalingv2.HorizontalPodAutoscaler
	// budgets are those that name the source. They get a twin for the target, unless protected is true: a budget names it already.
	budgets   []policy.PodUnavailableBudget
	protected bool
	// selecting are the objects whose selectors find the pods of both workloads, such as "Service web".
	selecting []string
	// losing are those whose selectors would not find the pods of the target, and gaining those that would find only these.
	losing, gaining []string
	// blocking are budgets that would refuse the deletion of pods of the source.
	blocking []string
	// naming are other objects that name the source.
	naming []string
}

// readReferences finds the objects that depend on a source.
func (m *migration) readReferences(ctx context.Context, source, target workload) (references, error) {
	var r references
	if err := m.readAutoscalers(ctx, &r, source, target); err != nil {
		return r, err
	}
	budgets := &policy.PodUnavailableBudgetList{}
	if err := m.client.List(ctx, budgets, client.InNamespace(m.namespace)); err != nil && !meta.IsNoMatchError(err) {
		return r, fmt.Errorf("listing PodUnavailableBudgets: %w", err)
	}
	if err := m.readSelectors(ctx, &r, source.podTemplate().Labels, target.podTemplate().Labels, budgets); err != nil {
		return r, err
	}
	return r, m.readTargetReferences(ctx, &r, source, target, budgets)
}

// readAutoscalers finds the HorizontalPodAutoscalers of the source and those that the migration has paused.
func (m *migration) readAutoscalers(ctx context.Context, r *references, source, target workload) error {
	all := &autoscalingv2.HorizontalPodAutoscalerList{}
	if err := m.client.List(ctx, all, client.InNamespace(source.object.GetNamespace())); err != nil {
		return fmt.Errorf("listing HorizontalPodAutoscalers: %w", err)
	}
	for _, hpa := range all.Items {
		ref := &hpa.Spec.ScaleTargetRef
		paused := ref.Name == source.object.GetName()+pausedSuffix && (refersTo(ref.APIVersion, ref.Kind, source) || refersTo(ref.APIVersion, ref.Kind, target))
		if paused || ref.Name == source.object.GetName() && (refersTo(ref.APIVersion, ref.Kind, source) || refersTo(ref.APIVersion, ref.Kind, target)) {
			r.autoscalers = append(r.autoscalers, hpa)
			if owner := metav1.GetControllerOf(&hpa); owner != nil { // it would write the old reference again
				r.naming = append(r.naming, fmt.Sprintf("%s %s with its HorizontalPodAutoscaler %s", owner.Kind, owner.Name, hpa.Name))
			}
		}
	}
	return nil
}

// refersTo reports whether a reference of any version of the API is to the kind of a workload.
func refersTo(apiVersion, kind string, w workload) bool {
	is, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || kind != w.kind {
		return false
	}
	want, err := schema.ParseGroupVersion(w.apiVersion())
	return err == nil && is.Group == want.Group
}

// selecting is an object with a selector of pods.
type selecting struct {
	name     string
	selector labels.Selector
}

// readSelectors finds the objects whose selectors find pods with the labels of the source.
func (m *migration) readSelectors(ctx context.Context, r *references, old, replaced labels.Set, budgets *policy.PodUnavailableBudgetList) error {
	all, err := m.listSelectors(ctx, budgets)
	if err != nil {
		return err
	}
	for _, s := range all {
		switch {
		case !s.selector.Matches(old) && s.selector.Matches(replaced):
			r.gaining = append(r.gaining, fmt.Sprintf("%s (%s)", s.name, s.selector))
		case !s.selector.Matches(old):
		case s.selector.Matches(replaced):
			r.selecting = append(r.selecting, s.name)
		default:
			r.losing = append(r.losing, fmt.Sprintf("%s (%s)", s.name, s.selector))
		}
	}
	return nil
}

// listSelectors lists the objects of the namespace that select pods by labels.
func (m *migration) listSelectors(ctx context.Context, budgets *policy.PodUnavailableBudgetList) (out []selecting, err error) {
	in := client.InNamespace(m.namespace)
	services := &corev1.ServiceList{}
	if err := m.client.List(ctx, services, in); err != nil {
		return nil, fmt.Errorf("listing Services: %w", err)
	}
	for i := range services.Items {
		if s := &services.Items[i]; len(s.Spec.Selector) > 0 {
			out = append(out, selecting{"Service " + s.Name, labels.SelectorFromSet(s.Spec.Selector)})
		}
	}
	add := func(kind, name string, selector *metav1.LabelSelector) error {
		if selector == nil {
			return nil
		}
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			return fmt.Errorf("reading the selector of %s %s: %w", kind, name, err)
		}
		out = append(out, selecting{kind + " " + name, s})
		return nil
	}
	var failed []error
	disruptions := &policyv1.PodDisruptionBudgetList{}
	if err := m.client.List(ctx, disruptions, in); err != nil {
		return nil, fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	for i := range disruptions.Items {
		failed = append(failed, add("PodDisruptionBudget", disruptions.Items[i].Name, disruptions.Items[i].Spec.Selector))
	}
	networks := &networkingv1.NetworkPolicyList{}
	if err := m.client.List(ctx, networks, in); err != nil {
		return nil, fmt.Errorf("listing NetworkPolicies: %w", err)
	}
	for i := range networks.Items {
		failed = append(failed, add("NetworkPolicy", networks.Items[i].Name, &networks.Items[i].Spec.PodSelector))
	}
	for i := range budgets.Items {
		failed = append(failed, add("PodUnavailableBudget", budgets.Items[i].Name, budgets.Items[i].Spec.Selector))
	}
	return out, errors.Join(failed...)
}

// readTargetReferences finds the objects that name the source.
func (m *migration) readTargetReferences(ctx context.Context, r *references, source, target workload, budgets *policy.PodUnavailableBudgetList) error {
	for _, b := range budgets.Items {
		switch ref := b.Spec.TargetReference; {
		case ref == nil || ref.Name != source.object.GetName():
		case refersTo(ref.APIVersion, ref.Kind, source):
			r.budgets = append(r.budgets, b)
			if why := describeFixedBudget(&b); why != "" {
				r.blocking = append(r.blocking, fmt.Sprintf("PodUnavailableBudget %s (%s)", b.Name, why))
			}
		case refersTo(ref.APIVersion, ref.Kind, target):
			r.protected = true
		}
	}
	spreads := &kruise.WorkloadSpreadList{}
	if err := m.client.List(ctx, spreads, client.InNamespace(m.namespace)); err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("listing WorkloadSpreads: %w", err)
	}
	for i := range spreads.Items {
		if ref := &spreads.Items[i].Spec.TargetReference; ref.Name == source.object.GetName() && refersTo(ref.APIVersion, ref.Kind, source) {
			r.naming = append(r.naming, "WorkloadSpread "+spreads.Items[i].Name)
		}
	}
	return nil
}

// describeFixedBudget returns the field by which a budget keeps a number of pods however many there are to be; empty if it has none.
func describeFixedBudget(b *policy.PodUnavailableBudget) string {
	if least := b.Spec.MinAvailable; least != nil && least.Type == intstr.Int && least.IntVal > 0 {
		return fmt.Sprintf("spec.minAvailable %d", least.IntVal)
	}
	if b.Spec.ProtectTotalReplicas != nil {
		return "spec.protectTotalReplicas"
	}
	return ""
}

// pauseAutoscalers has the autoscalers scale nothing.
func (m *migration) pauseAutoscalers(ctx context.Context, p *plan) error {
	all := p.autoscalers
	for i := range all {
		name := all[i].Spec.ScaleTargetRef.Name
		if strings.HasSuffix(name, pausedSuffix) {
			continue
		}
		if err := m.changeScaleTarget(ctx, &all[i], func(ref *autoscalingv2.CrossVersionObjectReference) { ref.Name += pausedSuffix }); err != nil {
			return err
		}
		m.printLine("HorizontalPodAutoscaler %s paused", all[i].Name)
	}
	return nil
}

// moveAutoscalers has autoscalers scale the target.
func (m *migration) moveAutoscalers(ctx context.Context, p *plan) error {
	all, target := p.autoscalers, p.target
	for i := range all {
		err := m.changeScaleTarget(ctx, &all[i], func(ref *autoscalingv2.CrossVersionObjectReference) {
			ref.APIVersion, ref.Kind, ref.Name = target.apiVersion(), target.kind, target.object.GetName()
		})
		if err != nil {
			return err
		}
		m.printLine("HorizontalPodAutoscaler %s scales %s", all[i].Name, target)
	}
	return nil
}

// changeScaleTarget changes what an autoscaler scales. Its controller writes its status all the time, so conflicts are expected.
func (m *migration) changeScaleTarget(ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, change func(*autoscalingv2.CrossVersionObjectReference)) error {
	known := hpa.Spec.ScaleTargetRef
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live := &autoscalingv2.HorizontalPodAutoscaler{}
		if err := m.client.Get(ctx, client.ObjectKeyFromObject(hpa), live); err != nil {
			return fmt.Errorf("reading HorizontalPodAutoscaler %s: %w", hpa.Name, err)
		}
		if live.Spec.ScaleTargetRef != known {
			return exit.RefusalErrorf("spec.scaleTargetRef of HorizontalPodAutoscaler %s was changed by someone else; run the command again", hpa.Name)
		}
		changed := live.DeepCopy()
		change(&changed.Spec.ScaleTargetRef)
		if err := m.client.Patch(ctx, changed, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("changing spec.scaleTargetRef of HorizontalPodAutoscaler %s: %w", hpa.Name, err)
		}
		*hpa = *changed
		return nil
	})
}

// twinName is the name of the budget of the target that stands beside one of the source.
func twinName(b *policy.PodUnavailableBudget, target workload) string {
	return b.Name + "-" + strings.ToLower(target.kind)
}

// createBudgets creates budgets for the target like those that name the source, since a budget cannot get another target.
func (m *migration) createBudgets(ctx context.Context, r references, target workload) error {
	if r.protected {
		return nil
	}
	for i := range r.budgets {
		of := &r.budgets[i]
		twin := &policy.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: twinName(of, target), Labels: keepOwn(of.Labels), Annotations: keepOwn(of.Annotations),
		}}
		twin.Spec = *of.Spec.DeepCopy()
		twin.Spec.TargetReference = &policy.TargetReference{APIVersion: target.apiVersion(), Kind: target.kind, Name: target.object.GetName()}
		switch err := m.client.Create(ctx, twin); {
		case apierrors.IsAlreadyExists(err):
			if err := m.checkTwin(ctx, client.ObjectKeyFromObject(twin), twin.Spec.TargetReference); err != nil {
				return err
			}
			continue
		case err != nil:
			return fmt.Errorf("creating PodUnavailableBudget %s: %w", twin.Name, err)
		}
		m.printLine("PodUnavailableBudget %s created", twin.Name)
	}
	return nil
}

// checkTwin returns an error if a budget of another target has the name.
func (m *migration) checkTwin(ctx context.Context, key types.NamespacedName, want *policy.TargetReference) error {
	found := &policy.PodUnavailableBudget{}
	if err := m.client.Get(ctx, key, found); err != nil {
		return fmt.Errorf("reading PodUnavailableBudget %s: %w", key.Name, err)
	}
	if ref := found.Spec.TargetReference; ref == nil || *ref != *want {
		return fmt.Errorf("PodUnavailableBudget %s exists and does not name %s %s; delete it, or create one that does", key.Name, want.Kind, want.Name)
	}
	return nil
}
