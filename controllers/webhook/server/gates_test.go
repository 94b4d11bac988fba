// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/gatedkinds"
)

// Each kind that has feature gates is refused without them, with the line that turns them on.
func TestEveryKindWithoutItsGateIsRefused(t *testing.T) {
	off := func(featuregate.Feature) bool { return false }
	scheme := everything(t)
	handlers, err := HandlersByPath(scheme, fake.NewClientBuilder().WithScheme(scheme).Build(), Options{Gates: off, NoBudgets: true, NoSpreads: true})
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]bool{}
	for _, s := range suites(t) {
		object := merged(t, s.Base, nil)
		kind, _ := object["kind"].(string)
		if gatedkinds.IsServed(kind, off) {
			continue
		}
		group, version, _ := strings.Cut(object["apiVersion"].(string), "/")
		path := "/validate-" + strings.ReplaceAll(group, ".", "-") + "-" + strings.ToLower(kind)
		handler, ok := handlers[path].(*webhook.Admission)
		if !ok {
			t.Errorf("nothing serves %s", path)
			continue
		}
		request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Name: "a", Namespace: "shop", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Group: group, Version: version, Kind: kind},
		}}
		request.Object.Raw = []byte(text(t, object))
		answer := handler.Handler.Handle(t.Context(), request)
		if answer.Allowed || !strings.Contains(answer.Result.Message, gatedkinds.DescribeMissing(kind, off)) {
			t.Errorf("%s: allowed is %t: %+v", kind, answer.Allowed, answer.Result)
		}
		refused[kind] = true
	}
	for _, kind := range gatedkinds.ListUnserved(scheme, off) {
		if !refused[kind.Kind] {
			t.Errorf("%s was not tried", kind.Kind)
		}
	}
}
