// SPDX-License-Identifier: Apache-2.0

// Package persistentpodstate has the admission of PersistentPodStates (PPS-05), in both versions. There are no
// defaults: an unset retention policy has the meaning of its default value, and may stay unset.
package persistentpodstate

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// New returns the kind. The reader reads other PersistentPodStates, the configuration has more kinds of workloads. await waits until
// the API server sends the pods of the namespace before a PersistentPodState is created; nil if no pods are sent.
func New(reader client.Reader, configuration rules.Configuration, await rules.Await) *admit.Kind[*v1beta1.PersistentPodState] {
	v := validator{reader, configuration}
	return &admit.Kind[*v1beta1.PersistentPodState]{
		New:   func() *v1beta1.PersistentPodState { return &v1beta1.PersistentPodState{} },
		Older: func() admit.Spoke { return &v1alpha1.PersistentPodState{} }, OlderVersion: v1alpha1.GroupVersion.Version,
		Renamed: map[string]string{
			"spec.requiredPersistentTopology.keys":               "spec.requiredPersistentTopology.nodeTopologyKeys",
			"spec.preferredPersistentTopology[].preference.keys": "spec.preferredPersistentTopology[].preference.nodeTopologyKeys",
		},
		Same:     func(a, b *v1beta1.PersistentPodState) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) },
		Validate: v.validateSpec, Accepted: rules.AwaitNew[*v1beta1.PersistentPodState](await),
	}
}
