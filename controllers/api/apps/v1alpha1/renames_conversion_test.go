// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api/apitest"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// The versions of these kinds differ in names of fields alone.
func TestRenames(t *testing.T) {
	for _, tc := range []struct {
		name         string
		spoke        conversion.Convertible
		hub          conversion.Hub
		older, newer string
	}{
		{
			name: "keys of topologies are nodeTopologyKeys", spoke: &PersistentPodState{}, hub: &v1beta1.PersistentPodState{},
			older: `{"metadata":{},"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"StatefulSet","name":"a"},"requiredPersistentTopology":{"nodeTopologyKeys":["zone"]},` +
				`"preferredPersistentTopology":[{"weight":3,"preference":{"nodeTopologyKeys":["host"]}}]},"status":{"observedGeneration":0}}`,
			newer: `{"metadata":{},"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"StatefulSet","name":"a"},"requiredPersistentTopology":{"keys":["zone"]},` +
				`"preferredPersistentTopology":[{"weight":3,"preference":{"keys":["host"]}}]},"status":{"observedGeneration":0}}`,
		},
		{
			name: "a retention policy that v1beta1 would refuse stays as it is", spoke: &PersistentPodState{}, hub: &v1beta1.PersistentPodState{},
			older: `{"metadata":{},"spec":{"targetRef":{"apiVersion":"","kind":"","name":""},"persistentPodStateRetentionPolicy":"Whenever"},"status":{"observedGeneration":0}}`,
			newer: `{"metadata":{},"spec":{"targetRef":{"apiVersion":"","kind":"","name":""},"persistentPodStateRetentionPolicy":"Whenever"},"status":{"observedGeneration":0}}`,
		},
		{
			name: "namespaceSelector is namespaceLabelSelector, and failedNamespaces is failedNamespace", spoke: &ResourceDistribution{}, hub: &v1beta1.ResourceDistribution{},
			older: `{"metadata":{},"spec":{"resource":{"kind":"Secret"},"targets":{"includedNamespaces":{},"namespaceLabelSelector":{"matchLabels":{"a":"b"}},"excludedNamespaces":{}}},` +
				`"status":{"conditions":[{"type":"ConflictOccurred","status":"True","failedNamespace":["x"]}]}}`,
			newer: `{"metadata":{},"spec":{"resource":{"kind":"Secret"},"targets":{"includedNamespaces":{},"namespaceSelector":{"matchLabels":{"a":"b"}},"excludedNamespaces":{}}},` +
				`"status":{"conditions":[{"type":"ConflictOccurred","status":"True","failedNamespaces":["x"]}]}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			parse(t, tc.older, tc.spoke)
			if err := tc.spoke.ConvertTo(tc.hub); err != nil {
				t.Fatal(err)
			}
			if got, err := json.Marshal(tc.hub); err != nil || string(got) != tc.newer {
				t.Errorf("got  %s, %v\nwant %s", got, err, tc.newer)
			}
			if err := tc.spoke.ConvertFrom(tc.hub); err != nil {
				t.Fatal(err)
			}
			if got, err := json.Marshal(tc.spoke); err != nil || string(got) != tc.older {
				t.Errorf("got  %s, %v\nwant %s", got, err, tc.older)
			}
		})
	}
}

func parse(t *testing.T, text string, object runtime.Object) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), object); err != nil {
		t.Fatal(err)
	}
}

func TestPersistentPodStatesSurviveTheirVersions(t *testing.T) {
	apitest.RoundTrip(t, apitest.New(10), &PersistentPodState{}, &v1beta1.PersistentPodState{})
}

func TestResourceDistributionsSurviveTheirVersions(t *testing.T) {
	apitest.RoundTrip(t, apitest.New(11), &ResourceDistribution{}, &v1beta1.ResourceDistribution{})
}

func TestEveryKindRefusesAnotherHub(t *testing.T) {
	for name, spoke := range map[string]conversion.Convertible{
		"PersistentPodState": &PersistentPodState{}, "ResourceDistribution": &ResourceDistribution{}, "SidecarSet": &SidecarSet{},
		"UnitedDeployment": &UnitedDeployment{}, "WorkloadSpread": &WorkloadSpread{},
	} {
		t.Run(name, func(t *testing.T) {
			if err := spoke.ConvertTo(otherHub{}); err == nil {
				t.Error("converting to another hub succeeded")
			}
			if err := spoke.ConvertFrom(otherHub{}); err == nil {
				t.Error("converting from another hub succeeded")
			}
		})
	}
}
