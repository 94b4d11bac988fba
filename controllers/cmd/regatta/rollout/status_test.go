// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/test/terminal"
)

// withFields is an object of samples of generation 2 with a spec and a status merged into it.
func withFields(t *testing.T, word, fields string) *unstructured.Unstructured {
	t.Helper()
	object := terminal.ParseObject(t, samples[word])
	object.SetGeneration(2)
	more := terminal.ParseObject(t, "{apiVersion: v1, kind: X, "+strings.TrimPrefix(fields, "{")).Object
	for _, section := range []string{"spec", "status"} {
		of, _, err := unstructured.NestedMap(more, section)
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range of {
			if err := unstructured.SetNestedField(object.Object, value, section, key); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, ok, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "observedGeneration"); !ok {
		_ = unstructured.SetNestedField(object.Object, int64(2), "status", "observedGeneration")
	}
	return object
}

func TestTheStateOfEachKind(t *testing.T) {
	held := `conditions: [{type: UpdateHeld, status: "True", reason: X, message: "It\n waits."}, {type: Other, status: "True"}]`
	for _, tc := range []struct{ name, word, fields, complete, progress, endless, deadline string }{
		{"a CloneSet in the middle", "clone", `{status: {replicas: 10, availableReplicas: 8, updatedReplicas: 4, updatedAvailableReplicas: 2, expectedUpdatedReplicas: 10, ` + held + `}}`, "", "4 of 10 pods are updated, 2 of them available; held: It waits.", "", ""},
		{"a CloneSet whose controller is late", "clone", `{status: {observedGeneration: 1, replicas: 10, availableReplicas: 10, updatedReplicas: 10, updatedAvailableReplicas: 10, expectedUpdatedReplicas: 10}}`, "", "the controller has not seen the change yet", "", ""},
		{"a CloneSet that is paused", "clone", `{spec: {updateStrategy: {rollingUpdate: {paused: true}}}, status: {replicas: 12, availableReplicas: 8, updatedReplicas: 4, updatedAvailableReplicas: 2, expectedUpdatedReplicas: 10}}`, "", "4 of 10 pods are updated, 2 of them available; there are 12 pods, and 10 are wanted; paused; regatta rollout resume clone/web lets it go on", "", ""},
		{"a CloneSet that has reached its partition", "clone", `{spec: {updateStrategy: {rollingUpdate: {partition: 8}}}, status: {replicas: 10, availableReplicas: 10, updatedReplicas: 2, updatedAvailableReplicas: 2, expectedUpdatedReplicas: 2}}`, "2 of 10 pods are updated and available; the partition lets 8 pods keep their revision", "2 of 2 pods are updated, 2 of them available", "", ""},
		{"a CloneSet that goes back behind a partition", "clone", `{status: {replicas: 10, availableReplicas: 9, updatedReplicas: 8, updatedAvailableReplicas: 8, expectedUpdatedReplicas: 9}}`, "", "8 of 9 pods are updated, 8 of them available", "", ""},
		{"a CloneSet with more pods of the revision than the partition lets have it", "clone", `{status: {replicas: 10, availableReplicas: 10, updatedReplicas: 8, updatedAvailableReplicas: 8, expectedUpdatedReplicas: 2}}`, "8 of 10 pods are updated and available; the partition lets 8 pods keep their revision", "2 of 2 pods are updated, 2 of them available", "", ""},
		{"a CloneSet after its deadline", "clone", `{status: {replicas: 10, expectedUpdatedReplicas: 10, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: too late}]}}`, "", "0 of 10 pods are updated, 0 of them available", "", "too late"},
		{"a CloneSet that clients update", "clone", `{spec: {updateStrategy: {type: OnDelete}}, status: {replicas: 10}}`, "", "0 of 0 pods are updated, 0 of them available", "spec.updateStrategy.type is OnDelete: a pod is updated when a client deletes it", ""},
		{"a StatefulSet above its partition", "asts", `{spec: {updateStrategy: {rollingUpdate: {partition: 7}}}, status: {replicas: 10, availableReplicas: 10, updatedReplicas: 3, updatedAvailableReplicas: 3}}`, "3 of 10 pods are updated and available; the partition lets 7 pods keep their revision", "3 of 3 pods are updated, 3 of them available", "", ""},
		{"a DaemonSet that selects nodes", "ads", `{spec: {updateStrategy: {rollingUpdate: {selector: {matchLabels: {a: b}}}}}, status: {desiredNumberScheduled: 5, currentNumberScheduled: 5, numberAvailable: 5, updatedNumberScheduled: 2}}`, "", "2 of 5 pods are updated, 2 of them available", "spec.updateStrategy.rollingUpdate.selector limits the update to some pods, and the status does not count these", ""},
		{"a DaemonSet that selects all nodes", "ads", `{spec: {updateStrategy: {rollingUpdate: {selector: {matchLabels: {a: b}}}}}, status: {desiredNumberScheduled: 5, currentNumberScheduled: 5, numberAvailable: 5, updatedNumberScheduled: 5}}`, "5 of 5 pods are updated and available", "5 of 5 pods are updated, 5 of them available", "", ""},
		{"a SidecarSet in the middle", "sidecarset", `{spec: {updateStrategy: {paused: true}}, status: {matchedPods: 5, updatedPods: 2, readyPods: 5, updatedReadyPods: 1, ` + held + `}}`, "", "2 of 5 pods are updated, 1 of them available; paused; regatta rollout resume sidecarset/web lets it go on; held: It waits.", "", ""},
		{"a SidecarSet that has reached its partition", "sidecarset", `{spec: {updateStrategy: {partition: 50%}}, status: {matchedPods: 5, updatedPods: 2, readyPods: 4, updatedReadyPods: 2}}`, "2 of 5 pods are updated and available; the partition lets 3 pods keep their revision", "2 of 2 pods are updated, 2 of them available", "", ""},
		{"a SidecarSet with a partition that cannot be read", "sidecarset", `{spec: {updateStrategy: {partition: half}}, status: {matchedPods: 5}}`, "0 of 5 pods are updated and available; the partition lets 5 pods keep their revision", "0 of 0 pods are updated, 0 of them available", "", ""},
		{"a SidecarSet that updates no pods", "sidecarset", `{spec: {updateStrategy: {type: NotUpdate}}, status: {matchedPods: 5}}`, "", "0 of 5 pods are updated, 0 of them available", "spec.updateStrategy.type is NotUpdate: running pods keep the containers that they have", ""},
		{"a SidecarSet that selects pods", "sidecarset", `{spec: {updateStrategy: {selector: {matchLabels: {a: b}}}}, status: {matchedPods: 5}}`, "", "0 of 5 pods are updated, 0 of them available", "spec.updateStrategy.selector limits the update to some pods, and the status does not count these", ""},
		{"a SidecarSet that selects pods, whose controller is late", "sidecarset", `{spec: {updateStrategy: {selector: {matchLabels: {a: b}}}}, status: {observedGeneration: 1, matchedPods: 5}}`, "", "the controller has not seen the change yet", "", ""},
		{"a SidecarSet without pods", "sidecarset", `{status: {matchedPods: 0}}`, "0 of 0 pods are updated and available", "0 of 0 pods are updated, 0 of them available", "", ""},
		{"a UnitedDeployment in the middle", "ud", `{status: {replicas: 9, readyReplicas: 8, updatedReplicas: 4, updatedReadyReplicas: 3, subsetStatuses: [{name: a, replicas: 9, partition: 9}], conditions: [{type: Placing, status: "False", message: no room}]}}`, "", "4 of 10 pods are updated, 3 of them available; there are 9 pods, and 10 are wanted; Placing: no room", "", ""},
		{"a UnitedDeployment that has reached its partitions", "ud", `{spec: {updateStrategy: {manualUpdate: {partitions: {a: 4, b: 99, gone: 5}}}}, status: {replicas: 10, readyReplicas: 10, updatedReplicas: 3, updatedReadyReplicas: 3, subsetStatuses: [{name: a, replicas: 7}, {name: b, replicas: 3}]}}`, "3 of 10 pods are updated and available; the partition lets 7 pods keep their revision", "3 of 3 pods are updated, 3 of them available", "", ""},
		{"a UnitedDeployment whose subsets have the numbers", "ud", `{spec: {replicas: null, topology: {subsets: [{name: a, replicas: 2}, {name: b, replicas: 0}]}}, status: {replicas: 2, readyReplicas: 2, updatedReplicas: 2, updatedReadyReplicas: 2}}`, "2 of 2 pods are updated and available", "2 of 2 pods are updated, 2 of them available", "", ""},
		{"a UnitedDeployment with a subset without a number", "ud", `{spec: {replicas: null, topology: {subsets: [{name: a, replicas: 2}, {name: b}]}}, status: {replicas: 1, readyReplicas: 1, updatedReplicas: 1, updatedReadyReplicas: 1}}`, "1 of 1 pods are updated and available", "1 of 1 pods are updated, 1 of them available", "", ""},
		{"a UnitedDeployment whose pods clients update", "ud", `{spec: {template: {statefulSetTemplate: {spec: {updateStrategy: {type: OnDelete}, template: {spec: {containers: []}}}}}}, status: {replicas: 10}}`, "", "0 of 10 pods are updated, 0 of them available", "spec.template.statefulSetTemplate.spec.updateStrategy.type is OnDelete: a pod is updated when a client deletes it", ""},
		{"a Deployment in the middle", "deployment", `{status: {replicas: 12, availableReplicas: 10, updatedReplicas: 4, conditions: [{type: ReplicaFailure, status: "True", message: quota}]}}`, "", "4 of 10 pods are updated, 2 of them available; there are 12 pods, and 10 are wanted; ReplicaFailure: quota", "", ""},
		{"a Deployment that is complete", "deployment", `{status: {replicas: 10, availableReplicas: 10, updatedReplicas: 10}}`, "10 of 10 pods are updated and available", "10 of 10 pods are updated, 10 of them available", "", ""},
		{"a Deployment after its deadline", "deployment", `{status: {replicas: 10, availableReplicas: 9, updatedReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: too late}]}}`, "", "1 of 10 pods are updated, 0 of them available", "", "too late"},
		{"a native StatefulSet above its partition", "statefulset", `{spec: {ordinals: {start: 5}, updateStrategy: {rollingUpdate: {partition: 12}}}, status: {replicas: 10, availableReplicas: 10, updatedReplicas: 3}}`, "3 of 10 pods are updated and available; the partition lets 7 pods keep their revision", "3 of 3 pods are updated, 3 of them available", "", ""},
		{"a native StatefulSet without a pod", "statefulset", `{status: {replicas: 9, availableReplicas: 9, updatedReplicas: 9}}`, "", "9 of 10 pods are updated, 8 of them available; there are 9 pods, and 10 are wanted", "", ""},
		{"a native StatefulSet that clients update", "statefulset", `{spec: {updateStrategy: {type: OnDelete}}, status: {replicas: 10}}`, "", "0 of 10 pods are updated, 0 of them available", "spec.updateStrategy.type is OnDelete: a pod is updated when a client deletes it", ""},
		{"a native DaemonSet in the middle", "daemonset", `{status: {desiredNumberScheduled: 5, currentNumberScheduled: 5, numberAvailable: 4, updatedNumberScheduled: 3}}`, "", "3 of 5 pods are updated, 2 of them available", "", ""},
		{"a native DaemonSet that is complete", "daemonset", `{status: {desiredNumberScheduled: 5, currentNumberScheduled: 5, numberAvailable: 5, updatedNumberScheduled: 5}}`, "5 of 5 pods are updated and available", "5 of 5 pods are updated, 5 of them available", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := ReadState(kindOf(t, tc.word), withFields(t, tc.word, tc.fields))
			if err != nil {
				t.Fatal(err)
			}
			complete := ""
			if s.Endless == "" && s.IsComplete() {
				complete = s.CompletionText()
			}
			if diff := cmp.Diff([]string{tc.complete, tc.progress, tc.endless, tc.deadline}, []string{complete, s.describeProgress(), s.Endless, s.Deadline}); diff != "" {
				t.Errorf("complete, progress, endless, deadline (-want +got)\n%s", diff)
			}
		})
	}
}

// The kinds of Kubernetes are complete when kubectl says so and they have as many pods as they should. A partition
// that lets no pod be updated is complete here whether the pods are ready or not.
func TestTheKindsOfKubernetesAreCompleteAsForKubectl(t *testing.T) {
	type counts struct{ wanted, pods, updated, available, partition int64 }
	var all []counts
	for wanted := range int64(4) {
		for pods := range int64(5) {
			for updated := range pods + 1 {
				for available := range pods + 1 {
					for partition := range int64(4) {
						all = append(all, counts{wanted, pods, updated, available, partition})
					}
				}
			}
		}
	}
	for word, status := range map[string]func(counts) map[string]any{
		"deployment": func(c counts) map[string]any {
			return map[string]any{"replicas": c.pods, "updatedReplicas": c.updated, "availableReplicas": c.available}
		},
		"statefulset": func(c counts) map[string]any {
			return map[string]any{"replicas": c.pods, "updatedReplicas": c.updated, "availableReplicas": c.available, "readyReplicas": c.available}
		},
		"daemonset": func(c counts) map[string]any {
			return map[string]any{"desiredNumberScheduled": c.wanted, "currentNumberScheduled": c.pods, "updatedNumberScheduled": c.updated, "numberAvailable": c.available}
		},
	} {
		kind := kindOf(t, word)
		viewer, err := polymorphichelpers.StatusViewerFor(kind.GroupKind())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if word == "statefulset" && c.partition >= c.wanted || word != "statefulset" && c.partition > 0 {
				continue
			}
			object := terminal.ParseObject(t, samples[word])
			object.Object["status"] = status(c)
			_ = unstructured.SetNestedField(object.Object, int64(1), "status", "observedGeneration")
			_ = unstructured.SetNestedField(object.Object, "RollingUpdate", "spec", "updateStrategy", "type")
			if word != "daemonset" {
				_ = unstructured.SetNestedField(object.Object, c.wanted, "spec", "replicas")
			}
			if word == "statefulset" {
				_ = unstructured.SetNestedField(object.Object, c.partition, "spec", "updateStrategy", "rollingUpdate", "partition")
			}
			s, err := ReadState(kind, object)
			if err != nil {
				t.Fatal(err)
			}
			text, complete, err := viewer.Status(object, 0)
			if err != nil || s.IsComplete() != (complete && c.pods == c.wanted) {
				t.Errorf("%s %+v: %v, and kubectl says %v, %v: %s", word, c, s.describeProgress(), complete, err, text)
			}
		}
	}
}

func TestStatusFollowsTheRollout(t *testing.T) {
	s := newShop(t)
	s.CreateObjects(t, samples["clone"])
	of := func(updated, done int) string {
		return fmt.Sprintf("{replicas: 10, readyReplicas: 10, availableReplicas: 10, updatedReplicas: %d, updatedReadyReplicas: 0, updatedAvailableReplicas: %d, expectedUpdatedReplicas: 10}", updated, done)
	}
	// during makes changes one by one, as soon as the command watches. It returns a function that waits for the last one.
	during := func(t *testing.T, changes ...func()) (wait func()) {
		t.Helper()
		var watched atomic.Bool
		done := make(chan struct{})
		s.BeforeRequests(t, func(r *http.Request) {
			if r.URL.Query().Get("watch") == "true" && watched.CompareAndSwap(false, true) {
				go func() {
					defer close(done)
					for _, change := range changes {
						time.Sleep(50 * time.Millisecond)
						change()
					}
				}()
			}
		})
		return func() { <-done }
	}
	set := func(updated, done int) func() { return func() { s.setStatus(t, samples["clone"], of(updated, done)) } }
	lines := func(text ...string) string {
		return "cloneset.apps.kruise.io/web" + strings.Join(text, "\ncloneset.apps.kruise.io/web") + "\n"
	}
	t.Run("until it is complete", func(t *testing.T) {
		wait := during(t, set(4, 2), set(4, 2), set(10, 9), set(10, 10))
		s.wants(t, "status clone/web", 0, lines(": the controller has not seen the change yet", ": 4 of 10 pods are updated, 2 of them available",
			": 10 of 10 pods are updated, 9 of them available", " is rolled out: 10 of 10 pods are updated and available"), "")
		wait()
	})
	t.Run("a complete one at once", func(t *testing.T) {
		s.wants(t, "status clone web --timeout 1ns", 0, lines(" is rolled out: 10 of 10 pods are updated and available"), "")
	})
	t.Run("once", func(t *testing.T) {
		set(4, 2)()
		s.wants(t, "status clone/web --watch=false", 0, lines(": 4 of 10 pods are updated, 2 of them available"), "")
	})
	t.Run("until the timeout", func(t *testing.T) {
		s.wants(t, "status clone/web --timeout 300ms", 1, lines(": 4 of 10 pods are updated, 2 of them available"),
			"the rollout of CloneSet web was not complete after 300ms: 4 of 10 pods are updated, 2 of them available")
	})
	t.Run("until its deadline", func(t *testing.T) {
		wait := during(t, func() {
			s.setStatus(t, samples["clone"], strings.TrimSuffix(of(4, 2), "}")+`, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: it is late}]}`)
		})
		s.wants(t, "status clone/web", 1, lines(": 4 of 10 pods are updated, 2 of them available"), "CloneSet web: it is late (4 of 10 pods are updated, 2 of them available)")
		wait()
		s.wants(t, "status clone/web --watch=false", 1, "", "CloneSet web: it is late (4 of 10 pods are updated, 2 of them available)")
	})
	t.Run("of a revision", func(t *testing.T) {
		first := s.record(t, "clone")
		set(4, 2)()
		s.wants(t, "status clone/web --revision 2", 1, "", "CloneSet web is to have revision 2, and its newest one is 1 ("+first+")")
		wait := during(t, set(10, 10))
		s.wants(t, "status clone/web --revision 1", 0, lines(": 4 of 10 pods are updated, 2 of them available", " is rolled out: 10 of 10 pods are updated and available"), "")
		wait()
		set(4, 2)()
		wait = during(t, func() { s.setImage(t, "clone", "web:2"); s.record(t, "clone"); set(4, 2)() })
		if got := s.typed(t, "status clone/web --revision 1"); got.Code != 1 || !strings.HasPrefix(got.Err, "CloneSet web is to have revision 1, and its newest one is 2 (web-") {
			t.Errorf("%+v", got)
		}
		wait()
	})
	t.Run("until it is deleted", func(t *testing.T) {
		wait := during(t, func() { _ = s.Delete(context.Background(), terminal.ParseObject(t, samples["clone"])) })
		s.wants(t, "status clone/web", 1, lines(": 4 of 10 pods are updated, 2 of them available"), "CloneSet web was deleted")
		wait()
		s.wants(t, "status clone/web", 3, "", "there is no CloneSet web in namespace default")
	})
	t.Run("OnDelete", func(t *testing.T) {
		s.CreateObjects(t, samples["daemonset"])
		s.change(t, samples["daemonset"], "spec: {updateStrategy: {type: OnDelete, rollingUpdate: null}}")
		want := "the rollout of DaemonSet of Kubernetes web cannot be waited for: spec.updateStrategy.type is OnDelete: a pod is updated when a client deletes it (the controller has not seen the change yet)"
		s.wants(t, "status ds/web", 1, "", want)
		s.wants(t, "status ds/web --watch=false", 1, "", want)
	})
	for words, code := range map[string]int{"status clone/a clone/b": 2, "status clone": 2, "status bcj/a": 2, "status clone/a --timeout -1s": 2, "status clone/a --revision -1": 2} {
		if got := s.typed(t, words); got.Code != code || got.Out != "" {
			t.Errorf("%s: %+v", words, got)
		}
	}
}

// fakeSets has the CloneSet web in a client whose watches a test makes.
func fakeSets(t *testing.T, watches func() (watch.Interface, error)) (*dynamicfake.FakeDynamicClient, follower, *unstructured.Unstructured) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := kruise.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := dynamicfake.NewSimpleDynamicClient(scheme, webSet(4, 2, nil))
	objects.PrependWatchReactor("clonesets", func(clienttesting.Action) (bool, watch.Interface, error) {
		w, err := watches()
		return true, w, err
	})
	sets := objects.Resource(kruise.GroupVersion.WithResource("clonesets")).Namespace("shop")
	live, err := sets.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return objects, follower{client: sets, every: time.Millisecond, patience: 20 * time.Millisecond}, live
}

func TestAnObjectIsReadAgainWhenAWatchEnds(t *testing.T) {
	closed := func() (watch.Interface, error) {
		w := watch.NewFake()
		w.Stop()
		return w, nil
	}
	expired := func() (watch.Interface, error) {
		w := watch.NewFakeWithChanSize(1, false)
		w.Error(&metav1.Status{Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
		return w, nil
	}
	for name, watches := range map[string]func() (watch.Interface, error){
		"it is closed": closed, "its version has expired": expired,
		"it is forbidden": func() (watch.Interface, error) {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "clonesets"}, "web", errors.New("jane may not"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, f, live := fakeSets(t, watches)
			looks := 0
			f.look = func(*unstructured.Unstructured) (bool, error) { looks++; return looks == 3, nil }
			if err := f.followObject(t.Context(), live); err != nil || looks != 3 {
				t.Errorf("%d looks: %v", looks, err)
			}
		})
	}
	t.Run("but not at a bookmark", func(t *testing.T) {
		_, f, live := fakeSets(t, func() (watch.Interface, error) {
			w := watch.NewFakeWithChanSize(2, false)
			bookmark := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet"}}
			bookmark.SetResourceVersion("7")
			w.Action(watch.Bookmark, bookmark)
			changed := &unstructured.Unstructured{Object: map[string]any{}}
			changed.SetUID("u")
			w.Modify(changed)
			return w, nil
		})
		looks := 0
		f.look = func(*unstructured.Unstructured) (bool, error) { looks++; return looks == 2, nil }
		if err := f.followObject(t.Context(), live); err != nil || looks != 2 {
			t.Errorf("%d looks: %v", looks, err)
		}
	})
	t.Run("the object is gone by then", func(t *testing.T) {
		objects, f, live := fakeSets(t, closed)
		f.look = func(*unstructured.Unstructured) (bool, error) {
			return false, client.IgnoreNotFound(objects.Tracker().Delete(kruise.GroupVersion.WithResource("clonesets"), "shop", "web"))
		}
		if err := f.followObject(t.Context(), live); !errors.Is(err, errDeleted) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("another object has the name by then", func(t *testing.T) {
		_, f, live := fakeSets(t, closed)
		live.SetUID("other")
		f.look = func(*unstructured.Unstructured) (bool, error) { return false, nil }
		if err := f.followObject(t.Context(), live); !errors.Is(err, errDeleted) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the API server is away for a moment, and then for good", func(t *testing.T) {
		objects, f, live := fakeSets(t, closed)
		gets := 0
		objects.PrependReactor("get", "clonesets", func(clienttesting.Action) (bool, runtime.Object, error) {
			gets++
			return gets != 3, nil, errors.New("connection refused")
		})
		looks := 0
		f.look = func(*unstructured.Unstructured) (bool, error) { looks++; return false, nil }
		if err := f.followObject(t.Context(), live); err == nil || err.Error() != "reading CloneSet web: connection refused" || looks != 2 {
			t.Errorf("%d looks: %v", looks, err)
		}
	})
	t.Run("the user interrupts", func(t *testing.T) {
		_, f, live := fakeSets(t, func() (watch.Interface, error) { return watch.NewFake(), nil })
		ctx, cancel := context.WithCancel(t.Context())
		f.look = func(*unstructured.Unstructured) (bool, error) { cancel(); return false, nil }
		if err := f.followObject(ctx, live); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// Nothing in an object may cause a panic.
func TestObjectsOfAnyShape(t *testing.T) {
	values := []any{nil, "x", int64(-1), 1.5, true, []any{}, []any{nil, "x", map[string]any{}}, map[string]any{"x": nil}, "99999999999%", "-5%"}
	for _, word := range words() {
		kind := kindOf(t, word)
		whole := withFields(t, word, `{spec: {updateStrategy: {type: RollingUpdate, partition: 1, paused: false, selector: {}, manualUpdate: {partitions: {a: 1}}, rollingUpdate: {partition: 1, paused: false, podUpdatePolicy: ReCreate, selector: {}}}}, status: {replicas: 3, updatedReplicas: 1, currentRevision: web-1, updateRevision: web-2, conditions: [{type: UpdateHeld, status: "True", message: m}], subsetStatuses: [{name: a, replicas: 1}], desiredNumberScheduled: 4, matchedPods: 4}}`)
		if word == "sidecarset" {
			unstructured.RemoveNestedField(whole.Object, "spec", "updateStrategy", "rollingUpdate")
		}
		var paths [][]string
		var collect func(at []string, value any)
		collect = func(at []string, value any) {
			if len(at) > 0 && at[0] != "apiVersion" && at[0] != "kind" {
				paths = append(paths, at)
			}
			if fields, ok := value.(map[string]any); ok {
				for key, field := range fields {
					collect(append(append([]string{}, at...), key), field)
				}
			}
		}
		collect(nil, whole.Object)
		for _, path := range paths {
			for _, value := range values {
				damaged := whole.DeepCopy()
				if err := unstructured.SetNestedField(damaged.Object, value, path...); err != nil {
					t.Fatal(err)
				}
				object := &edit.Object{Kind: kind, Live: damaged}
				if s, err := ReadState(kind, damaged); err == nil {
					_, _ = s.describeProgress(), s.CompletionText()
				}
				_ = whyPodsStay(object, damaged)
				_ = refuseRestart(object)
				_, _ = revisionSelector(kind, damaged)
				_ = setAnnotation(damaged, append(templatePath(word), "metadata", "annotations"), "a", "b")
				_, _ = findLastWriter(damaged, []recordedField{{path: edit.Path{"spec", "template"}}})
				revision := &unstructured.Unstructured{Object: map[string]any{
					"metadata": damaged.Object["metadata"], "spec": damaged.Object["spec"], "revision": value,
					"data": map[string]any{"spec": damaged.Object["spec"]},
				}}
				owner := whole.DeepCopy()
				if r := newRevision(kind, owner, revision); r != nil {
					h := &workloadHistory{kind: kind, object: damaged, all: []*recordedRevision{r}}
					_, _ = h.findPresent(), h.findBefore()
					_ = h.describeTable(time.Now())
					_, _ = chooseAbort(h)
					_ = r.setFields(kind, owner)
					_ = whyClaimsStay(r, damaged)
				}
			}
		}
	}
}

func TestARevisionOfAThousandContainers(t *testing.T) {
	var containers []any
	for i := range 1000 {
		containers = append(containers, map[string]any{"name": fmt.Sprint("c", i), "image": "web:1"})
	}
	object := withFields(t, "clone", `{status: {}}`)
	object.SetUID("u")
	if err := unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	revision := &unstructured.Unstructured{Object: map[string]any{"revision": int64(1), "data": map[string]any{"spec": object.DeepCopy().Object["spec"]}}}
	revision.SetOwnerReferences([]metav1.OwnerReference{{UID: "u"}})
	r := newRevision(kindOf(t, "clone"), object, revision)
	if r == nil || r.damage != nil || !r.isIn(kindOf(t, "clone"), object) {
		t.Errorf("it is %+v", r)
	}
	var all []*recordedRevision
	for i := range 30 {
		all = append(all, &recordedRevision{number: int64(i), name: "web"})
	}
	if text := joinRevisions(all); !strings.HasPrefix(text, "29 (web), 28 (web)") || !strings.HasSuffix(text, "10 (web), and 10 more") {
		t.Errorf("it is %s", text)
	}
}

func TestAWordThatNamesNoSubcommandIsRefused(t *testing.T) {
	for words, want := range map[string]string{
		"undoo": `unknown command "undoo" for "rollout"; did you mean undo?`, "zzz": `unknown command "zzz" for "rollout"; rollout --help lists them`, "": "",
	} {
		cmd := exit.WithExitCodes(NewCommand(nil))
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs(strings.Fields(words))
		err := cmd.ExecuteContext(t.Context())
		if want == "" {
			if err != nil || !strings.Contains(out.String(), "Usage:\n  rollout\n  rollout [command]\n") {
				t.Errorf("%v\n%s", err, out.String())
			}
			continue
		}
		if err == nil || err.Error() != want || exit.Code(err) != exit.Usage || out.Len() > 0 {
			t.Errorf("%s: %v\n%s", words, err, out.String())
		}
	}
}

func TestCompletion(t *testing.T) {
	s := newShop(t)
	s.CreateObjects(t, samples["clone"], samples["sidecarset"], strings.Replace(samples["clone"], "name: web}", "name: api}", 1))
	for words, want := range map[string]string{
		"status cl":               "clone/\tCloneSet\n:6\n",
		"status sidecarset/":      "sidecarset/web\n:4\n",
		"status clone/":           "clone/api\nclone/web\n:4\n",
		"pause cloneset/w":        "cloneset/web\n:4\n",
		"pause clone/web clone/a": "clone/api\n:4\n",
		"pause clone a":           "api\n:4\n",
		"pause clone web a":       "api\n:4\n",
		"status clone web a":      ":4\n",
		"status clone/web clone/": ":4\n",
		"status clone -n other x": ":4\n",
		"status none/":            ":4\n",
		"pause ":                  "clone/\tCloneSet\nasts/\tAdvanced StatefulSet\nads/\tAdvanced DaemonSet\nsidecarset/\tSidecarSet\nbcj/\tBroadcastJob\nacj/\tAdvancedCronJob\ndeployment/\tDeployment of Kubernetes\n:6\n",
		"watch -n def":            "default\n:4\n",
	} {
		t.Run(words, func(t *testing.T) {
			if got := completeWords(t, words); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
