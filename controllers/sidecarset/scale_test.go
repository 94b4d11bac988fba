// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// asked are the SidecarSets that events ask to look at.
type asked struct {
	queue
	names []string
}

func (a *asked) Add(r reconcile.Request) { a.names = append(a.names, r.Name) }

// However many SidecarSets there are: a change of one looks at the pods that have its containers, and an event of a pod at the
// SidecarSets whose containers the pod has.
func TestAChangeOfOneSidecarSetLooksAtItsOwnPods(t *testing.T) {
	const sets, pods = 50, 4
	var objects []client.Object
	for i := range sets {
		set := logs(func(s *kruise.SidecarSet) {
			s.Name, s.UID = fmt.Sprint("logs-", i), types.UID(fmt.Sprint("logs-", i))
			s.Spec.Selector.MatchLabels = map[string]string{"app": fmt.Sprint("web-", i)}
		})
		objects = append(objects, set)
		for _, p := range webs(t, pods, set) {
			p.SetName(fmt.Sprint(set.Name, "-", p.GetName()))
			p.SetUID(types.UID(p.GetName()))
			p.GetLabels()["app"] = fmt.Sprint("web-", i)
			objects = append(objects, p)
		}
	}
	w := newWorld(t, "", objects...)
	w.run()
	w.edit("logs-7", image("logs:2"))
	clear(w.listed)
	if _, err := w.c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "logs-7"}}); err != nil {
		t.Fatal(err)
	}
	if got := w.listed["*v1.PodList"]; got != 2*pods { // those that have its containers, and those that may lack them
		t.Errorf("%d pods were looked at, want the %d of the SidecarSet, twice", got, pods)
	}
	if got := w.images("shipper"); got != fmt.Sprintf("logs:1×%d logs:2×1", sets*pods-1) {
		t.Errorf("the images are %s", got)
	}
	pod := &corev1.Pod{}
	if err := w.api.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "logs-9-web-0"}, pod); err != nil {
		t.Fatal(err)
	}
	clear(w.listed)
	q := &asked{}
	w.c.PodEvents().Create(t.Context(), event.CreateEvent{Object: pod}, q)
	if !slices.Equal(q.names, []string{"logs-9"}) || w.listed["*v1beta1.SidecarSetList"] != 1 {
		t.Errorf("the event of a pod asks to look at %v, and listed %v, want the one SidecarSet that may select it", q.names, w.listed)
	}
}
