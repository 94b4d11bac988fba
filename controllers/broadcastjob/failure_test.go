// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/jobcondition"
)

func TestAJobThatCannotBeReconciledSaysSo(t *testing.T) {
	half, tenth := intstr.FromString("half"), intstr.FromString("10%")
	w := newWorld(t, func(job *kruise.BroadcastJob) { job.Spec.Parallelism = &half })
	if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key}); err == nil {
		t.Fatal("the parallelism can be read")
	}
	c := jobcondition.Find(w.get().Status.Conditions, failure.ConditionType)
	if c == nil || c.Status != "True" || !strings.Contains(c.Message, "reading spec.parallelism") {
		t.Errorf("the condition is %+v", c)
	}
	w.edit(func(job *kruise.BroadcastJob) { job.Spec.Parallelism = &tenth })
	w.round()
	if c := jobcondition.Find(w.get().Status.Conditions, failure.ConditionType); c != nil || len(w.pods()) != 1 {
		t.Errorf("at the end the condition is %+v, and there are %d pods", c, len(w.pods()))
	}
}
