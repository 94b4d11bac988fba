// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/test/rules"
)

// Pods that are made of the revision before the update have its claims, whatever the update drops
// or adds.
func TestPodsHaveTheClaimsOfTheirRevision(t *testing.T) {
	set := claimSet(2, false)
	set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromInt32(4))
	s := newLife(t, rules.Engine(t, ""), gates{}, set)
	s.RunUntilStable()
	s.change(func(set *kruise.CloneSet) {
		set.Spec.Replicas = ptr.To[int32](5)
		set.Spec.Template.Spec.Containers[0].Image = "web:2"
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "logs"}}}
	})
	s.RunUntilStable()
	var got []string
	for _, p := range s.ListPods() {
		volumes := ""
		for _, v := range p.Spec.Volumes {
			volumes += " " + v.Name
		}
		got = append(got, fmt.Sprint(p.Spec.Containers[0].Image, volumes))
	}
	slices.Sort(got)
	if want := []string{"web:1 data", "web:1 data", "web:1 data", "web:1 data", "web:2 logs"}; !slices.Equal(got, want) {
		t.Errorf("the pods are %q, want %q%s", got, want, s.DescribeState())
	}
	if n := len(simulation.ListObjects[*corev1.PersistentVolumeClaim](s.Harness)); n != 5 {
		t.Errorf("there are %d claims%s", n, s.DescribeState())
	}
}

// With reuse a pod that another client deletes comes back with its data, also where the update has dropped all claim templates and
// the partition keeps its revision.
func TestClaimsOfTheRevisionBeforeAreReused(t *testing.T) {
	set := claimSet(2, true)
	set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromInt32(2))
	s := newLife(t, rules.Engine(t, ""), gates{}, set)
	s.RunUntilStable()
	s.change(func(set *kruise.CloneSet) {
		set.Spec.Template.Spec.Containers[0].Image = "web:2"
		set.Spec.VolumeClaimTemplates = nil
	})
	s.RunUntilStable()
	s.comesBack(s.owned()[0], false)
}

// While pods are refused in each round, edits leave no more revisions than the limit.
func TestTheHistoryIsTruncatedWhileSomethingFails(t *testing.T) {
	set := claimSet(2, false)
	set.Spec.RevisionHistoryLimit = ptr.To[int32](1)
	set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromInt32(9))
	s := newLife(t, rules.Engine(t, ""), gates{}, set)
	s.RunUntilStable()
	s.Deny = func(o client.Object, what string) error {
		if _, ok := o.(*corev1.Pod); ok && what == "create" {
			return errors.New("exceeded quota")
		}
		return nil
	}
	for i := range 5 {
		s.change(func(set *kruise.CloneSet) {
			set.Spec.Replicas = ptr.To[int32](3)
			set.Spec.Template.Spec.Containers[0].Image = fmt.Sprint("web:", i+2)
		})
		for range 3 {
			s.ShowAll(nil)
			s.Reconcile()
		}
	}
	if s.Failures == 0 {
		t.Fatalf("nothing fails%s", s.DescribeState())
	}
	if n := len(simulation.ListObjects[*appsv1.ControllerRevision](s.Harness)); n != 3 { // current, update and one that is idle
		t.Errorf("there are %d revisions%s", n, s.DescribeState())
	}
}
