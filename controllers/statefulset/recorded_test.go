// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/claims"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// mount adds a claim template and a mount of it, or removes both if they are there.
func mount(name string) func(*kruise.StatefulSet) {
	return func(set *kruise.StatefulSet) {
		main := &set.Spec.Template.Spec.Containers[0]
		at := slices.IndexFunc(set.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == name })
		if at < 0 {
			set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
			main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
			return
		}
		set.Spec.VolumeClaimTemplates = slices.Delete(set.Spec.VolumeClaimTemplates, at, at+1)
		main.VolumeMounts = slices.DeleteFunc(main.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name })
	}
}

// claimNames are the claims that a pod has.
func claimNames(p *corev1.Pod) string {
	var out []string
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return strings.Join(out, " ")
}

func (w *world) remove(o client.Object) {
	w.t.Helper()
	if err := w.c.Delete(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// forget takes the records of claim templates off all revisions, as if another release had made them.
func (w *world) forget() {
	w.t.Helper()
	list := &appsv1.ControllerRevisionList{}
	if err := w.c.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		delete(list.Items[i].Annotations, revision.ClaimTemplatesKey)
		if err := w.c.Update(w.t.Context(), &list.Items[i]); err != nil {
			w.t.Fatal(err)
		}
	}
}

// A pod that the partition keeps comes back with the claims of its own revision, whatever the
// next one drops and adds.
func TestPodsHaveTheClaimsOfTheirRevision(t *testing.T) {
	e := testEngine(t)
	for name, tc := range map[string]struct {
		first, next []string // claims, the next toggled
		unrecorded  bool
		lost        bool // the claim of db-0 too
		old, new    string
		all         string // claims in the end
	}{
		"one is dropped":                        {first: []string{"data"}, next: []string{"data"}, old: "data-db-0", all: "data-db-0 data-db-1"},
		"one is dropped, and is lost":           {first: []string{"data"}, next: []string{"data"}, lost: true, old: "data-db-0", all: "data-db-0 data-db-1"},
		"one of two is dropped":                 {first: []string{"data", "logs"}, next: []string{"data"}, old: "data-db-0 logs-db-0", new: "logs-db-1", all: "data-db-0 data-db-1 logs-db-0 logs-db-1"},
		"one is added":                          {first: []string{"data"}, next: []string{"logs"}, old: "data-db-0", new: "data-db-1 logs-db-1", all: "data-db-0 data-db-1 logs-db-1"},
		"the first one is added":                {next: []string{"logs"}, old: "", new: "logs-db-1", all: "logs-db-1"},
		"one takes the place of another":        {first: []string{"data"}, next: []string{"data", "logs"}, old: "data-db-0", new: "logs-db-1", all: "data-db-0 data-db-1 logs-db-1"},
		"one is dropped, which nothing records": {first: []string{"data"}, next: []string{"data"}, unrecorded: true, old: "data-db-0", all: "data-db-0 data-db-1"},
		"one is added, which nothing records": {
			first: []string{"data"}, next: []string{"logs"}, unrecorded: true,
			old: "data-db-0 logs-db-0", new: "data-db-1 logs-db-1", all: "data-db-0 data-db-1 logs-db-0 logs-db-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, e, Gates{}, testSet(2, func(set *kruise.StatefulSet) {
				set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](1)
				for _, claim := range tc.first {
					mount(claim)(set)
				}
			}))
			w.steps(4)
			if tc.unrecorded {
				w.forget()
			}
			w.change(func(set *kruise.StatefulSet) {
				for _, claim := range tc.next {
					mount(claim)(set)
				}
			})
			w.steps(6)
			w.remove(w.pods()["db-0"])
			if tc.lost {
				w.remove(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data-db-0"}})
			}
			w.steps(4)
			pods := w.pods()
			if old, next := claimNames(pods["db-0"]), claimNames(pods["db-1"]); old != tc.old || next != tc.new {
				t.Errorf("db-0 has %q, want %q; db-1 has %q, want %q", old, tc.old, next, tc.new)
			}
			var all []string
			for claim := range w.claimOwners() {
				all = append(all, claim)
			}
			slices.Sort(all)
			if got := strings.Join(all, " "); got != tc.all {
				t.Errorf("the claims are %s, want %s", got, tc.all)
			}
			w.change(func(set *kruise.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = nil })
			w.steps(8)
			if got, want := claimNames(w.pods()["db-0"]), strings.ReplaceAll(tc.new, "db-1", "db-0"); got != want {
				t.Errorf("once it is updated db-0 has %q, want %q", got, want)
			}
		})
	}
}

// steps lets so many rounds happen.
func (w *world) steps(n int) {
	w.t.Helper()
	for range n {
		w.reconcile()
		w.kubelet()
		w.now = w.now.Add(1e9)
	}
}

// An edit of claim templates alone is no update: pods that are made later have them, and the
// revision records them for when the next one comes.
func TestAnEditOfClaimTemplatesAloneIsNoUpdate(t *testing.T) {
	w := newWorld(t, testEngine(t), Gates{}, testSet(1, mount("data")))
	w.steps(3)
	w.did()
	w.change(func(set *kruise.StatefulSet) {
		set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "logs"}})
	})
	w.steps(3)
	list := &appsv1.ControllerRevisionList{}
	if err := w.c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if got := w.did(); got != "" || len(list.Items) != 1 {
		t.Fatalf("it did %q, and there are %d revisions", got, len(list.Items))
	}
	if recorded, _ := revision.ClaimTemplates(&list.Items[0]); len(recorded) != 2 {
		t.Errorf("the revision records %v", recorded)
	}
	w.remove(w.pods()["db-0"])
	w.steps(3)
	if got := claimNames(w.pods()["db-0"]); got != "data-db-0 logs-db-0" {
		t.Errorf("the next pod has %q", got)
	}
}

// Where nothing says what a claim was like, and it is gone, the condition and the event of the
// pod that the API server refuses tell what helps.
func TestAPodWhoseClaimNothingRecordsTellsWhatHelps(t *testing.T) {
	s := newLife(t, testEngine(t), testSet(1, func(set *kruise.StatefulSet) {
		set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}))
	s.RunUntilStable()
	s.change(func(set *kruise.StatefulSet) {
		set.Spec.Template.Spec.Containers[0].VolumeMounts = nil
		set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](1)
	})
	s.Deny = func(o client.Object, what string) error {
		if p, ok := o.(*corev1.Pod); ok && what == "create" && len(claims.UnknownMounts(&p.Spec)) > 0 {
			return errors.New("spec.containers[0].volumeMounts[0].name: Not found")
		}
		return s.judge(o, what)
	}
	s.ShowAll(nil)
	s.Reconcile()
	s.Delete(s.FindPod("db-0"))
	s.pass("")
	c := rollout.FindCondition(s.set().Status.Conditions, string(kruise.StatefulSetFailedCreatePod))
	if c == nil || !strings.Contains(c.Message, "mounts data, for which spec.volumeClaimTemplates has no template any more") {
		t.Errorf("the condition is %+v%s", c, s.DescribeState())
	}
}
