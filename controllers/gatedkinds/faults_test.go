// SPDX-License-Identifier: Apache-2.0

package gatedkinds

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

func TestNoFailedCallLeavesAnObjectWithoutTheCondition(t *testing.T) {
	job := &kruise.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "warm"}}
	faultinjection.Scenario{
		Objects: []client.Object{job},
		New: func(_ testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			return &Reconciler{Client: e.Client, Live: e.Client, Kind: kruise.GroupVersion.WithKind("ImagePullJob"), Message: "a gate is off", Now: e.Clock}
		},
		Requests: faultinjection.RequestFor(job),
	}.Run(t)
}
