// SPDX-License-Identifier: Apache-2.0

package predownload_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cloneset"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/predownload"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/policies"
)

// imageFirst is a CloneSet of five ready pods, each on a node of its own, beside the recipe
// that holds pods until their nodes have the image.
func imageFirst(t *testing.T) *world {
	t.Helper()
	w := begin(t, cloneset.New(cloneset.Gates{}, false), cloneSet(nil))
	files, err := fs.Sub(policies.Examples, "examples/image-on-node-first")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.FromFS("image-on-node-first", files)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.engine.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	for i, p := range w.pods() {
		p.Spec.NodeName = fmt.Sprint("n", i)
		if err := w.c.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
			{Type: kruise.InPlaceUpdateReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
		}
		if err := w.c.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if err := w.c.Create(t.Context(), &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: p.Spec.NodeName}}); err != nil {
			t.Fatal(err)
		}
	}
	w.showNodes()
	w.reconcile()
	return w
}

// showNodes shows the controller the nodes of the pods, as the watch of a manager does after its start.
func (w *world) showNodes() {
	for _, p := range w.pods() {
		w.r.NodeEvents().Create(w.Context(), event.CreateEvent{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.Spec.NodeName}}, IsInInitialList: true}, nil)
	}
}

func (w *world) pods() []*corev1.Pod {
	w.Helper()
	list := &corev1.PodList{}
	if err := w.c.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	out := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out
}

// updated are the nodes of pods that have the new image.
func (w *world) updated() (nodes []string) {
	w.Helper()
	for _, p := range w.pods() {
		if p.Spec.Containers[0].Image == "web:2" {
			nodes = append(nodes, p.Spec.NodeName)
		}
	}
	return nodes
}

// held is what the CloneSet says of pods that policies hold.
func (w *world) held() string {
	w.Helper()
	set := &kruise.CloneSet{}
	if err := w.c.Get(w.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, set); err != nil {
		w.Fatal(err)
	}
	for _, c := range set.Status.Conditions {
		if c.Type == "UpdateHeld" && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// has sets the phase of the new image on a node.
func (w *world) has(name string, phase kruise.ImagePullPhase) {
	w.Helper()
	node := &kruise.NodeImage{}
	if err := w.c.Get(w.Context(), client.ObjectKey{Name: name}, node); err != nil {
		w.Fatal(err)
	}
	node.Spec.Images = map[string]kruise.ImageSpec{"web": {Tags: []kruise.ImageTagSpec{{Tag: "2", Version: 1}}}}
	node.Status.ImageStatuses = map[string]kruise.ImageStatus{"web": {Tags: []kruise.ImageTagStatus{{Tag: "2", Version: 1, Phase: phase}}}}
	if err := w.c.Update(w.Context(), node); err != nil {
		w.Fatal(err)
	}
}

func TestAPodWaitsUntilItsNodeHasTheImage(t *testing.T) {
	w := imageFirst(t)
	w.update(newImage)
	for _, phase := range []kruise.ImagePullPhase{"", kruise.ImagePhaseWaiting, kruise.ImagePhasePulling, kruise.ImagePhaseFailed} {
		if phase != "" {
			w.has("n2", phase)
			w.reconcile()
		}
		if got, held := w.updated(), w.held(); len(got) > 0 || !strings.Contains(held, "image web:2") {
			t.Fatalf("in phase %q pods on %v are updated, and the condition says %q", phase, got, held)
		}
	}
	w.has("n2", kruise.ImagePhaseSucceeded)
	w.reconcile()
	if got := w.updated(); !slices.Equal(got, []string{"n2"}) {
		t.Errorf("pods on %v are updated", got)
	}
}

func TestARestartedManagerHoldsWhatItHeld(t *testing.T) {
	w := imageFirst(t)
	w.update(newImage)
	kind := cloneset.New(cloneset.Gates{}, false)
	w.r = rollout.New(kind, reconcile.Deps{Client: w.c, Live: w.c, Events: w.events, Engine: w.engine}, rollout.WithAhead(predownload.NewAheadFunc(kind)))
	w.showNodes()
	w.reconcile()
	if got, held := w.updated(), w.held(); len(got) > 0 || held == "" {
		t.Errorf("pods on %v are updated, and the condition says %q", got, held)
	}
}

func TestPodsWaitForAJobThatCannotBeCreated(t *testing.T) {
	w := imageFirst(t)
	w.refuse = errors.New("the webhook is away")
	w.update(newImage)
	if got, held := w.updated(), w.held(); len(got) > 0 || held == "" {
		t.Errorf("pods on %v are updated, and the condition says %q", got, held)
	}
}

func TestNoPodWaitsWhereNothingIsPulled(t *testing.T) {
	for name, gone := range map[string]func(*world) client.Object{
		"the job is deleted": func(w *world) client.Object { return w.jobs()["main"] },
		"the node of a pod has no NodeImage": func(*world) client.Object {
			return &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n3"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := imageFirst(t)
			w.update(newImage)
			w.reconcile()
			if got := w.updated(); len(got) > 0 {
				t.Fatalf("pods on %v are updated", got)
			}
			if err := w.c.Delete(t.Context(), gone(w)); err != nil {
				t.Fatal(err)
			}
			w.reconcile()
			if got := w.updated(); len(got) != 1 {
				t.Errorf("pods on %v are updated", got)
			}
		})
	}
}
