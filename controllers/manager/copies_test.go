// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestListsThatAreCopied(t *testing.T) {
	var asked client.ListOptions
	below := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, _ client.ObjectList, opts ...client.ListOption) error {
			asked = client.ListOptions{}
			asked.ApplyOptions(opts)
			return nil
		},
	}).Build()
	for name, c := range map[string]client.Client{"as the caller asks": below, "copied": copyingClient{below}} {
		if err := c.List(t.Context(), &corev1.PodList{}, client.InNamespace("shop"), client.UnsafeDisableDeepCopy); err != nil {
			t.Fatal(err)
		}
		if want := name != "copied"; ptr.Deref(asked.UnsafeDisableDeepCopy, false) != want || asked.Namespace != "shop" {
			t.Errorf("%s: got %+v", name, asked)
		}
	}
}
