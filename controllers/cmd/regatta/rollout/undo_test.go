// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/test/terminal"
)

// words are the words of the samples, in an order.
func words() []string { return slices.Sorted(maps.Keys(samples)) }

func kindOf(t *testing.T, word string) edit.Kind {
	t.Helper()
	for _, k := range ListKinds() {
		if k.IsNamed(word) {
			return k
		}
	}
	t.Fatalf("no kind is %s", word)
	return edit.Kind{}
}

func (s *shop) createNamespace(t *testing.T, name string) {
	t.Helper()
	if err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// containersOf are the containers of an object of samples.
func containersOf(t *testing.T, word string, object *unstructured.Unstructured) []any {
	t.Helper()
	path, err := kindOf(t, word).PodSpecPath(object)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := unstructured.NestedSlice(object.Object, append(path, "containers")...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// typedSpec is the spec of an object of samples as its controller reads it.
func typedSpec(t *testing.T, word string, object *unstructured.Unstructured) any {
	t.Helper()
	switch word {
	case "clone":
		return convert[kruise.CloneSet](t, object.Object).Spec
	case "asts":
		return convert[kruise.StatefulSet](t, object.Object).Spec
	case "ads":
		return convert[kruise.DaemonSet](t, object.Object).Spec
	case "ud":
		return convert[kruise.UnitedDeployment](t, object.Object).Spec
	case "sidecarset":
		return convert[kruise.SidecarSet](t, object.Object).Spec
	}
	return object.Object["spec"] // exactly, since the API server completes it
}

func TestUndoBringsTheTemplateBackAndTheRevisionIsFoundAgain(t *testing.T) {
	s := newShop(t)
	s.createNamespace(t, "kruise-system")
	for _, word := range words() {
		t.Run(word, func(t *testing.T) {
			s.createSample(t, word)
			first, before := s.record(t, word), s.read(t, samples[word])
			s.wants(t, "undo "+word+"/web", 1, "", fmt.Sprintf("%s has no revision to go back to; its revisions are 1 (%s)", kindOf(t, word).Describe("web"), first))
			s.setImage(t, word, "web:2")
			// The controller has not seen the change yet, so the newest revision is the one to go back to.
			s.wants(t, "undo "+word+"/web --dry-run=server", 0, printed[word]+" rolled back (server dry run)\n", "")
			second := s.record(t, word)
			s.wants(t, "undo "+word+"/web --dry-run=client", 0, printed[word]+" rolled back (dry run)\n", "")
			s.wants(t, "undo "+word+"/web --to-revision 2", 0, printed[word]+" skipped rollback (current template already matches revision 2)\n", "")
			s.wants(t, "undo "+word+"/web --to-revision 7", 1, "", fmt.Sprintf("%s has no revision 7; its revisions are 2 (%s), 1 (%s)", kindOf(t, word).Describe("web"), second, first))
			s.wants(t, "undo "+word+"/web", 0, printed[word]+" rolled back\n", "")
			if diff := cmp.Diff(typedSpec(t, word, before), typedSpec(t, word, s.read(t, samples[word]))); diff != "" {
				t.Errorf("the spec (-was +is)\n%s", diff)
			}
			if third := s.record(t, word); third != first {
				t.Errorf("the controller makes revision %s, and %s is meant", third, first)
			}
			s.wants(t, "undo "+word+"/web --to-revision "+second, 0, printed[word]+" rolled back\n", "")
			if image := containersOf(t, word, s.read(t, samples[word]))[0].(map[string]any)["image"]; image != "web:2" {
				t.Errorf("the image is %v", image)
			}
		})
	}
}

func TestUndoTellsWhatKeepsPods(t *testing.T) {
	s := newShop(t)
	s.createNamespace(t, "kruise-system")
	for _, tc := range []struct{ word, patch, status, want string }{
		{"clone", "spec: {updateStrategy: {rollingUpdate: {paused: true}}}", "", "warning: CloneSet web: it is paused: pods change after `regatta rollout resume clone/web`\n"},
		{"clone", "spec: {updateStrategy: {rollingUpdate: {partition: 85%}}}", "", "warning: CloneSet web: spec.updateStrategy.rollingUpdate.partition is 85%: up to 9 of 10 pods keep their revision; `regatta partition clone/web 0` lets them follow\n"},
		{"clone", "spec: {updateStrategy: {type: OnDelete}}", "", "warning: CloneSet web: spec.updateStrategy.type is OnDelete: a pod changes when a client deletes it\n"},
		{"asts", "spec: {updateStrategy: {rollingUpdate: {partition: 3}}}", "", "warning: Advanced StatefulSet web: spec.updateStrategy.rollingUpdate.partition is 3: the 3 pods with the lowest ordinals of 10 keep their revision; `regatta partition asts/web 0` lets them follow\n"},
		{"asts", "spec: {podManagementPolicy: Parallel, updateStrategy: {rollingUpdate: {partition: 3, unorderedUpdate: {}}}}", "", "warning: Advanced StatefulSet web: spec.updateStrategy.rollingUpdate.partition is 3: up to 3 of 10 pods keep their revision; `regatta partition asts/web 0` lets them follow\n"},
		{"ads", "spec: {updateStrategy: {rollingUpdate: {partition: 50%}}}", "{desiredNumberScheduled: 5, currentNumberScheduled: 5, numberReady: 5, numberMisscheduled: 0, updatedNumberScheduled: 5}", "warning: Advanced DaemonSet web: spec.updateStrategy.rollingUpdate.partition is 50%: up to 2 of 5 pods keep their revision; `regatta partition ads/web 0` lets them follow\n"},
		{"statefulset", "spec: {updateStrategy: {rollingUpdate: {partition: 12}}}", "", "warning: StatefulSet of Kubernetes web: spec.updateStrategy.rollingUpdate.partition is 12: the 10 pods with the lowest ordinals of 10 keep their revision; `regatta partition statefulset/web 0` lets them follow\n"},
		{"daemonset", "spec: {updateStrategy: {type: OnDelete, rollingUpdate: null}}", "", "warning: DaemonSet of Kubernetes web: spec.updateStrategy.type is OnDelete: a pod changes when a client deletes it\n"},
		{"deployment", "spec: {paused: true}", "", "warning: Deployment of Kubernetes web: it is paused: pods change after `regatta rollout resume deployment/web`\n"},
		{"sidecarset", "spec: {updateStrategy: {partition: 2}}", "{matchedPods: 3, updatedPods: 1, readyPods: 3}", "warning: SidecarSet web: spec.updateStrategy.partition is 2: up to 2 of 3 pods keep their revision; `regatta partition sidecarset/web 0` lets them follow\n"},
		{"ud", "spec: {updateStrategy: {manualUpdate: {partitions: {a: 4, b: 0}}}}", "{replicas: 10, updatedReplicas: 0, currentRevision: web-1, subsetStatuses: [{name: a, replicas: 10}]}", "warning: UnitedDeployment web: spec.updateStrategy.manualUpdate.partitions lets up to 4 of 10 pods keep their revision; `regatta partition ud/web --subset a=0` lets them follow\n"},
		{"ud", "spec: {template: {cloneSetTemplate: {spec: {updateStrategy: {rollingUpdate: {paused: true}}}}}}", "", "warning: UnitedDeployment web: spec.template.cloneSetTemplate.spec.updateStrategy.rollingUpdate.paused is true: pods change once it is false\n"},
	} {
		t.Run(tc.word+" "+tc.patch, func(t *testing.T) {
			s.createSample(t, tc.word)
			s.change(t, samples[tc.word], tc.patch)
			s.setImage(t, tc.word, "web:1")
			s.record(t, tc.word)
			s.setImage(t, tc.word, "web:2")
			s.record(t, tc.word)
			if tc.status != "" {
				s.setStatus(t, samples[tc.word], tc.status)
			}
			s.wants(t, "undo "+tc.word+"/web", 0, printed[tc.word]+" rolled back\n", tc.want)
		})
	}
}

func TestUndoOfOtherThings(t *testing.T) {
	s := newShop(t)
	s.createNamespace(t, "kruise-system")
	t.Run("the claim templates of a set stay, and undo says so", func(t *testing.T) {
		claims := `spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: %s}}}}]}`
		s.createSample(t, "asts")
		s.change(t, samples["asts"], fmt.Sprintf(claims, "1Gi"))
		s.record(t, "asts")
		s.change(t, samples["asts"], fmt.Sprintf(claims, "2Gi"))
		s.setImage(t, "asts", "web:2")
		s.wants(t, "undo asts/web", 0, "statefulset.apps.kruise.io/web rolled back\n", "warning: Advanced StatefulSet web: spec.volumeClaimTemplates differs from that of revision 1 and is not changed\n")
	})
	t.Run("a SidecarSet has the name of the revision again", func(t *testing.T) {
		s.createSample(t, "sidecarset")
		s.change(t, samples["sidecarset"], "spec: {customVersion: one}")
		s.record(t, "sidecarset")
		s.change(t, samples["sidecarset"], "spec: {customVersion: two}")
		s.setImage(t, "sidecarset", "web:2")
		s.record(t, "sidecarset")
		s.wants(t, "undo sidecarset/web --manager-namespace elsewhere", 1, "", "SidecarSet web has no revision to go back to; its revisions are none")
		s.wants(t, "undo sidecarset/web", 0, "sidecarset.apps.kruise.io/web rolled back\n", "")
		if got := s.ReadField(t, samples["sidecarset"], "spec.customVersion"); got != "one\n" {
			t.Errorf("it is %s", got)
		}
	})
	t.Run("a Deployment has the cause of the revision again", func(t *testing.T) {
		s.createSample(t, "deployment")
		s.change(t, samples["deployment"], "metadata: {annotations: {kubernetes.io/change-cause: first}}")
		s.record(t, "deployment")
		s.change(t, samples["deployment"], "metadata: {annotations: {kubernetes.io/change-cause: second}}")
		s.setImage(t, "deployment", "web:2")
		s.record(t, "deployment")
		s.wants(t, "undo deployment/web", 0, "deployment.apps/web rolled back\n", "")
		if got := s.ReadField(t, samples["deployment"], "metadata.annotations"); got != "kubernetes.io/change-cause: first\n" {
			t.Errorf("it is %s", got)
		}
	})
	t.Run("a field that the types of this build lack", func(t *testing.T) {
		s.createSample(t, "clone")
		s.record(t, "clone") // without the field
		s.change(t, samples["clone"], "spec: {template: {spec: {futureField: {mode: new}}}}")
		s.record(t, "clone")
		if got := s.ReadField(t, samples["clone"], "spec.template.spec.futureField"); got != "mode: new\n" {
			t.Fatalf("it is %s", got)
		}
		if got := s.typed(t, "undo clone/web"); got.Code != 1 || !strings.HasPrefix(got.Err, "CloneSet web has no revision to go back to") {
			t.Errorf("%+v", got)
		}
		s.wants(t, "undo clone/web --to-revision 1", 0, "cloneset.apps.kruise.io/web rolled back\n", "")
		if got := s.ReadField(t, samples["clone"], "spec.template.spec.futureField"); got != "null\n" {
			t.Errorf("it is %s", got)
		}
		if got := s.typed(t, "undo clone/web --to-revision 1"); got.Code != 0 || !strings.Contains(got.Out, "skipped rollback") {
			t.Errorf("%+v", got)
		}
	})
	s.createSample(t, "clone")
	s.record(t, "clone")
	s.setImage(t, "clone", "web:2")
	s.record(t, "clone")
	t.Run("a template that another client writes meanwhile is not lost", func(t *testing.T) {
		var once atomic.Bool
		s.BeforeRequests(t, func(r *http.Request) {
			if r.Method == http.MethodPatch && once.CompareAndSwap(false, true) {
				s.setImage(t, "clone", "web:3")
			}
		})
		s.wants(t, "undo clone/web", 1, "", "changing CloneSet web: another client has changed the template meanwhile; look at regatta rollout history and try again")
		if image := containersOf(t, "clone", s.read(t, samples["clone"]))[0].(map[string]any)["image"]; image != "web:3" {
			t.Errorf("the image is %v", image)
		}
	})
	t.Run("another field that a client writes meanwhile stays", func(t *testing.T) {
		var once atomic.Bool
		s.BeforeRequests(t, func(r *http.Request) {
			if r.Method == http.MethodPatch && once.CompareAndSwap(false, true) {
				s.change(t, samples["clone"], "spec: {replicas: 3}")
			}
		})
		got := s.typed(t, "undo clone/web --to-revision 1 -o jsonpath={.spec.replicas}/{.spec.template.spec.containers[0].image}")
		if got.Out != "3/web:1" || got.Err != "" || got.Code != 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("an object that is deleted meanwhile", func(t *testing.T) {
		s.BeforeRequests(t, func(r *http.Request) {
			if r.Method == http.MethodPatch {
				_ = s.Delete(t.Context(), terminal.ParseObject(t, samples["clone"]))
			}
		})
		s.wants(t, "undo clone/web --to-revision 2", 3, "", "CloneSet web was deleted")
	})
	t.Run("a subset of a UnitedDeployment", func(t *testing.T) {
		s.CreateObjects(t, strings.Replace(samples["clone"], "name: web}", "name: web, ownerReferences: [{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, name: all, uid: u, controller: true}]}", 1))
		s.wants(t, "undo clone/web", 1, "", "CloneSet web is of UnitedDeployment all, which would undo the change; change the UnitedDeployment instead")
	})
	t.Run("revisions with one number are named", func(t *testing.T) {
		s.createSample(t, "ud")
		uid := s.read(t, samples["ud"]).GetUID()
		for _, name := range []string{"a", "b"} {
			s.CreateObjects(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: ControllerRevision, revision: 1, metadata: {namespace: default, name: web-%s,
				ownerReferences: [{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, name: web, uid: %s}]}, data: {spec: {template: {cloneSetTemplate: {spec: {selector: {matchLabels: {app: web}}, template: {spec: {containers: %s}}}}}}}}`,
				name, uid, map[string]string{"a": `[{name: a, image: "a:1"}]`, "b": `many`}[name]))
		}
		s.wants(t, "undo ud/web --to-revision 1", 1, "", "UnitedDeployment web has several revisions 1; name one of 1 (web-b), 1 (web-a) by its name")
		s.wants(t, "undo ud/web --to-revision web-b", 3, "", "changing UnitedDeployment web: reading revision web-b: .spec.template.cloneSetTemplate.spec.template.spec.containers accessor error: many is of the type string, expected []interface{}")
		s.wants(t, "undo ud/web --to-revision web-a", 0, "uniteddeployment.apps.kruise.io/web rolled back\n", "")
	})
}

// statusOf is a status with the fields of all kinds; the API server drops those that a kind does not have.
func statusOf(current, update string, updated int) string {
	return fmt.Sprintf(`{currentRevision: %q, updateRevision: %q, updatedRevision: %q, latestRevision: %q,
		replicas: 10, readyReplicas: 10, availableReplicas: 10, currentReplicas: %d, updatedReplicas: %d, updatedReadyReplicas: %d, updatedAvailableReplicas: %d,
		desiredNumberScheduled: 10, currentNumberScheduled: 10, numberReady: 10, numberAvailable: 10, numberMisscheduled: 0, updatedNumberScheduled: %d,
		matchedPods: 10, updatedPods: %d, readyPods: 10, updatedReadyPods: %d}`, current, update, update, update, 10-updated, updated, updated, updated, updated, updated, updated)
}

func TestAbort(t *testing.T) {
	s := newShop(t)
	s.createNamespace(t, "kruise-system")
	const advice = "; to go to another revision, name it with regatta rollout undo --to-revision"
	unavailable := strings.NewReplacer(" availableReplicas: 10", " availableReplicas: 9", "numberAvailable: 10", "numberAvailable: 9",
		" readyPods: 10", " readyPods: 9", "updatedReadyPods: 10", "updatedReadyPods: 9")
	for _, word := range words() {
		t.Run(word, func(t *testing.T) {
			s.createSample(t, word)
			name, namesCurrent := kindOf(t, word).Describe("web"), !slices.Contains([]string{"deployment", "daemonset", "sidecarset"}, word)
			first := s.record(t, word)
			if !namesCurrent {
				waitForNextSecond()
			}
			s.setImage(t, word, "web:2")
			if !namesCurrent {
				s.wants(t, "abort "+word+"/web", 1, "", "no revision has the template of "+name+": its controller has not recorded it yet; try again"+advice)
			}
			second := s.record(t, word)
			if !namesCurrent {
				s.wants(t, "abort "+word+"/web", 1, "", "the controller has not seen the newest change of "+name+" yet, so whether its rollout is complete is not known; try again")
			}
			s.setStatus(t, samples[word], statusOf(first, second, 4))
			s.wants(t, "abort "+word+"/web", 0, printed[word]+" rolled back to revision 1\n", "")
			spec := s.read(t, samples[word]).Object["spec"]
			again := fmt.Sprintf("a rollout back is under way already: %s has the template of revision 1 (%s), which is older than revision 2 (%s)"+advice, name, first, second)
			if namesCurrent {
				again = fmt.Sprintf("there is nothing to abort: %s has the template of revision 1 (%s), the last one that all pods had; regatta rollout undo goes back to the one before", name, first)
			}
			s.wants(t, "abort "+word+"/web", 1, "", again) // before the controller has seen the first one
			s.setStatus(t, samples[word], statusOf(first, second, 4))
			s.wants(t, "abort "+word+"/web", 1, "", again)
			s.record(t, word)
			s.setStatus(t, samples[word], statusOf(first, first, 6))
			again = strings.Replace(again, "revision 1 (", "revision 3 (", 1)
			s.wants(t, "abort "+word+"/web", 1, "", again)
			if diff := cmp.Diff(spec, s.read(t, samples[word]).Object["spec"]); diff != "" {
				t.Errorf("the second abort changes the spec (-was +is)\n%s", diff)
			}
			want := again
			if !namesCurrent {
				want = "there is nothing to abort: no pod of " + name + " has an older revision than its template; regatta rollout undo goes back to the revision before"
			}
			complete := statusOf(first, first, 10)
			for _, status := range []string{complete, unavailable.Replace(complete), strings.Replace(complete, "desiredNumberScheduled: 10", "desiredNumberScheduled: 12", 1)} {
				s.setStatus(t, samples[word], status)
				s.wants(t, "abort "+word+"/web", 1, "", want)
			}
			if word == "deployment" {
				s.change(t, samples[word], "spec: {replicas: 12}")
				s.setStatus(t, samples[word], complete)
				s.wants(t, "abort deployment/web", 1, "", want)
			}
		})
	}
	t.Run("a revision that is gone", func(t *testing.T) {
		s.createSample(t, "clone")
		only := s.record(t, "clone")
		s.setStatus(t, samples["clone"], statusOf("web-gone", "web-new", 4))
		s.wants(t, "abort clone/web", 1, "", "CloneSet web has no revision web-gone, which status.currentRevision names; its revisions are 1 ("+only+")")
	})
	t.Run("OnDelete", func(t *testing.T) {
		s.createSample(t, "asts")
		s.change(t, samples["asts"], "spec: {updateStrategy: {type: OnDelete}}")
		s.setStatus(t, samples["asts"], statusOf("web-old", "web-new", 4))
		s.wants(t, "abort asts/web", 1, "", "spec.updateStrategy.type of Advanced StatefulSet web is OnDelete, and its controller does not keep status.currentRevision then; name a revision with regatta rollout undo --to-revision")
	})
	t.Run("a partition that all pods above have reached", func(t *testing.T) {
		s.createSample(t, "sidecarset")
		s.record(t, "sidecarset")
		s.change(t, samples["sidecarset"], "spec: {updateStrategy: {partition: 6}}")
		waitForNextSecond()
		s.setImage(t, "sidecarset", "web:9")
		s.setStatus(t, samples["sidecarset"], statusOf("", s.record(t, "sidecarset"), 4))
		s.wants(t, "abort sidecarset/web", 0, "sidecarset.apps.kruise.io/web rolled back to revision 1\n",
			"warning: SidecarSet web: spec.updateStrategy.partition is 6: up to 6 of 10 pods keep their revision; `regatta partition sidecarset/web 0` lets them follow\n")
	})
}

// recordedAs reads a revision of the workload with UID u.
func recordedAs(t *testing.T, word, fields string) *recordedRevision {
	t.Helper()
	revision := terminal.ParseObject(t, "{apiVersion: apps/v1, kind: X, "+strings.TrimPrefix(fields, "{"))
	revision.SetOwnerReferences([]metav1.OwnerReference{{UID: "u"}})
	owner := &unstructured.Unstructured{Object: map[string]any{}}
	owner.SetUID("u")
	r := newRevision(kindOf(t, word), owner, revision)
	if r == nil || r.damage != nil {
		t.Fatalf("it is %+v", r)
	}
	return r
}

func TestAbortRefusesIfItIsNotKnownWhichRevisionIsTheNewest(t *testing.T) {
	template := "{spec: {containers: [{name: main, image: 'web:%d'}]}}"
	made := func(number int, at string) *recordedRevision {
		return recordedAs(t, "deployment", fmt.Sprintf("{metadata: {name: web-%d, creationTimestamp: %s, annotations: {%s: '%d'}}, spec: {template: "+template+"}}",
			number, at, deploymentRevisionKey, number, number))
	}
	early, late := "'2026-11-28T10:00:00Z'", "'2026-11-28T10:00:01Z'"
	const advice = "; to go to another revision, name it with regatta rollout undo --to-revision"
	for _, tc := range []struct {
		name, first, second string
		template            int
		want                string
	}{
		{"the later one", early, late, 2, ""},
		{"both at once", late, late, 2, "revisions 2 (web-2) and 1 (web-1) of Deployment of Kubernetes web were created at the same time, so which of them to abort is not known" + advice},
		{"without times", "null", "null", 2, "revisions 2 (web-2) and 1 (web-1) of Deployment of Kubernetes web were created at the same time, so which of them to abort is not known" + advice},
		{"the earlier one, though it has the higher number", late, early, 2, "a rollout back is under way already: Deployment of Kubernetes web has the template of revision 2 (web-2), which is older than revision 1 (web-1)" + advice},
		{"none of them", early, late, 3, "no revision has the template of Deployment of Kubernetes web: its controller has not recorded it yet; try again" + advice},
	} {
		t.Run(tc.name, func(t *testing.T) {
			live := withFields(t, "deployment", "{spec: {template: "+fmt.Sprintf(template, tc.template)+"}, status: {replicas: 10, updatedReplicas: 4}}")
			r, err := chooseAbort(&workloadHistory{kind: kindOf(t, "deployment"), object: live, all: []*recordedRevision{made(1, tc.first), made(2, tc.second)}})
			if tc.want == "" {
				if err != nil || r.number != 1 {
					t.Errorf("it is %v, %v", r, err)
				}
				return
			}
			if err == nil || err.Error() != tc.want || exit.Code(err) != exit.Refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAFinishedRolloutIsNotAborted(t *testing.T) {
	const containers = "containers: [{name: main, image: 'web:%d'}]"
	for word, of := range map[string]struct {
		revision, spec string
		finished       []string
		unfinished     string
	}{
		"deployment": {
			"{metadata: {name: web-%[1]d, creationTimestamp: '2026-11-28T10:00:0%[1]dZ', annotations: {deployment.kubernetes.io/revision: '%[1]d'}}, spec: {template: {spec: {%[2]s}}}}",
			"template: {spec: {%s}}",
			[]string{
				"{replicas: 10, updatedReplicas: 10, availableReplicas: 9}", "{replicas: 8, updatedReplicas: 8, availableReplicas: 8}",
				"{replicas: 12, updatedReplicas: 12, availableReplicas: 10}",
			},
			"{replicas: 11, updatedReplicas: 10, availableReplicas: 10}",
		},
		"daemonset": {
			"{metadata: {name: web-%[1]d, creationTimestamp: '2026-11-28T10:00:0%[1]dZ'}, revision: %[1]d, data: {spec: {template: {spec: {%[2]s}}}}}",
			"template: {spec: {%s}}",
			[]string{
				"{desiredNumberScheduled: 10, currentNumberScheduled: 10, updatedNumberScheduled: 10, numberAvailable: 9}",
				"{desiredNumberScheduled: 12, currentNumberScheduled: 10, updatedNumberScheduled: 10, numberAvailable: 10}",
			},
			"{desiredNumberScheduled: 10, currentNumberScheduled: 10, updatedNumberScheduled: 9, numberAvailable: 10}",
		},
		"sidecarset": {
			"{metadata: {name: web-%[1]d, creationTimestamp: '2026-11-28T10:00:0%[1]dZ'}, revision: %[1]d, data: {spec: {%[2]s}}}",
			"%s, volumes: []",
			[]string{"{matchedPods: 10, updatedPods: 10, readyPods: 9, updatedReadyPods: 9}"},
			"{matchedPods: 10, updatedPods: 9, readyPods: 10, updatedReadyPods: 9}",
		},
	} {
		choose := func(status string) (*recordedRevision, error) {
			h := &workloadHistory{kind: kindOf(t, word)}
			for number := 1; number <= 2; number++ {
				h.all = append(h.all, recordedAs(t, word, fmt.Sprintf(of.revision, number, fmt.Sprintf(containers, number))))
			}
			h.object = withFields(t, word, "{spec: {"+fmt.Sprintf(of.spec, fmt.Sprintf(containers, 2))+"}, status: "+status+"}")
			return chooseAbort(h)
		}
		for _, status := range of.finished {
			r, err := choose(status)
			want := "there is nothing to abort: no pod of " + kindOf(t, word).Describe("web") + " has an older revision than its template; regatta rollout undo goes back to the revision before"
			if err == nil || err.Error() != want || exit.Code(err) != exit.Refused {
				t.Errorf("%s %s: %v, %v", word, status, r, err)
			}
		}
		if r, err := choose(of.unfinished); err != nil || r.number != 1 {
			t.Errorf("%s: %v, %v", word, r, err)
		}
	}
}

func TestRevisionsDifferInFieldsThatTheTypesLack(t *testing.T) {
	template := "{metadata: {creationTimestamp: null}, spec: {containers: [{name: main, image: 'web:1', resources: {limits: {cpu: 1000m}}%s}]}}"
	made := func(number int, field string) *recordedRevision {
		return recordedAs(t, "clone", fmt.Sprintf("{metadata: {name: web-%d}, revision: %d, data: {spec: {template: "+template+"}}}", number, number, field))
	}
	for _, tc := range []struct {
		name, first, second, live string
		present, before           string
		isInFirst, isInSecond     bool
	}{
		{"none has one", "", "", "", "2 (web-2)", "none", true, true},
		{"with one and without", "", ", future: 1", ", future: 1", "2 (web-2)", "1 (web-1)", false, true},
		{"without and with one", ", future: 1", "", "", "2 (web-2)", "1 (web-1)", false, true},
		{"other values", ", future: {a: [x, y]}", ", future: {a: [x, z]}", ", future: {a: [x, z]}", "2 (web-2)", "1 (web-1)", false, true},
		{"empty values", "", ", future: false", "", "1 (web-1)", "2 (web-2)", true, false},
		{"nulls are no values", "", ", future: null", ", future: null", "2 (web-2)", "none", true, true},
		{"another form of a value that the types have", ", future: 1", ", future: 1, env: []", ", future: 1, command: null", "2 (web-2)", "none", true, true},
		{"the revisions have none", "", "", ", future: 1", "2 (web-2)", "none", false, false},
		{"a difference that the types have too", ", future: 1", ", future: 1, tty: true", ", future: 1, tty: true", "2 (web-2)", "1 (web-1)", false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			kind, live := kindOf(t, "clone"), withFields(t, "clone", "{spec: {template: "+fmt.Sprintf(template, tc.live)+"}}")
			h := &workloadHistory{kind: kind, object: live, all: []*recordedRevision{made(1, tc.first), made(2, tc.second)}}
			want := fmt.Sprint(tc.present, tc.before, tc.isInFirst, tc.isInSecond)
			if got := fmt.Sprint(h.findPresent().String(), h.findBefore().String(), h.all[0].isIn(kind, live), h.all[1].isIn(kind, live)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
