// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/openkruise"
)

// all are the resource versions of what a change over must not write.
func (c *cluster) all() map[string]string {
	c.Helper()
	out := map[string]string{}
	for _, list := range []client.ObjectList{&kruise.CloneSetList{}, &appsv1.ControllerRevisionList{}, &corev1.PodList{}} {
		c.do(c.api.List(c.Context(), list, client.InNamespace(c.namespace)))
		switch list := list.(type) {
		case *kruise.CloneSetList:
			for _, o := range list.Items {
				out["CloneSet "+o.Name] = o.ResourceVersion
			}
		case *appsv1.ControllerRevisionList:
			for _, o := range list.Items {
				out["ControllerRevision "+o.Name] = o.ResourceVersion
			}
		case *corev1.PodList:
			for _, o := range list.Items {
				out["Pod "+o.Name] = o.ResourceVersion
			}
		}
	}
	return out
}

// What OpenKruise left, before, during and after an update, is taken over on an API server:
// nothing but the status of the UnitedDeployment is written. Then it goes on from there.
func TestTakingOverOnAnAPIServer(t *testing.T) {
	c := serve(t)
	stages, objects := map[string]*cluster{}, map[string][]client.Object{}
	for _, stage := range []string{"before", "during", "after"} {
		stages[stage] = c.in(t, "takeover-"+stage)
		stages[stage].name = "zones"
		objects[stage] = openkruise.Objects(t, apiserver.Scheme(t), "testdata/openkruise/"+stage+".yaml")
		for _, o := range objects[stage] {
			o.SetNamespace(stages[stage].namespace)
		}
		openkruise.Put(t, c.api, slices.DeleteFunc(slices.Clone(objects[stage]), func(o client.Object) bool {
			return o.GetName() != "zones" && o.GetName() != "zones-58b4b5b96d" // the first revision
		}))
	}
	// OpenKruise gives both revisions one number, and the later one is the newer one.
	time.Sleep(time.Second)
	for stage := range stages {
		openkruise.Put(t, c.api, objects[stage])
	}
	before, revisions := map[string]map[string]string{}, map[string]string{}
	for stage, c := range stages {
		before[stage], revisions[stage] = c.all(), c.get().Status.UpdatedRevision
		if len(before[stage]) < 10 {
			t.Fatalf("%s has %v", stage, before[stage])
		}
	}
	c.control()
	for stage, own := range stages {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			c := &cluster{T: t, api: own.api, namespace: own.namespace, name: own.name}
			c.settled("it is taken over", func(*kruise.UnitedDeploymentStatus) bool { return true })
			for n := range int32(3) { // each is one more round
				c.edit(func(d *kruise.UnitedDeployment) { d.Spec.RevisionHistoryLimit = ptr.To(11 + n) })
				c.settled("another round", func(*kruise.UnitedDeploymentStatus) bool { return true })
			}
			if after := c.all(); !maps.Equal(before[stage], after) {
				t.Errorf("the versions were %v, and are %v", before[stage], after)
			}
			s := c.get().Status
			if s.UpdatedRevision != revisions[stage] || s.Replicas != 5 || s.ReadyReplicas != 5 || c.counts() != "a=2 b=3" || (s.CurrentRevision == s.UpdatedRevision) != (stage != "during") {
				t.Errorf("the status is %+v, the subsets have %s", s, c.counts())
			}
			if told := c.told(kruise.SuccessfulUpdateSubsetReason); len(told) > 0 {
				t.Errorf("told was %q", told)
			}
			c.edit(func(d *kruise.UnitedDeployment) { d.Spec.Replicas = ptr.To[int32](8) })
			c.have("a=2 b=6")
			c.edit(func(d *kruise.UnitedDeployment) {
				d.Spec.UpdateStrategy.ManualUpdate = &kruise.ManualUpdate{Partitions: map[string]int32{"a": 1, "b": 5}}
			})
			apiserver.Eventually(c, "the partitions", func() string {
				if all := c.children(); all["a"].partition != 1 || all["b"].partition != 5 {
					return fmt.Sprintf("%d and %d", all["a"].partition, all["b"].partition)
				}
				return ""
			})
		})
	}
}
