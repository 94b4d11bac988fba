// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
)

// newNamespace is one with a service account, so that pods may be created.
func newNamespace(t *testing.T, api client.Client, name string) {
	t.Helper()
	create(t, api, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}})
}

// podOf is a pod that a workload of the group apps controls.
func podOf(namespace, name, kind, workload string) *corev1.Pod {
	p := pod(namespace, name, nil)
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: workload, UID: "u", Controller: ptr.To(true)}}
	return p
}

func spreadOf(namespace, workload string) *v1beta1.WorkloadSpread {
	w := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: workload}}
	w.Spec.TargetReference = v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: workload}
	w.Spec.Subsets = []v1beta1.WorkloadSpreadSubset{{Name: "a"}}
	return w
}

// Two replicas answer in turn, one of which sees objects half a second late, while the leader keeps the configuration narrow: each
// pod that is created as soon as the first or the second WorkloadSpread of a namespace is of a subset, and each that comes back as
// soon as the first PersistentPodState remembers it comes back to its node.
func TestNoPodComesBeforeTheFirstObjectOfItsNamespace(t *testing.T) {
	p := newPair(t)
	p.lead(t, p.replicas[1])
	const rounds = 3
	for i := range rounds {
		ns := fmt.Sprintf("ns-%d", i)
		newNamespace(t, p.api, ns)
		for _, workload := range []string{"first", "second"} {
			create(t, p.api, spreadOf(ns, workload))
			created := podOf(ns, workload+"-1", "ReplicaSet", workload)
			create(t, p.api, created)
			if created.Annotations[v1beta1.MatchedWorkloadSpreadKey] == "" {
				t.Errorf("the pod of the %s WorkloadSpread of %s is of no subset", workload, ns)
			}
		}
		remembered := fmt.Sprintf("sts-%d", i)
		newNamespace(t, p.api, remembered)
		state := &v1beta1.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: remembered, Name: "db"}}
		state.Spec.TargetReference = v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}
		state.Spec.RequiredPersistentTopology = &v1beta1.NodeTopologyTerm{Keys: []string{"host"}}
		create(t, p.api, state)
		state.Status.PodStates = map[string]v1beta1.PodState{"db-0": {NodeName: "n1", NodeTopologyLabels: map[string]string{"host": "n1"}}}
		if err := p.api.Status().Update(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		back := podOf(remembered, "db-0", "StatefulSet", "db")
		create(t, p.api, back)
		if back.Spec.NodeSelector["host"] != "n1" {
			t.Errorf("the pod of %s does not come back to its node", remembered)
		}
	}
	eventually(t, "the configuration is narrow again", func() bool {
		m, conditions := p.configuration(t)
		return m.Annotations[podscope.Annotation] == "" && strings.Contains(conditions, fmt.Sprintf("'ns-%d'", rounds-1)) && strings.Contains(conditions, fmt.Sprintf("'sts-%d'", rounds-1))
	})
	p.sentSince()
	create(t, p.api, podOf("plain", "web-1", "ReplicaSet", "web"))
	if p.sentSince() != 0 {
		t.Error("a pod of another namespace is sent")
	}
}

// An object that is made again under its name is another one.
func TestAClaimHasTheUIDOfItsObject(t *testing.T) {
	p := newPair(t)
	for range 2 {
		w := spreadOf("shop", "web")
		create(t, p.api, w)
		m, _ := p.configuration(t)
		claims, err := podscope.ReadClaims(m)
		if err != nil || len(claims) != 1 || claims[0].UID != w.UID {
			t.Errorf("got %+v, %v, want one of %s", claims, err, w.UID)
		}
		if err := p.api.Delete(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
}

// What pods cannot be sent for is refused, and what has nothing to do with the webhook of pods is not awaited.
func TestObjectsThatAreAwaited(t *testing.T) {
	p := newPair(t)
	before, _ := p.configuration(t)
	w := p.replicas[0].Writer
	for name, tc := range map[string]struct {
		object client.Object
		edit   func(*Config)
	}{
		"the namespace of the manager":      {object: spreadOf("kruise-system", "web")},
		"an object of another kind":         {object: pod("shop", "web", nil)},
		"a manager without the webhook":     {object: spreadOf("shop", "web"), edit: func(c *Config) { c.Pods = false }},
		"a manager without WorkloadSpreads": {object: spreadOf("shop", "web"), edit: func(c *Config) { c.Created = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			was := w.Config
			defer func() { w.Config = was }()
			if tc.edit != nil {
				tc.edit(&w.Config)
			}
			if err := w.AwaitObject(t.Context(), tc.object); err != nil {
				t.Fatal(err)
			}
			if after, _ := p.configuration(t); after.ResourceVersion != before.ResourceVersion {
				t.Error("the configuration was written")
			}
		})
	}
	for _, r := range p.replicas {
		r.Client = stuck{r.Client}
	}
	err := p.api.Create(t.Context(), spreadOf("shop", "web"))
	if err == nil || !strings.Contains(err.Error(), "having the API server send the pods of the namespace of WorkloadSpread web") {
		t.Errorf("got %v", err)
	}
}
