// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// ConvertTo fills the hub. The versions differ in two names only.
func (in *ResourceDistribution) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*v1beta1.ResourceDistribution)
	if !ok {
		return fmt.Errorf("converting to %T: a ResourceDistribution is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := in.DeepCopy()
	targets, status := &src.Spec.Targets, &src.Status
	out.ObjectMeta = src.ObjectMeta
	out.Spec = v1beta1.ResourceDistributionSpec{
		Resource: src.Spec.Resource,
		Targets: v1beta1.ResourceDistributionTargets{
			AllNamespaces: targets.AllNamespaces, IncludedNamespaces: targets.IncludedNamespaces,
			NamespaceSelector: targets.NamespaceLabelSelector, ExcludedNamespaces: targets.ExcludedNamespaces,
		},
	}
	out.Status = v1beta1.ResourceDistributionStatus{
		ObservedGeneration: status.ObservedGeneration,
		Desired:            status.Desired, Succeeded: status.Succeeded, Failed: status.Failed,
		Conditions: convertEach(status.Conditions, func(c *ResourceDistributionCondition) v1beta1.ResourceDistributionCondition {
			return v1beta1.ResourceDistributionCondition{
				Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime,
				Reason: c.Reason, FailedNamespaces: c.FailedNamespace,
			}
		}),
	}
	return nil
}

// ConvertFrom reads the hub.
func (in *ResourceDistribution) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*v1beta1.ResourceDistribution)
	if !ok {
		return fmt.Errorf("converting from %T: a ResourceDistribution is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := from.DeepCopy()
	targets, status := &src.Spec.Targets, &src.Status
	in.ObjectMeta = src.ObjectMeta
	in.Spec = ResourceDistributionSpec{
		Resource: src.Spec.Resource,
		Targets: ResourceDistributionTargets{
			AllNamespaces: targets.AllNamespaces, IncludedNamespaces: targets.IncludedNamespaces,
			NamespaceLabelSelector: targets.NamespaceSelector, ExcludedNamespaces: targets.ExcludedNamespaces,
		},
	}
	in.Status = ResourceDistributionStatus{
		ObservedGeneration: status.ObservedGeneration,
		Desired:            status.Desired, Succeeded: status.Succeeded, Failed: status.Failed,
		Conditions: convertEach(status.Conditions, func(c *v1beta1.ResourceDistributionCondition) ResourceDistributionCondition {
			return ResourceDistributionCondition{
				Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime,
				Reason: c.Reason, FailedNamespace: c.FailedNamespaces,
			}
		}),
	}
	return nil
}
