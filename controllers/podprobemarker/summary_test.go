// SPDX-License-Identifier: Apache-2.0

package podprobemarker

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/waiting"
)

func TestWhatKstatusSaysOfAPodProbeMarker(t *testing.T) {
	marker := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "m", Generation: 2}}
	api := fakeclient.NewClientBuilder(apiserver.Scheme(t)).WithObjects(marker).WithStatusSubresource(marker).Build()
	r := New(reconcile.Deps{Client: api, Live: api})
	for _, step := range []struct {
		name   string
		do     func(*v1alpha1.PodProbeMarker) error
		want   status.Status
		reason string
	}{
		{"its pods are probed", func(o *v1alpha1.PodProbeMarker) error {
			return r.patchStatus(t.Context(), o, 3, kstatus.NewReady(kruise.ObservedReason, "well"))
		}, waiting.Current, kruise.ObservedReason},
		{"its controller fails", func(o *v1alpha1.PodProbeMarker) error {
			return r.reportFailure(t.Context(), o, errors.New("no answer"))
		}, waiting.InProgress, failure.ConditionType},
		{"its selector cannot be read", func(o *v1alpha1.PodProbeMarker) error {
			return r.patchStatus(t.Context(), o, 0, kstatus.NewStalled(InvalidSelectorReason, "bad"))
		}, waiting.Failed, InvalidSelectorReason},
		{"its pods are probed again", func(o *v1alpha1.PodProbeMarker) error {
			return r.patchStatus(t.Context(), o, 3, kstatus.NewReady(kruise.ObservedReason, "well"))
		}, waiting.Current, kruise.ObservedReason},
	} {
		o := &v1alpha1.PodProbeMarker{}
		for _, err := range []error{api.Get(t.Context(), client.ObjectKeyFromObject(marker), o), step.do(o), api.Get(t.Context(), client.ObjectKeyFromObject(marker), o)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		got, message := waiting.JudgeObject(t, v1alpha1.GroupVersion.WithKind("PodProbeMarker"), o)
		ready, _ := condition.FindCondition(&o.Status, kruise.ConditionReady)
		if failed := condition.HasCondition(&o.Status, failure.ConditionType); got != step.want || ready.Reason != step.reason || failed != (step.reason == failure.ConditionType) {
			t.Errorf("%s: kstatus says %s (%s), and the conditions are %+v; want %s, %s", step.name, got, message, o.Status.Conditions, step.want, step.reason)
		}
	}
}
