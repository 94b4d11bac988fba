// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/namespaces"
)

// podsIn are pods that a SidecarSet has given its containers, each by its namespace and name.
func podsIn(t *testing.T, set *kruise.SidecarSet, names ...string) (out []client.Object) {
	t.Helper()
	for i, p := range webs(t, len(names), set) {
		namespace, name, _ := strings.Cut(names[i], "/")
		p.SetNamespace(namespace)
		p.SetName(name)
		out = append(out, p)
	}
	return out
}

func namespaceOf(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// updated are the pods whose container has an image, by their namespaces and names.
func (w *world) updated(image string) string {
	var out []string
	for _, p := range w.pods() {
		if c := containerOf(p, "shipper"); c != nil && c.Image == image {
			out = append(out, client.ObjectKeyFromObject(p).String())
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// why is what is told of a pod.
func (w *world) why(pod string) string {
	w.t.Helper()
	namespace, name, _ := strings.Cut(pod, "/")
	all := w.rounds.ExplainSidecars(namespace, name)
	if len(all) != 1 || all[0].Subject.Namespace != namespace || all[0].Subject.Name != name {
		w.t.Fatalf("of pod %s there is told %+v", pod, all)
	}
	return string(all[0].Verdict) + " " + all[0].Reason
}

const (
	bankHeld   = "Held Closed"
	podMoved   = "Moved Selected"
	podWaiting = "Waiting MaxUnavailableReached"
)

// Of pods of one name in two namespaces one may be held, go first, or be kept by its budget, and
// each is told what became of it.
func TestPodsOfOneNameAreToldApart(t *testing.T) {
	hold := func(fields, when string) string {
		return `package extend.rollout.x

hold contains {"reason": "Closed", "message": "The bank is closed.", ` + fields + `} if {
	` + when + `
}
`
	}
	const eachPod = "some pod in input.pods\n\t"
	for name, tc := range map[string]struct {
		rules       string
		unavailable int32
		spared      string
		moved       string
		shop, bank  string
	}{
		"both go":                    {unavailable: 2, moved: "bank/web-0 shop/web-0", shop: podMoved, bank: podMoved},
		"maxUnavailable counts both": {unavailable: 1, moved: "bank/web-0", shop: podWaiting, bank: podMoved},
		"one is held by a rule that looks at pods": {
			rules: hold(`"pod": pod.name, "namespace": pod.namespace`, eachPod+`pod.namespace == "bank"`), unavailable: 2,
			moved: "shop/web-0", shop: podMoved, bank: bankHeld,
		},
		"one is held by a rule that looks at the labels of namespaces": {
			rules: hold(`"pod": pod.name, "namespace": pod.namespace`, eachPod+`pod.namespaceLabels.tier == "gold"`), unavailable: 2,
			moved: "shop/web-0", shop: podMoved, bank: bankHeld,
		},
		"one is held by a rule that looks at the plan": {
			rules: hold(`"pod": "web-0", "namespace": "bank"`, "input.update > 0"), unavailable: 2, moved: "shop/web-0", shop: podMoved, bank: bankHeld,
		},
		"a namespace is held": {
			rules: hold(`"namespace": "bank"`, "input.update > 0"), unavailable: 2, moved: "shop/web-0", shop: podMoved, bank: bankHeld,
		},
		"one that is held uses up nothing": {
			rules: hold(`"pod": "web-0", "namespace": "bank"`, "input.workload"), unavailable: 1, moved: "shop/web-0", shop: podMoved, bank: bankHeld,
		},
		"a name without a namespace is that of both": {
			rules: hold(`"pod": "web-0"`, "input.workload"), unavailable: 2, shop: bankHeld, bank: bankHeld,
		},
		"a name with a namespace in one text is that of none, and holds all": {
			rules: hold(`"pod": pod.namespacedName`, eachPod+`pod.namespace == "bank"`), unavailable: 2, shop: "Held InvalidHold", bank: "Held InvalidHold",
		},
		"one is ranked first": {
			rules:       "package extend.rollout.x\n\nrank := {pod.namespacedName: place | some pod in input.pods; place := {\"shop\": -1, \"bank\": 1}[pod.namespace]}\n",
			unavailable: 1, moved: "shop/web-0", shop: podMoved, bank: podWaiting,
		},
		"a rank without a namespace is that of both": {
			rules: "package extend.rollout.x\n\nrank := {pod.name: -1 | some pod in input.pods}\n", unavailable: 1, moved: "bank/web-0", shop: podWaiting, bank: podMoved,
		},
		"an order of all candidates names one": {
			rules: "package override.rollout\n\nrows := {\"order\": [\"shop/web-0\"]}\n", unavailable: 2, moved: "shop/web-0", shop: podMoved, bank: "Held NotInOrder",
		},
		"an order of all candidates names both": {
			rules: "package override.rollout\n\nrows := {\"order\": [\"web-0\"]}\n", unavailable: 2, moved: "bank/web-0 shop/web-0", shop: podMoved, bank: podMoved,
		},
		"the budget of one keeps it": {unavailable: 2, spared: "shop/web-0", moved: "bank/web-0", shop: "Held BudgetExceeded", bank: podMoved},
	} {
		t.Run(name, func(t *testing.T) {
			set := logs(func(s *kruise.SidecarSet) {
				s.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(tc.unavailable))
			})
			w := newWorld(t, tc.rules, append(podsIn(t, set, "shop/web-0", "bank/web-0"), set, namespaceOf("bank", map[string]string{"tier": "gold"}))...)
			w.spared = tc.spared
			w.run()
			w.round("logs")
			w.edit("logs", image("logs:2"))
			w.round("logs")
			if got := w.updated("logs:2"); got != tc.moved {
				t.Fatalf("%q are updated, want %q", got, tc.moved)
			}
			if got := w.why("shop/web-0"); got != tc.shop {
				t.Errorf("the pod in shop is %s, want %s", got, tc.shop)
			}
			if got := w.why("bank/web-0"); got != tc.bank {
				t.Errorf("the pod in bank is %s, want %s", got, tc.bank)
			}
			if tc.moved == "bank/web-0 shop/web-0" || tc.moved == "" {
				return
			}
			workload, _ := w.rounds.ExplainWorkload(kruise.GroupVersion.WithKind("SidecarSet").GroupKind(), "", "logs")
			for _, why := range workload.Why {
				if pod := map[string]string{"shop/web-0": tc.shop, "bank/web-0": tc.bank}[why.Pod]; pod != string(why.Verdict)+" "+why.Reason {
					t.Errorf("pod %q stands for %s %s", why.Pod, why.Verdict, why.Reason)
				}
			}
			if len(workload.Why) != 2 {
				t.Errorf("the SidecarSet is told as %+v", workload.Why)
			}
		})
	}
}

// A label of a namespace is a fact of its pods: when it changes all SidecarSets are looked at.
func TestALabelOfANamespaceLetsItsPodsGo(t *testing.T) {
	const freeze = `package extend.rollout.x

hold contains {"reason": "Frozen", "message": "The namespace is frozen.", "pod": pod.name, "namespace": pod.namespace} if {
	some pod in input.pods
	pod.namespaceLabels.frozen == "true"
}
`
	set := logs(func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(2)) })
	bank := namespaceOf("bank", map[string]string{"frozen": "true"})
	w := newWorld(t, freeze, append(podsIn(t, set, "shop/web-0", "bank/web-0"), set, bank)...)
	w.run()
	w.round("logs")
	w.edit("logs", image("logs:2"))
	w.round("logs")
	if got := w.updated("logs:2"); got != "shop/web-0" {
		t.Fatalf("%q are updated", got)
	}
	related := w.kind.WorkloadType().Related[0]
	thawed := bank.DeepCopy()
	thawed.Labels = map[string]string{"frozen": "false"}
	if !related.Events.Update(event.UpdateEvent{ObjectOld: bank, ObjectNew: thawed}) || related.Events.Update(event.UpdateEvent{ObjectOld: bank, ObjectNew: bank}) ||
		related.Events.Create(event.CreateEvent{Object: bank}) {
		t.Error("not just other labels of a namespace are news")
	}
	if got, err := related.Workloads(t.Context(), bank); err != nil || !slices.Equal(got, []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "logs"}}}) {
		t.Errorf("they are news for %v: %v", got, err)
	}
	if err := w.api.Update(t.Context(), thawed); err != nil {
		t.Fatal(err)
	}
	w.round("logs")
	if got := w.updated("logs:2"); got != "bank/web-0 shop/web-0" {
		t.Errorf("%q are updated", got)
	}
}

// Where policies cannot be told of the labels of a namespace, a rule that looks at them could
// hold its pods, so these are held.
func TestPodsOfANamespaceThatPoliciesAreNotToldOfAreHeld(t *testing.T) {
	const looks = "package extend.rollout.x\n\nrank := {pod.namespacedName: 1 | some pod in input.pods; pod.namespaceLabels.tier == \"gold\"}\n"
	long := map[string]string{}
	for i := range namespaces.MaxLabelBytes / 50 {
		long[fmt.Sprintf("shop.example/%010d", i)] = strings.Repeat("x", 40)
	}
	for name, tc := range map[string]struct {
		rules string
		bank  client.Object
		want  string
	}{
		"it is not known":                       {looks, nil, "Held " + namespaces.UnknownReason},
		"its labels are too long":               {looks, namespaceOf("bank", long), "Held " + namespaces.TooLongReason},
		"it is known":                           {looks, namespaceOf("bank", nil), podMoved},
		"no rule of users could look at labels": {"", nil, podMoved},
	} {
		t.Run(name, func(t *testing.T) {
			set := logs(func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(2)) })
			objects := append(podsIn(t, set, "shop/web-0", "bank/web-0"), set)
			if tc.bank != nil {
				objects = append(objects, tc.bank)
			}
			w := newWorld(t, tc.rules, objects...)
			w.run()
			w.round("logs")
			w.edit("logs", image("logs:2"))
			w.round("logs")
			if got := w.why("shop/web-0"); got != podMoved {
				t.Errorf("the pod in shop is %s", got)
			}
			if got := w.why("bank/web-0"); got != tc.want {
				t.Errorf("the pod in bank is %s, want %s", got, tc.want)
			}
		})
	}
}
