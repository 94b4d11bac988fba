// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// discoverActions returns for each action whether Argo CD lets a user run it.
func discoverActions(m *luaMachine, script string, fields map[string]any) (map[string]bool, error) {
	result, err := m.runScript(script, fields)
	if err != nil {
		return nil, err
	}
	actions, ok := result.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("discovery answers %v", result)
	}
	out := map[string]bool{}
	for name, action := range actions {
		settings, _ := action.(map[string]any)
		disabled, ok := settings["disabled"].(bool)
		if !ok || len(settings) != 1 {
			return nil, fmt.Errorf("action %s is %v", name, action)
		}
		out[name] = !disabled
	}
	return out, nil
}

// runAction runs an action and returns the merge patch that Argo CD sends.
func runAction(m *luaMachine, script string, fields map[string]any) (string, error) {
	result, err := m.runScript(script, fields)
	if err != nil {
		return "", err
	}
	before, err := json.Marshal(fields)
	if err != nil {
		return "", err
	}
	after, err := json.Marshal(restoreEmpty(result, fields))
	if err != nil {
		return "", err
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	return string(patch), err
}

// setAnnotation annotates an object.
func setAnnotation[T client.Object](key, value string) func(T) {
	return func(o T) { o.SetAnnotations(map[string]string{key: value}) }
}

// ownByUnitedDeployment makes an object the subset of a UnitedDeployment.
func ownByUnitedDeployment(o *kruise.CloneSet) {
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "UnitedDeployment", Name: "zones", Controller: ptr.To(true)}}
}

// actionCase is an object, and the actions that make sense for it with the patches that they make. alpha has those of v1alpha1
// that differ.
type actionCase struct {
	name   string
	object client.Object
	want   map[string]string
	alpha  map[string]string
}

// restartPatch stands for the time of a restart.
const restartPatch = `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"TIME"}}}}}`

func actionCases() []actionCase {
	rolling := func(field, value string) string {
		return fmt.Sprintf(`{"spec":{"updateStrategy":{"rollingUpdate":{%q:%s}}}}`, field, value)
	}
	flat := func(field, value string) string {
		return fmt.Sprintf(`{"spec":{"updateStrategy":{%q:%s}}}`, field, value)
	}
	job := func(value string) string { return fmt.Sprintf(`{"spec":{"paused":%s}}`, value) }
	approve := `{"metadata":{"annotations":{"regatta.sh/approved-revision":"web-6d5f"}}}`
	updating := withCloneSetCounts(10, 10, 3, 3, 3)
	return slices.Concat([]actionCase{
		{"a complete rollout", with(newCloneSet), map[string]string{"pause": rolling("paused", "true"), "restart": restartPatch},
			map[string]string{"pause": flat("paused", "true")}},
		{"a rollout at its partition", with(newCloneSet, updating, withPartition(intstr.FromInt32(7))),
			map[string]string{"pause": rolling("paused", "true"), "restart": restartPatch, "approve": approve, "promote": rolling("partition", "0")},
			map[string]string{"pause": flat("paused", "true"), "promote": flat("partition", "0")}},
		{"a partition without old pods", with(newCloneSet, withPartition(intstr.FromInt32(7)), func(o *kruise.CloneSet) { o.Status.ExpectedUpdatedReplicas = 3 }),
			map[string]string{"pause": rolling("paused", "true"), "restart": restartPatch}, map[string]string{"pause": flat("paused", "true")}},
		{"a change that the controller has not seen", with(newCloneSet, updating, withPartition(intstr.FromInt32(7)), makeCloneSetUnobserved),
			map[string]string{"pause": rolling("paused", "true"), "restart": restartPatch}, map[string]string{"pause": flat("paused", "true")}},
		{"a paused rollout", with(newCloneSet, withCloneSetCounts(10, 10, 4, 4, 10), pauseCloneSet),
			map[string]string{"resume": rolling("paused", "false"), "approve": approve}, map[string]string{"resume": flat("paused", "false")}},
		{"an approved rollout", with(newCloneSet, withCloneSetCounts(10, 10, 4, 4, 10), setAnnotation[*kruise.CloneSet]("regatta.sh/approved-revision", "web-6d5f")),
			map[string]string{"pause": rolling("paused", "true"), "restart": restartPatch}, map[string]string{"pause": flat("paused", "true")}},
		{"approval of an older revision", with(newCloneSet, withCloneSetCounts(10, 10, 4, 4, 10), setAnnotation[*kruise.CloneSet]("regatta.sh/approved-revision", "web-77c9")),
			map[string]string{"pause": rolling("paused", "true"), "restart": restartPatch, "approve": approve}, map[string]string{"pause": flat("paused", "true")}},
		{"no annotations, and an empty strategy", with(newCloneSet, withCloneSetCounts(10, 10, 4, 4, 10), func(o *kruise.CloneSet) {
			o.Annotations, o.Spec.UpdateStrategy = nil, kruise.CloneSetUpdateStrategy{}
		}),
			map[string]string{"pause": rolling("paused", "true"), "restart": restartPatch, "approve": approve}, map[string]string{"pause": flat("paused", "true")}},
		{"strategy OnDelete", with(newCloneSet, withCloneSetCounts(10, 10, 4, 4, 10), func(o *kruise.CloneSet) {
			o.Spec.UpdateStrategy = kruise.CloneSetUpdateStrategy{Type: kruise.OnDeleteCloneSetUpdateStrategyType}
		}), map[string]string{"approve": approve}, nil},
		{"update policy InPlaceOnly", with(newCloneSet, func(o *kruise.CloneSet) {
			o.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = kruise.InPlaceOnlyPodUpdatePolicyType
		}), map[string]string{"pause": rolling("paused", "true")}, map[string]string{"pause": flat("paused", "true")}},
		{"a subset of a UnitedDeployment", with(newCloneSet, updating, withPartition(intstr.FromInt32(7)), ownByUnitedDeployment), map[string]string{"approve": approve}, nil},
		{"a StatefulSet at its partition", with(newStatefulSet, withStatefulSetCounts(5, 5, 2, 2), withStatefulSetPartition(3)),
			map[string]string{"pause": rolling("paused", "true"), "restart": restartPatch, "approve": approve, "promote": rolling("partition", "0")}, nil},
		{"a paused StatefulSet", with(newStatefulSet, func(o *kruise.StatefulSet) { o.Spec.UpdateStrategy.RollingUpdate.Paused = true }),
			map[string]string{"resume": rolling("paused", "false")}, nil},
		{"a DaemonSet at its partition", with(newDaemonSet, withDaemonSetCounts(8, 8, 4), withDaemonSetPartition(intstr.FromString("50%"))),
			map[string]string{"pause": rolling("paused", "true"), "restart": restartPatch, "approve": approve, "promote": rolling("partition", "0")}, nil},
		{"a paused DaemonSet", with(newDaemonSet, func(o *kruise.DaemonSet) {
			o.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateDaemonSet{Paused: ptr.To(true)}
		}), map[string]string{"resume": rolling("paused", "false")}, nil},
		{"a SidecarSet at its partition", with(newSidecarSet, withSidecarSetCounts(20, 7, 7), withSidecarSetPartition(intstr.FromString("62%"))),
			map[string]string{"pause": flat("paused", "true"), "approve": approve, "promote": flat("partition", "0")}, nil},
		{"a SidecarSet that updates no pod", with(newSidecarSet, withSidecarSetCounts(20, 7, 7), withSidecarSetPartition(intstr.FromInt32(13)), func(o *kruise.SidecarSet) {
			o.Spec.UpdateStrategy.Type = kruise.NotUpdateSidecarSetStrategyType
		}), map[string]string{"approve": approve}, nil},
		{"a paused SidecarSet", with(newSidecarSet, func(o *kruise.SidecarSet) { o.Spec.UpdateStrategy.Paused = true }), map[string]string{"resume": flat("paused", "false")}, nil},
		{"a running BroadcastJob", with(newBroadcastJob), map[string]string{"pause": job("true")}, nil},
		{"a paused BroadcastJob", with(newBroadcastJob, func(o *kruise.BroadcastJob) { o.Spec.Paused = true }), map[string]string{"resume": job("false")}, nil},
		{"a BroadcastJob that has ended", with(newBroadcastJob, endBroadcastJob), map[string]string{}, nil},
		{"an AdvancedCronJob", with(newAdvancedCronJob), map[string]string{"pause": job("true")}, nil},
		{"a paused AdvancedCronJob", with(newAdvancedCronJob, func(o *kruise.AdvancedCronJob) { o.Spec.Paused = ptr.To(true) }), map[string]string{"resume": job("false")}, nil},
		{"an EphemeralJob", with(newEphemeralJob), map[string]string{"pause": job("true")}, nil},
		{"a paused EphemeralJob", with(newEphemeralJob, func(o *v1alpha1.EphemeralJob) { o.Spec.Paused = true }), map[string]string{"resume": job("false")}, nil},
	}, unitedDeploymentCases(approve), bundleCases())
}

func unitedDeploymentCases(approve string) []actionCase {
	restartOf := func(template string) string {
		return fmt.Sprintf(`{"spec":{"template":{%q:%s}}}`, template, restartPatch)
	}
	updating := withUnitedDeploymentCounts(6, 3, 3)
	return []actionCase{
		{"a UnitedDeployment at its partitions", with(newUnitedDeployment, updating, withSubsetPartitions(map[string]int32{"zone-a": 0, "zone-b": 9})),
			map[string]string{"restart": restartOf("cloneSetTemplate"), "approve": approve, "promote": `{"spec":{"updateStrategy":{"manualUpdate":{"partitions":{"zone-b":0}}}}}`}, nil},
		{"a UnitedDeployment of Deployments", with(newUnitedDeployment, updating, withSubsetPartitions(map[string]int32{"zone-b": 3}), withDeployments),
			map[string]string{"restart": restartOf("deploymentTemplate"), "approve": approve}, nil},
		{"a UnitedDeployment without a template", with(newUnitedDeployment, func(o *kruise.UnitedDeployment) { o.Spec.Template = kruise.SubsetTemplate{} }), map[string]string{}, nil},
		{"a UnitedDeployment whose template is paused", with(newUnitedDeployment, func(o *kruise.UnitedDeployment) {
			o.Spec.Template.CloneSetTemplate.Spec.UpdateStrategy.RollingUpdate.Paused = true
		}), map[string]string{}, nil},
	}
}

func bundleCases() []actionCase {
	mode := func(next string) map[string]string {
		return map[string]string{"promote": fmt.Sprintf(`{"spec":{"mode":%q}}`, next)}
	}
	shadowed := func(change func(*policyv1alpha1.ClusterPolicyBundle)) client.Object {
		return with(newClusterBundle, append(slices.Clone(inShadow), change)...)
	}
	withShadow := func(change func(*policyv1alpha1.PolicyShadow)) client.Object {
		return shadowed(func(o *policyv1alpha1.ClusterPolicyBundle) { change(o.Status.Replicas[1].Shadow) })
	}
	none := map[string]string{}
	return []actionCase{
		{"an enforced bundle", with(newClusterBundle), none, nil},
		{"a bundle in shadow that has namespaces for a canary", with(newClusterBundle, inShadow...), mode("Canary"), nil},
		{"a bundle in shadow without them", shadowed(func(o *policyv1alpha1.ClusterPolicyBundle) { o.Spec.Canary = nil }), mode("Enforce"), nil},
		{"a canary", with(newClusterBundle, inCanary...), mode("Enforce"), nil},
		{"a bundle that was rolled back", shadowed(func(o *policyv1alpha1.ClusterPolicyBundle) { o.Spec.Canary, o.Spec.RollbackTo = nil, "77c9aa" }),
			map[string]string{"promote": `{"spec":{"mode":"Enforce","rollbackTo":null}}`}, nil},
		{"a bundle that the gate has refused", shadowed(withReady(metav1.ConditionFalse, "TestsFailed", "a test failed")), none, nil},
		{"a bundle that the manager has not seen", shadowed(func(o *policyv1alpha1.ClusterPolicyBundle) { o.Generation++ }), none, nil},
		{"a bundle that a replica does not run", shadowed(func(o *policyv1alpha1.ClusterPolicyBundle) { o.Status.Replicas[1].Candidate = "" }), none, nil},
		{"a shadow with errors", withShadow(func(s *policyv1alpha1.PolicyShadow) { s.Errors = 1 }), none, nil},
		{"a shadow that is looser", withShadow(func(s *policyv1alpha1.PolicyShadow) { s.Looser = 1 }), none, nil},
		{"a shadow that was stopped", withShadow(func(s *policyv1alpha1.PolicyShadow) { s.Stopped = "too slow" }), none, nil},
		{"a tenant's bundle in shadow", with(newBundle, func(o *policyv1alpha1.PolicyBundle) {
			o.Spec.Mode, o.Status.Candidate = policyv1alpha1.PolicyModeShadow, &policyv1alpha1.PolicyArtifact{Revision: "a1b2c3"}
			o.Status.Replicas[0].Candidate, o.Status.Replicas[1].Candidate = "a1b2c3", "a1b2c3"
		}), mode("Enforce"), nil},
	}
}

// hideTime replaces the time of a restart if it is one of this test.
func hideTime(patch string, begin time.Time) string {
	var text string
	if _, after, ok := strings.Cut(patch, `restartedAt":"`); ok {
		text, _, _ = strings.Cut(after, `"`)
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Location() != time.UTC || at.Before(begin.Truncate(time.Second)) || at.After(time.Now()) {
		return patch
	}
	return strings.Replace(patch, text, "TIME", 1)
}

// Discovery offers the actions that make sense, and each changes its field and nothing else, to an object that is valid.
func TestActions(t *testing.T) {
	scheme, scripts, m, begin := newScheme(t), readScripts(t), newMachine(t), time.Now()
	run := map[string]bool{}
	for _, tc := range actionCases() {
		kinds, _, err := scheme.ObjectKinds(tc.object)
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range versionsOf(scheme, kinds[0].GroupKind()) {
			fields, got := serveObject(t, scheme, tc.object, version), map[string]string{}
			scripts := scripts[groupKind(fields)]
			offered, err := discoverActions(m, scripts.Discovery, fields)
			if err != nil {
				t.Errorf("%s, %s: %v", tc.name, version, err)
				continue
			}
			for _, action := range scripts.Actions {
				if !offered[action.Name] {
					continue
				}
				patch, err := runAction(m, action.Script, fields)
				if err != nil {
					t.Errorf("%s, %s, %s: %v", tc.name, version, action.Name, err)
					continue
				}
				got[action.Name], run[scripts.Name+"/"+action.Name] = hideTime(patch, begin), true
				if err := decodePatched(t, fields, patch); err != nil {
					t.Errorf("%s, %s, %s: the object is not valid: %v", tc.name, version, action.Name, err)
				}
			}
			want := map[string]string{}
			for action, patch := range tc.want {
				want[action] = patch
				if different := tc.alpha[action]; different != "" && version == "v1alpha1" {
					want[action] = different
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", tc.name, version, diff)
			}
		}
	}
	for _, kind := range scripts {
		for _, action := range kind.Actions {
			if !run[kind.Name+"/"+action.Name] {
				t.Errorf("%s of %s was not run", action.Name, kind.Name)
			}
		}
	}
}

// decodePatched reads a patched object into its type.
func decodePatched(t *testing.T, fields map[string]any, patch string) error {
	t.Helper()
	before, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	after, err := jsonpatch.MergePatch(before, []byte(patch))
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(after); err != nil {
		return err
	}
	typed, err := newScheme(t).New(u.GroupVersionKind())
	if err != nil {
		return err
	}
	return decodeStrictly(u.Object, typed)
}

// An action that would do harm ends with the reason, even if a client runs it though it is disabled.
func TestHarmfulActionsAreRefused(t *testing.T) {
	scheme, scripts, m := newScheme(t), readScripts(t), newMachine(t)
	for _, tc := range []struct {
		object       client.Object
		action, want string
	}{
		{with(newCloneSet, makeCloneSetUnobserved), "approve", unobservedMessage},
		{with(newCloneSet, func(o *kruise.CloneSet) { o.Status.UpdateRevision = "" }), "approve", "The status names no revision."},
		{with(newCloneSet, setAnnotation[*kruise.CloneSet]("regatta.sh/approved-revision", "web-6d5f")), "approve", "The newest revision is approved already."},
		{with(newCloneSet, ownByUnitedDeployment), "promote", "UnitedDeployment zones would undo the change: change the UnitedDeployment instead."},
		{with(newCloneSet, ownByUnitedDeployment), "pause", "UnitedDeployment zones would undo the change: change the UnitedDeployment instead."},
		{with(newCloneSet, pauseCloneSet), "restart", "spec.updateStrategy.rollingUpdate.paused is true: resume it first."},
		{with(newCloneSet, func(o *kruise.CloneSet) { o.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = "InPlaceOnly" }), "restart", "The update policy is InPlaceOnly, so no pod may be recreated."},
		{with(newCloneSet, func(o *kruise.CloneSet) { o.Spec.UpdateStrategy = kruise.CloneSetUpdateStrategy{Type: "OnDelete"} }), "promote", "spec.updateStrategy.type is OnDelete: a pod is updated when a client deletes it."},
		{with(newUnitedDeployment, func(o *kruise.UnitedDeployment) { o.Spec.Template = kruise.SubsetTemplate{} }), "restart", "spec.template has no template of pods."},
		{with(newBroadcastJob, endBroadcastJob), "pause", "The job has ended."},
		{with(newClusterBundle), "promote", "spec.mode is neither Shadow nor Canary."},
		{with(newClusterBundle, append(slices.Clone(inShadow), withReady(metav1.ConditionFalse, "TestsFailed", "a test failed"))...), "promote", "It has not passed the gate: a test failed"},
	} {
		gvk, err := apiutil.GVKForObject(tc.object, scheme)
		if err != nil {
			t.Fatal(err)
		}
		fields := serveObject(t, scheme, tc.object, gvk.Version)
		scripts := scripts[groupKind(fields)]
		i := slices.IndexFunc(scripts.Actions, func(a Action) bool { return a.Name == tc.action })
		if _, err := runAction(m, scripts.Actions[i].Script, fields); err == nil || !strings.HasPrefix(err.Error(), tc.want+"\n") {
			t.Errorf("%s of %s: got %v, want %s", tc.action, scripts.Name, err, tc.want)
		}
	}
}
