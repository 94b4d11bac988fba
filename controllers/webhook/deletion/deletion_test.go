package deletion

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestRefuse(t *testing.T) {
	const key = "policy.kruise.io/delete-protection"
	for _, tc := range []struct {
		name     string
		label    string
		replicas *int32
		deleting bool
		want     string
	}{
		{name: "an object without the label goes", replicas: ptr.To[int32](3)},
		{name: "one that is always protected stays", label: "Always", replicas: ptr.To[int32](0), want: "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Always"},
		{name: "one whose pods would go too stays", label: "Cascading", replicas: ptr.To[int32](3), want: "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and replicas 3>0"},
		{name: "one without pods goes", label: "Cascading", replicas: ptr.To[int32](0)},
		{name: "one that says nothing of pods goes", label: "Cascading"},
		{name: "another value protects nothing", label: "always", replicas: ptr.To[int32](3)},
		{name: "one that is already going is protected no longer", label: "Always", deleting: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			object := &metav1.ObjectMeta{Namespace: "ns", Name: "web", Labels: map[string]string{key: tc.label}}
			if tc.deleting {
				object.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0)))
			}
			log := &strings.Builder{}
			guard, err := New(prometheus.NewRegistry(), log)
			if err != nil {
				t.Fatal(err)
			}
			if got := guard.Refuse("CloneSet", object, tc.replicas, "ann"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			counted, line := 0.0, ""
			if tc.want != "" {
				counted, line = 1, `{"Event":"DeletionProtection","Kind":"CloneSet","Namespace":"ns","Name":"web","UserAgent":"ann"}`+"\n"
			}
			metric := &dto.Metric{}
			if err := guard.refusals.WithLabelValues("CloneSet_ns_web", "ann").Write(metric); err != nil || metric.Counter.GetValue() != counted {
				t.Errorf("counted %v, want %v: %v", metric, counted, err)
			}
			if log.String() != line {
				t.Errorf("logged %q, want %q", log, line)
			}
		})
	}
}

func TestAGuardCountsInOneRegistryOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := New(registry, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := New(registry, nil); err == nil {
		t.Error("a second guard was registered")
	}
	if guard, err := New(nil, nil); err != nil || guard.Refuse("CloneSet", &metav1.ObjectMeta{}, nil, "") != "" {
		t.Errorf("a guard without a registry: %v", err)
	}
}
