// SPDX-License-Identifier: Apache-2.0

package gatedkinds

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

func TestNoFailedCallLeavesAnObjectWithoutTheCondition(t *testing.T) {
	job := &kruise.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "warm"}}
	faultinjection.Scenario{
		Objects: []client.Object{job},
		New: func(_ testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			return &Reconciler{
				Deps: reconcile.Deps{Client: e.Client, Live: e.Client, Now: e.Clock}, Kind: kruise.GroupVersion.WithKind("ImagePullJob"), Message: "a gate is off",
			}
		},
		Requests: faultinjection.RequestFor(job),
	}.Run(t)
}
