// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// While a pod is refused in each round, edits leave no more revisions than the limit, and none
// goes that is the current one, or that a pod has.
func TestTheHistoryIsTruncatedWhileSomethingFails(t *testing.T) {
	s := newLife(t, testEngine(t), testSet(3, func(set *kruise.StatefulSet) {
		set.Spec.RevisionHistoryLimit = ptr.To[int32](1)
		set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](1)
	}))
	s.RunUntilStable()
	first := s.set().Status.CurrentRevision
	s.refuse(func(name string) bool { return name == "db-1" })
	s.Delete(s.FindPod("db-1"))
	for _, tag := range []string{"2", "3", "4", "5", "6"} {
		s.change(image(tag))
		s.pass("")
	}
	if c := rollout.FindCondition(s.set().Status.Conditions, string(kruise.StatefulSetFailedCreatePod)); c == nil {
		t.Fatalf("nothing fails%s", s.DescribeState())
	}
	var names []string
	for _, rev := range simulation.ListObjects[*appsv1.ControllerRevision](s.Harness) {
		names = append(names, rev.Name)
	}
	if len(names) != 3 || !slices.Contains(names, first) { // current, update and one that is idle
		t.Errorf("the revisions are %v, and the current one is %s%s", names, first, s.DescribeState())
	}
	for _, p := range s.ListPods() {
		label := p.Labels[rollout.RevisionLabel]
		if !slices.ContainsFunc(names, func(name string) bool { return revision.SameHash(name, label) }) {
			t.Errorf("revision %s of pod %s is gone%s", label, p.Name, s.DescribeState())
		}
	}
}
