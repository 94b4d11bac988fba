// SPDX-License-Identifier: Apache-2.0

// Package containerrecreaterequest has the admission of ContainerRecreateRequests. It copies data of
// the pod into a request, since the node agent sees the request, not the pod.
//
// A request is about the runs of the containers at its creation, so the copied data never changes.
package containerrecreaterequest

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
)

// New makes the webhooks of ContainerRecreateRequests. Pods and nodes are read from the reader.
func New(reader client.Reader) *admit.Kind[*v1beta1.ContainerRecreateRequest] {
	c := &cluster{reader: reader}
	return &admit.Kind[*v1beta1.ContainerRecreateRequest]{
		New:          func() *v1beta1.ContainerRecreateRequest { return &v1beta1.ContainerRecreateRequest{} },
		Older:        func() admit.Spoke { return &v1alpha1.ContainerRecreateRequest{} },
		OlderVersion: v1alpha1.GroupVersion.Version,
		Same: func(a, b *v1beta1.ContainerRecreateRequest) bool {
			return equality.Semantic.DeepEqual(a.Spec, b.Spec) && len(changedLabels(a, b)) == 0 && unreadySince(a).Equal(unreadySince(b))
		},
		Default:  setDefaults,
		Fill:     c.applyDefaults,
		Validate: c.validateSpec,
	}
}
