// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// deployment is web of ten replicas in zones a, b and c, of which b has a patch.
func (c *cluster) deployment(template func(*kruise.UnitedDeployment)) *kruise.UnitedDeployment {
	d := &kruise.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "web"}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Replicas, d.Spec.Selector = ptr.To[int32](10), selector
	d.Spec.Template.CloneSetTemplate = &kruise.CloneSetTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	d.Spec.Template.CloneSetTemplate.Spec.Template = pods("nginx:1")
	template(d)
	switch t := &d.Spec.Template; {
	case t.CloneSetTemplate != nil:
		t.CloneSetTemplate.Spec.Selector = selector
	case t.StatefulSetTemplate != nil:
		t.StatefulSetTemplate.Spec.Selector = selector
	case t.AdvancedStatefulSetTemplate != nil:
		t.AdvancedStatefulSetTemplate.Spec.Selector = selector
	case t.DeploymentTemplate != nil:
		t.DeploymentTemplate.Spec.Selector = selector
	}
	for _, name := range []string{"a", "b", "c"} {
		d.Spec.Topology.Subsets = append(d.Spec.Topology.Subsets, kruise.Subset{Name: name, NodeSelectorTerm: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
		}})
	}
	d.Spec.Topology.Subsets[0].Replicas = ptr.To(intstr.FromString("40%"))
	d.Spec.Topology.Subsets[1].Patch = runtime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"where":"b"}},"spec":{"containers":[{"name":"main","env":[{"name":"ZONE","value":"b"}]}]}}`)}
	d.Spec.Topology.Subsets[1].Tolerations = []corev1.Toleration{{Key: "zone", Operator: corev1.TolerationOpExists}}
	return d
}

// Of each template, on an API server with the defaults and checks that there are: a life from
// the first subset to the last, with what its users see in both versions.
func TestUnitedDeploymentsOnAnAPIServer(t *testing.T) {
	c := newCluster(t)
	for name, template := range templates() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := c.in(t, "life-"+strings.ToLower(strings.ReplaceAll(name, " ", "-")))
			c.create(c.deployment(template))
			c.live(name)
		})
	}
	t.Run("conflicts with other clients", func(t *testing.T) {
		t.Parallel()
		conflicts(c.in(t, "conflicts"))
	})
	t.Run("many changes of counts", func(t *testing.T) {
		t.Parallel()
		many(c.in(t, paced))
	})
	t.Run("a workload that the API server refuses", func(t *testing.T) {
		t.Parallel()
		refused(c.in(t, "refused"))
	})
	t.Run("a subset that is refused for its patch", func(t *testing.T) {
		t.Parallel()
		invalid(c.in(t, "invalid"))
	})
	t.Run("a name that is too long for the label of its revision", func(t *testing.T) {
		t.Parallel()
		long(c.in(t, "long"))
	})
	t.Run("v1alpha1", func(t *testing.T) {
		t.Parallel()
		older(c.in(t, "older"))
	})
}

func (c *cluster) live(name string) {
	c.Helper()
	all := c.have("a=4 b=3 c=3")
	for subset, one := range all {
		pod := templateOf(one)
		terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		if !strings.HasPrefix(one.GetName(), "web-"+subset+"-") || len(one.GetName()) != len("web-a-xxxxx") || terms[0].MatchExpressions[0].Values[0] != subset {
			c.Errorf("the workload of %s is %s, in %v", subset, one.GetName(), terms)
		}
		if patched := pod.Labels["where"] == "b" && len(pod.Spec.Containers[0].Env) == 1 && len(pod.Spec.Tolerations) == 1; patched != (subset == "b") {
			c.Errorf("the pods of %s are %+v", subset, pod)
		}
	}
	c.run()
	first := c.settled("all are ready", func(s *kruise.UnitedDeploymentStatus) bool {
		return s.Replicas == 10 && s.ReadyReplicas == 10 && s.UpdatedReadyReplicas == 10 && reason(s, kruise.UnitedDeploymentUpdated) == kruise.UnitedDeploymentRevisionUpdatedReason
	})
	// There are no nodes here, so that a pod that was seen before it was bound is reported too.
	conditions := slices.DeleteFunc(slices.Clone(first.Conditions), func(c kruise.UnitedDeploymentCondition) bool {
		return c.Type == kruise.UnitedDeploymentPlacing && c.Status == corev1.ConditionTrue
	})
	if first.LabelSelector != "app=web" || first.CurrentRevision == "" || first.CurrentRevision != first.UpdatedRevision || len(conditions) != 4 {
		c.Errorf("the status is %+v", first)
	}
	c.stays(name + " is written once")

	scale := &autoscalingv1.Scale{}
	c.do(c.api.SubResource("scale").Get(c.Context(), c.get(), scale))
	if scale.Spec.Replicas != 10 || scale.Status.Replicas != 10 || scale.Status.Selector != "app=web" {
		c.Errorf("the scale is %+v", scale)
	}
	scale.Spec.Replicas = 20
	c.do(c.api.SubResource("scale").Update(c.Context(), c.get(), client.WithSubResourceBody(scale)))
	c.have("a=8 b=6 c=6")
	c.run()
	c.settled("all of twenty are ready", func(s *kruise.UnitedDeploymentStatus) bool { return s.UpdatedReadyReplicas == 20 })

	c.edit(func(d *kruise.UnitedDeployment) {
		image(d, "nginx:2")
		d.Spec.UpdateStrategy.ManualUpdate = &kruise.ManualUpdate{Partitions: map[string]int32{"a": 3, "b": 100}}
	})
	partitions := map[string]int32{"a": 3, "b": 6, "c": 0}
	updated := int32(11)
	if name == "Deployment" { // it has no partition
		partitions, updated = map[string]int32{}, 20
	}
	apiserver.Eventually(c, "the new template", func() string {
		for subset, one := range c.children() {
			if templateOf(one).Spec.Containers[0].Image != "nginx:2" || one.partition != partitions[subset] {
				return fmt.Sprintf("%s has %s, partition %d", subset, templateOf(one).Spec.Containers[0].Image, one.partition)
			}
		}
		return ""
	})
	c.run()
	second := c.settled("those beyond the partitions are new", func(s *kruise.UnitedDeploymentStatus) bool { return s.UpdatedReadyReplicas == updated })
	if second.UpdatedRevision == first.UpdatedRevision || second.SubsetStatuses[1].Partition != 6 || (second.CurrentRevision == first.CurrentRevision) == (name == "Deployment") {
		c.Errorf("the status is %+v", second)
	}

	c.edit(func(d *kruise.UnitedDeployment) {
		d.Spec.UpdateStrategy.ManualUpdate = nil
		d.Spec.Topology.Subsets = append(d.Spec.Topology.Subsets[:2], kruise.Subset{Name: "d"})
	})
	c.have("a=8 b=6 c=6 d=6") // the old subset stands in
	ran := map[string]int64{}
	apiserver.Eventually(c, "the old subset goes", func() string {
		all := c.children()
		got := counted(all)
		if got == "a=8 b=6 d=6" {
			return ""
		}
		maps.DeleteFunc(all, func(name string, one *child) bool { return ran[name] == one.GetGeneration() })
		c.runEach(all) // the other subsets get their partitions meanwhile
		for name, one := range all {
			ran[name] = one.GetGeneration()
		}
		return fmt.Sprintf("there are %q", got)
	})
	c.settled("another subset, of the new revision", func(s *kruise.UnitedDeploymentStatus) bool {
		return s.UpdatedReadyReplicas == 20 && s.CurrentRevision == second.UpdatedRevision && len(s.SubsetStatuses) == 3 && s.SubsetStatuses[2].Name == "d"
	})
	apiserver.Eventually(c, "events", func() string {
		if got := c.told(kruise.SuccessfulUpdateSubsetReason); !slices.Equal(got, []string{"Create 1 Subset (d)", "Create 3 Subset (a, b, c)", "Delete 1 Subset (c)"}) {
			return fmt.Sprint(got)
		}
		return ""
	})
	c.revisions()
}

// revisions are kept as many as the limit says, and those that are in use.
func (c *cluster) revisions() {
	c.Helper()
	c.edit(func(d *kruise.UnitedDeployment) { d.Spec.RevisionHistoryLimit = ptr.To[int32](1) })
	var last string
	for n := range 3 {
		c.edit(func(d *kruise.UnitedDeployment) { image(d, fmt.Sprintf("nginx:%d", 10+n)) })
		s := c.settled("another revision", func(s *kruise.UnitedDeploymentStatus) bool { return s.UpdatedRevision != last })
		last = s.UpdatedRevision
		c.run()
		c.settled("all have it", func(s *kruise.UnitedDeploymentStatus) bool { return s.CurrentRevision == last })
	}
	apiserver.Eventually(c, "one old revision is kept", func() string {
		list := &appsv1.ControllerRevisionList{}
		c.do(c.api.List(c.Context(), list, client.InNamespace(c.namespace)))
		own := slices.DeleteFunc(list.Items, func(r appsv1.ControllerRevision) bool { return !metav1.IsControlledBy(&r, c.get()) })
		if len(own) != 2 || !slices.ContainsFunc(own, func(r appsv1.ControllerRevision) bool { return r.Name == last }) {
			return fmt.Sprintf("%d revisions", len(own))
		}
		return ""
	})
}

// conflicts: while other clients write to the workloads, the numbers come, and what the others
// wrote stays.
func conflicts(c *cluster) {
	c.Helper()
	c.create(c.deployment(templates()["CloneSet"]))
	all := c.have("a=4 b=3 c=3")
	c.run()
	c.settled("all are ready", func(s *kruise.UnitedDeploymentStatus) bool { return s.ReadyReplicas == 10 })
	ctx, stop := context.WithCancel(c.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ctx.Err() == nil; n++ {
			for _, one := range all {
				patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"annotations": {"team.example.com/n": "%d"}}}`, n))
				_ = c.api.Patch(ctx, one.Object.DeepCopyObject().(client.Object), patch)
			}
		}
	}()
	for _, n := range []int32{20, 11, 31, 10} {
		c.edit(func(d *kruise.UnitedDeployment) { d.Spec.Replicas = &n })
		time.Sleep(400 * time.Millisecond)
	}
	stop()
	<-ended
	for subset, one := range c.have("a=4 b=3 c=3") {
		if one.GetUID() != all[subset].GetUID() || one.GetAnnotations()["team.example.com/n"] == "" {
			c.Errorf("the workload of %s was %s with %v, and is %s with %v", subset, all[subset].GetName(), all[subset].GetAnnotations(), one.GetName(), one.GetAnnotations())
		}
	}
	c.run()
	c.settled("all are ready again", func(s *kruise.UnitedDeploymentStatus) bool {
		return s.ReadyReplicas == 10 && s.UpdatedReadyReplicas == 10
	})
	if told := c.told(kruise.FailedUpdateSubsetReason); len(told) > 0 {
		c.Errorf("a conflict is no failure that users are told: %q", told)
	}
}

// many: while the counts of the workloads change, the status is written twice a second at most,
// and the last counts are.
func many(c *cluster) {
	c.Helper()
	c.create(c.deployment(templates()["CloneSet"]))
	all := c.have("a=4 b=3 c=3")
	c.run()
	c.settled("all are ready", func(s *kruise.UnitedDeploymentStatus) bool { return s.ReadyReplicas == 10 })
	c.statuses.Store(0)
	began, changes := time.Now(), 0
	for ; changes < 600 && time.Since(began) < 3*time.Second; changes++ {
		for _, one := range all {
			ready := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status": {"readyReplicas": %d}}`, changes%3))
			c.do(c.api.Status().Patch(c.Context(), one.Object.DeepCopyObject().(client.Object), ready))
		}
	}
	writes, most := c.statuses.Load(), 2+int32(time.Since(began)/(500*time.Millisecond))
	c.Logf("%d changes of 3 workloads in %s: %d writes", changes, time.Since(began).Round(time.Millisecond), writes)
	if writes > most || writes == 0 {
		c.Errorf("%d writes for %d changes, want at most %d", writes, changes, most)
	}
	c.run()
	c.settled("all are ready again", func(s *kruise.UnitedDeploymentStatus) bool {
		return s.ReadyReplicas == 10 && s.UpdatedReadyReplicas == 10
	})
}

// refused: the workload of one subset is refused for a quota. The condition and the event name
// it, the others are there, and it comes with the quota.
func refused(c *cluster) {
	c.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "two"}}
	hard := corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}
	quota.Spec.Hard = hard
	c.do(c.api.Create(c.Context(), quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}}
	c.do(c.api.Status().Update(c.Context(), quota))
	c.create(c.deployment(templates()["Deployment"]))
	s := c.settled("the condition", func(s *kruise.UnitedDeploymentStatus) bool {
		return reason(s, kruise.UnitedDeploymentSubsetProvisioned) == kruise.UnitedDeploymentErrorReason
	})
	i := slices.IndexFunc(s.Conditions, func(c kruise.UnitedDeploymentCondition) bool {
		return c.Type == kruise.UnitedDeploymentSubsetProvisioned
	})
	if m := s.Conditions[i].Message; !strings.Contains(m, "creating the Deployment of subset a") || !strings.Contains(m, "exceeded quota") {
		c.Errorf("the condition is %q", m)
	}
	apiserver.Eventually(c, "the event", func() string {
		if got := c.told(kruise.FailedUpdateSubsetReason); len(got) != 1 || !strings.Contains(got[0], "subset a") {
			return fmt.Sprintf("%q", got)
		}
		return ""
	})
	c.do(c.api.Delete(c.Context(), quota))
	c.have("a=4 b=3 c=3")
	c.settled("the condition is true again", func(s *kruise.UnitedDeploymentStatus) bool {
		return reason(s, kruise.UnitedDeploymentSubsetProvisioned) == ""
	})
}

// invalid: the patch of one subset makes a pod that cannot be. The condition names the subset,
// and the others are updated.
func invalid(c *cluster) {
	c.Helper()
	c.create(c.deployment(templates()["Deployment"]))
	c.have("a=4 b=3 c=3")
	c.edit(func(d *kruise.UnitedDeployment) {
		d.Spec.Topology.Subsets[1].Patch = runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"main","ports":[{"containerPort":99999}]}]}}`)}
	})
	s := c.settled("the condition", func(s *kruise.UnitedDeploymentStatus) bool {
		return reason(s, kruise.UnitedDeploymentSubsetUpdated) == kruise.UnitedDeploymentErrorReason
	})
	i := slices.IndexFunc(s.Conditions, func(c kruise.UnitedDeploymentCondition) bool { return c.Type == kruise.UnitedDeploymentSubsetUpdated })
	if m := s.Conditions[i].Message; !strings.Contains(m, "updating the Deployment of subset b") || !strings.Contains(m, "containerPort") {
		c.Errorf("the condition is %q", m)
	}
	c.edit(func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets[1].Patch = runtime.RawExtension{} })
	c.settled("the condition is true again", func(s *kruise.UnitedDeploymentStatus) bool {
		return reason(s, kruise.UnitedDeploymentSubsetUpdated) == ""
	})
}

// long: a name that makes the label of the revision too long is told, by a condition that
// names the subset.
func long(c *cluster) {
	c.Helper()
	d := c.deployment(templates()["CloneSet"])
	d.Name = strings.Repeat("x", 60)
	c.create(d)
	apiserver.Eventually(c, "the condition", func() string {
		c.do(c.api.Get(c.Context(), client.ObjectKeyFromObject(d), d))
		for _, s := range d.Status.Conditions {
			if s.Type == kruise.UnitedDeploymentSubsetProvisioned && strings.Contains(s.Message, "of subset a") && strings.Contains(s.Message, "must be no more than 63") {
				return ""
			}
		}
		return fmt.Sprint(d.Status.Conditions)
	})
}

// older: a client of v1alpha1 creates, updates and reads what it knows.
func older(c *cluster) {
	c.Helper()
	from := c.deployment(templates()["Advanced StatefulSet"])
	d := &v1alpha1.UnitedDeployment{ObjectMeta: from.ObjectMeta, Spec: from.Spec}
	c.create(d)
	c.have("a=4 b=3 c=3")
	c.run()
	c.do(c.api.Get(c.Context(), c.key(), d))
	was := d.DeepCopy()
	d.Spec.UpdateStrategy.ManualUpdate = &kruise.ManualUpdate{Partitions: map[string]int32{"b": 2}}
	d.Spec.Template.AdvancedStatefulSetTemplate.Spec.Template.Spec.Containers[0].Image = "nginx:2"
	c.do(c.api.Patch(c.Context(), d, client.MergeFrom(was)))
	apiserver.Eventually(c, "the partition", func() string {
		if b := c.children()["b"]; b == nil || b.partition != 2 || templateOf(b).Spec.Containers[0].Image != "nginx:2" {
			return fmt.Sprintf("%+v", b)
		}
		return ""
	})
	c.run()
	apiserver.Eventually(c, "the status of v1alpha1", func() string {
		c.do(c.api.Get(c.Context(), c.key(), d))
		s := d.Status
		if s.UpdatedReplicas != 8 || s.SubsetReplicas["a"] != 4 || s.UpdateStatus == nil || s.UpdateStatus.CurrentPartitions["b"] != 2 || s.UpdateStatus.UpdatedRevision == "" {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	if hub := c.get().Status; hub.UpdatedRevision != d.Status.UpdateStatus.UpdatedRevision {
		c.Errorf("v1beta1 says %s, v1alpha1 %s", hub.UpdatedRevision, d.Status.UpdateStatus.UpdatedRevision)
	}
}
