// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
)

func otherStates() []state {
	return slices.Concat(spreadStates(), distributionStates(), nodeStates(), podStates(), bundleStates())
}

func newSpread() *kruise.WorkloadSpread {
	return &kruise.WorkloadSpread{
		ObjectMeta: newMeta(),
		Spec: kruise.WorkloadSpreadSpec{
			TargetReference: kruise.TargetReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web"},
			Subsets:         []kruise.WorkloadSpreadSubset{{Name: "zone-a", MaxReplicas: ptr.To(intstr.FromInt32(4))}, {Name: "zone-b"}},
		},
		Status: kruise.WorkloadSpreadStatus{
			ObservedGeneration: generation,
			SubsetStatuses:     []kruise.WorkloadSpreadSubsetStatus{{Name: "zone-a", Replicas: 4}, {Name: "zone-b", Replicas: 2, MissingReplicas: -1}},
		},
	}
}

func withPlacing(reason, message string) func(*kruise.WorkloadSpread) {
	return func(o *kruise.WorkloadSpread) {
		o.Status.Conditions = condition(kruise.WorkloadSpreadPlacing, metav1.ConditionFalse, reason, message)
	}
}

func spreadStates() []state {
	return []state{
		{prose: "pods are in its subsets", object: with(newSpread), want: healthy("Pods in the subsets: 6.")},
		{prose: "the controller has not seen the newest change", object: with(newSpread, func(o *kruise.WorkloadSpread) { o.Generation++ }), want: progressing(unobservedMessage)},
		{prose: "its workload does not exist yet", object: with(newSpread, withPlacing("TargetNotFound", "There is no CloneSet web in namespace shop."), func(o *kruise.WorkloadSpread) { o.Status.SubsetStatuses = nil }),
			want: healthy("Pods in the subsets: 0. There is no CloneSet web in namespace shop.")},
		{prose: "all subsets are full", object: with(newSpread, withPlacing("SubsetsFull", "All subsets are full or without room (zone-a), so new pods are created as they are.")),
			want: degraded("All subsets are full or without room (zone-a), so new pods are created as they are.")},
		{prose: "pods are of a subset that the spec does not have", object: with(newSpread, withPlacing("UnknownSubset", "Some pods are of subsets that the spec does not have: 2 of zone-c.")),
			want: suspended("Pods in the subsets: 6. Some pods are of subsets that the spec does not have: 2 of zone-c.")},
	}
}

func newDistribution() *kruise.ResourceDistribution {
	return &kruise.ResourceDistribution{
		ObjectMeta: newClusterMeta(),
		Spec: kruise.ResourceDistributionSpec{
			Resource: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},"data":{}}`)},
			Targets: kruise.ResourceDistributionTargets{
				IncludedNamespaces: kruise.ResourceDistributionTargetNamespaces{List: []kruise.ResourceDistributionNamespace{{Name: "shop"}}},
			},
		},
		Status: kruise.ResourceDistributionStatus{
			ObservedGeneration: generation, Desired: 5, Succeeded: 5,
			Conditions: []kruise.ResourceDistributionCondition{{Type: kruise.ResourceDistributionGetResourceFailed, Status: corev1.ConditionFalse, Reason: "Succeeded"}},
		},
	}
}

func withDistributionFailure(kind kruise.ResourceDistributionConditionType, reason string) func(*kruise.ResourceDistribution) {
	return func(o *kruise.ResourceDistribution) {
		o.Status.Succeeded, o.Status.Failed = 4, 1
		o.Status.Conditions = append(o.Status.Conditions, kruise.ResourceDistributionCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, FailedNamespaces: []string{"stage"}})
	}
}

func distributionStates() []state {
	return []state{
		{prose: "all namespaces have the copy", object: with(newDistribution), want: healthy("5 of 5 namespaces have the copy.")},
		{prose: "the controller has not seen the newest change", object: with(newDistribution, func(o *kruise.ResourceDistribution) { o.Generation++ }), want: progressing(unobservedMessage)},
		{prose: "namespaces lack the copy", object: with(newDistribution, func(o *kruise.ResourceDistribution) { o.Status.Succeeded = 4 }), want: progressing("4 of 5 namespaces have the copy.")},
		{prose: "an object of that name exists already", object: with(newDistribution, withDistributionFailure(kruise.ResourceDistributionConflictOccurred, "conflict with existing resources")),
			want: degraded("4 of 5 namespaces have the copy. ConflictOccurred: conflict with existing resources (such as in namespace stage)")},
		{prose: "a namespace does not exist yet", object: with(newDistribution, withDistributionFailure(kruise.ResourceDistributionNamespaceNotExists, kruise.ResourceDistributionNamespaceNotExistsReason)),
			want: suspended("4 of 5 namespaces have the copy. NamespaceNotExists: namespace not found or is terminating (such as in namespace stage)")},
	}
}

func newNodeImage() *kruise.NodeImage {
	return &kruise.NodeImage{
		ObjectMeta: newClusterMeta(),
		Spec:       kruise.NodeImageSpec{Images: map[string]kruise.ImageSpec{"nginx": {Tags: []kruise.ImageTagSpec{{Tag: "1.27"}}}}},
		Status: kruise.NodeImageStatus{
			Desired: 2, Succeeded: 2, FirstSyncStatus: &kruise.SyncStatus{Status: kruise.SyncStatusSucceeded},
			ImageStatuses: map[string]kruise.ImageStatus{"nginx": {Tags: []kruise.ImageTagStatus{{Tag: "1.27", Phase: kruise.ImagePhaseSucceeded}}}},
		},
	}
}

func newNodePodProbe() *v1alpha1.NodePodProbe {
	return &v1alpha1.NodePodProbe{
		ObjectMeta: newClusterMeta(),
		Spec:       v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{Name: "web-0", Namespace: "shop", UID: "1", IP: "10.0.0.7"}}},
		Status:     v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{Name: "web-0", Namespace: "shop", UID: "1"}}},
	}
}

func nodeStates() []state {
	return []state{
		{prose: "all tags are pulled", object: with(newNodeImage), want: healthy("Tags: 2 of 2 pulled, 0 failed.")},
		{prose: "tags are being pulled", object: with(newNodeImage, func(o *kruise.NodeImage) { o.Status.Succeeded, o.Status.Pulling = 1, 1 }), want: progressing("Tags: 1 of 2 pulled, 0 failed.")},
		{prose: "a tag could not be pulled", object: with(newNodeImage, func(o *kruise.NodeImage) {
			o.Status.Succeeded, o.Status.Failed = 1, 1
			o.Status.ImageStatuses["redis"] = kruise.ImageStatus{Tags: []kruise.ImageTagStatus{{Tag: "7", Phase: kruise.ImagePhaseFailed, Message: "manifest unknown"}}}
			o.Status.ImageStatuses["zero"] = kruise.ImageStatus{Tags: []kruise.ImageTagStatus{{Tag: "1", Phase: kruise.ImagePhaseFailed, Message: "timeout"}}}
		}), want: degraded("Tags: 1 of 2 pulled, 1 failed. Tag redis:7: manifest unknown")},
		{prose: "the container runtime serves no images", object: with(newNodeImage, func(o *kruise.NodeImage) {
			o.Status.FirstSyncStatus = &kruise.SyncStatus{Status: kruise.SyncStatusFailed, Message: "no runtime answers"}
		}), want: degraded("The node cannot pull images: no runtime answers")},
		{prose: "the probes of a node run", object: with(newNodePodProbe), want: healthy("Pods with probes: 1, with results: 1.")},
		{prose: "no controller acts on the kind", object: with(newNodePodProbe, func(o *v1alpha1.NodePodProbe) {
			o.Status.Conditions = condition("Stalled", metav1.ConditionTrue, "FeatureGateOff", "The feature gate PodProbeMarkerGate is off.")
		}), want: degraded("The feature gate PodProbeMarkerGate is off.")},
	}
}

func newProbeMarker() *v1alpha1.PodProbeMarker {
	return &v1alpha1.PodProbeMarker{
		ObjectMeta: newMeta(), Spec: v1alpha1.PodProbeMarkerSpec{Selector: newSelector(), Probes: []v1alpha1.PodContainerProbe{{Name: "idle", ContainerName: "nginx"}}},
		Status: v1alpha1.PodProbeMarkerStatus{ObservedGeneration: generation, MatchedPods: 3},
	}
}

func newPodState() *kruise.PersistentPodState {
	return &kruise.PersistentPodState{
		ObjectMeta: newMeta(),
		Spec: kruise.PersistentPodStateSpec{
			TargetReference:            kruise.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"},
			RequiredPersistentTopology: &kruise.NodeTopologyTerm{Keys: []string{"kubernetes.io/hostname"}},
		},
		Status: kruise.PersistentPodStateStatus{ObservedGeneration: generation, PodStates: map[string]kruise.PodState{"web-0": {NodeName: "node-1"}, "web-1": {NodeName: "node-2"}}},
	}
}

func newBudget() *policy.PodUnavailableBudget {
	return &policy.PodUnavailableBudget{
		ObjectMeta: newMeta(), Spec: policy.PodUnavailableBudgetSpec{Selector: newSelector(), MaxUnavailable: ptr.To(intstr.FromString("20%"))},
		Status: policy.PodUnavailableBudgetStatus{ObservedGeneration: generation, UnavailableAllowed: 2, CurrentAvailable: 10, DesiredAvailable: 8, TotalReplicas: 10},
	}
}

func podStates() []state {
	return []state{
		{prose: "pods are probed", object: with(newProbeMarker), want: healthy("Probed pods: 3.")},
		{prose: "the controller has not seen the newest change", object: with(newProbeMarker, func(o *v1alpha1.PodProbeMarker) { o.Generation++ }), want: progressing(unobservedMessage)},
		{prose: "the places of pods are known", object: with(newPodState), want: healthy("Pods whose place is known: 2.")},
		{prose: "the controller has not seen the newest change", object: with(newPodState, func(o *kruise.PersistentPodState) { o.Generation++ }), want: progressing(unobservedMessage)},
		{prose: "the budget protects pods", object: with(newBudget), want: healthy("10 of 10 pods are available, and 2 may become unavailable.")},
		{prose: "the budget is used up", object: with(newBudget, func(o *policy.PodUnavailableBudget) {
			o.Status.UnavailableAllowed, o.Status.CurrentAvailable = 0, 8
		}), want: healthy("8 of 10 pods are available, and 0 may become unavailable.")},
		{prose: "the controller has not seen the newest change", object: with(newBudget, func(o *policy.PodUnavailableBudget) { o.Generation++ }), want: progressing(unobservedMessage)},
		{prose: "the controller cannot read what it needs", object: with(newBudget, func(o *policy.PodUnavailableBudget) {
			o.Status.Conditions = condition("FailedReconcile", metav1.ConditionTrue, "FailedReconcile", "reading Foo web: forbidden")
		}), want: degraded("reading Foo web: forbidden")},
	}
}

const activeMessage = "Revision 6d5f21 is being enforced."

// newBundleStatus is of a bundle that two replicas enforce.
func newBundleStatus() policyv1alpha1.PolicyBundleStatus {
	status := policyv1alpha1.PolicyBundleStatus{
		ObservedGeneration: generation, ActiveRevision: "6d5f21", Active: &policyv1alpha1.PolicyArtifact{Revision: "6d5f21"},
		Replicas: []policyv1alpha1.PolicyReplica{{Name: "manager-0", Revision: "6d5f21"}, {Name: "manager-1", Revision: "6d5f21"}},
	}
	for _, stage := range policyv1alpha1.PolicyBundleStages() {
		status.Conditions = append(status.Conditions, condition(stage, metav1.ConditionTrue, policyv1alpha1.PolicyBundlePassedReason, "")...)
	}
	status.Conditions = append(status.Conditions, condition(policyv1alpha1.PolicyBundleReady, metav1.ConditionTrue, policyv1alpha1.PolicyBundleActivatedReason, activeMessage)...)
	return status
}

func newClusterBundle() *policyv1alpha1.ClusterPolicyBundle {
	return &policyv1alpha1.ClusterPolicyBundle{
		ObjectMeta: newClusterMeta(),
		Spec: policyv1alpha1.ClusterPolicyBundleSpec{
			PolicySource: policyv1alpha1.PolicySource{Files: map[string]policyv1alpha1.FileText{"freeze.rego": "package extend.rollout.freeze"}}, Mode: policyv1alpha1.PolicyModeEnforce,
		},
		Status: newBundleStatus(),
	}
}

func newBundle() *policyv1alpha1.PolicyBundle {
	return &policyv1alpha1.PolicyBundle{
		ObjectMeta: newMeta(),
		Spec:       policyv1alpha1.PolicyBundleSpec{PolicySource: policyv1alpha1.PolicySource{Files: map[string]policyv1alpha1.FileText{"freeze.rego": "package extend.rollout.freeze"}}, Mode: policyv1alpha1.PolicyModeEnforce},
		Status:     newBundleStatus(),
	}
}

func withReady(status metav1.ConditionStatus, reason, message string) func(*policyv1alpha1.ClusterPolicyBundle) {
	return func(o *policyv1alpha1.ClusterPolicyBundle) {
		last := len(o.Status.Conditions) - 1
		o.Status.Conditions[last] = condition(policyv1alpha1.PolicyBundleReady, status, reason, message)[0]
	}
}

// withCandidate tries a revision in a mode.
func withCandidate(mode policyv1alpha1.PolicyMode) func(*policyv1alpha1.ClusterPolicyBundle) {
	return func(o *policyv1alpha1.ClusterPolicyBundle) {
		o.Spec.Mode, o.Spec.Canary = mode, &policyv1alpha1.PolicyCanary{Namespaces: []string{"stage"}}
		o.Status.Candidate = &policyv1alpha1.PolicyArtifact{Revision: "a1b2c3", Mode: mode}
		for i := range o.Status.Replicas {
			o.Status.Replicas[i].Candidate = "a1b2c3"
			o.Status.Replicas[i].Shadow = &policyv1alpha1.PolicyShadow{Since: *newTime(), Compared: 40, Stricter: 3}
		}
	}
}

const (
	shadowMessage = "Revision a1b2c3 is in shadow: its decisions are counted and not carried out. Revision 6d5f21 stays active."
	canaryMessage = "Revision a1b2c3 is being enforced in stage only. Elsewhere, revision 6d5f21 stays active."
)

var (
	inShadow = []func(*policyv1alpha1.ClusterPolicyBundle){withCandidate(policyv1alpha1.PolicyModeShadow), withReady(metav1.ConditionTrue, "InShadow", shadowMessage)}
	inCanary = []func(*policyv1alpha1.ClusterPolicyBundle){withCandidate(policyv1alpha1.PolicyModeCanary), withReady(metav1.ConditionTrue, "InCanary", canaryMessage)}
)

func withCheck(phase policyv1alpha1.PolicyCheckPhase, message string) func(*policyv1alpha1.ClusterPolicyBundle) {
	return func(o *policyv1alpha1.ClusterPolicyBundle) {
		o.Status.Checking = &policyv1alpha1.PolicyCheck{Phase: phase, Message: message, Generation: generation}
	}
}

func bundleStates() []state {
	return []state{
		{prose: "the policies are enforced", object: with(newClusterBundle), want: healthy(activeMessage)},
		{prose: "the manager has not seen the newest change", object: with(newClusterBundle, func(o *policyv1alpha1.ClusterPolicyBundle) { o.Generation++ }), want: progressing(unobservedMessage)},
		{prose: "the policies wait to be checked", object: with(newClusterBundle, withCheck(policyv1alpha1.PolicyCheckWaiting, "Another bundle is being checked.")),
			want: progressing("The policies wait to be checked. Another bundle is being checked.")},
		{prose: "the policies are being checked", object: with(newClusterBundle, withCheck(policyv1alpha1.PolicyCheckRunning, "")), want: progressing("The policies are being checked.")},
		{prose: "a stage of the gate is open", object: with(newClusterBundle, withReady(metav1.ConditionUnknown, "NotReached", ""), func(o *policyv1alpha1.ClusterPolicyBundle) { o.Status.Conditions[3].Status = metav1.ConditionUnknown }),
			want: progressing("The stage ContractOK of the gate is open.")},
		{prose: "the gate has refused the policies", object: with(newClusterBundle, withReady(metav1.ConditionFalse, policyv1alpha1.PolicyBundleCompileFailedReason, "The newest files are not enforced: freeze.rego:3:1 rego_parse_error. Revision 6d5f21 stays active.")),
			want: degraded("CompileFailed: The newest files are not enforced: freeze.rego:3:1 rego_parse_error. Revision 6d5f21 stays active.")},
		{prose: "a replica does not run the policies yet", object: with(newClusterBundle, func(o *policyv1alpha1.ClusterPolicyBundle) {
			o.Status.Replicas[1] = policyv1alpha1.PolicyReplica{Name: "manager-1", Revision: "77c9aa", Problem: "it is being loaded"}
		}), want: progressing(activeMessage + " 1 of 2 replicas do not run it yet. One says: it is being loaded")},
		{prose: "the policies are in shadow", object: with(newClusterBundle, inShadow...), want: suspended(shadowMessage + " The action promote goes on.")},
		{prose: "the policies are enforced in some namespaces", object: with(newClusterBundle, inCanary...), want: suspended(canaryMessage + " The action promote goes on.")},
		{prose: "the policies are enforced", object: with(newBundle), want: healthy(activeMessage)},
		{prose: "the gate has refused the policies", object: with(newBundle, func(o *policyv1alpha1.PolicyBundle) {
			o.Status.Conditions[7] = condition("Ready", metav1.ConditionFalse, "TestsFailed", "The newest files are not enforced: a test failed. Nothing of this bundle is enforced.")[0]
		}), want: degraded("TestsFailed: The newest files are not enforced: a test failed. Nothing of this bundle is enforced.")},
		{prose: "no controller acts on the kind", object: with(newBundle, func(o *policyv1alpha1.PolicyBundle) {
			o.Status = policyv1alpha1.PolicyBundleStatus{Conditions: condition("Stalled", metav1.ConditionTrue, "FeatureGateOff", "Policies are off.")}
		}), want: degraded("Policies are off.")},
	}
}
