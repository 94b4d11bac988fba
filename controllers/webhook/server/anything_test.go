// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"hash/crc32"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/api/apitest"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/test/proptest"
)

// Whatever an object holds, and whatever it held before, the webhooks of its kind answer: a panic would refuse it
// without a word about why.
func TestWebhooksAnswerWhateverTheyAreAsked(t *testing.T) {
	scheme := everything(t)
	reader := fake.NewClientBuilder().WithScheme(scheme).Build()
	all := kindWebhooks(reader, podtemplate.Settings{}, Options{})
	tried := 0
	for kind := range scheme.AllKnownTypes() {
		webhooks := all[strings.ReplaceAll(kind.Group, ".", "-")+"-"+strings.ToLower(kind.Kind)]
		if webhooks == nil {
			continue
		}
		tried++
		t.Run(kind.Version+" "+kind.Kind, func(t *testing.T) {
			filler := apitest.New(20261121)
			var before []byte
			for range proptest.Often(20) {
				object, err := scheme.New(kind)
				if err != nil {
					t.Fatal(err)
				}
				filler.Fill(object)
				raw, err := json.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				for _, handler := range []admission.Handler{webhooks.MutatingHandler(), webhooks.ValidatingHandler()} {
					if handler == nil {
						continue
					}
					ask(t, handler, kind, admissionv1.Create, raw, nil)
					if before != nil {
						ask(t, handler, kind, admissionv1.Update, raw, before)
					}
				}
				before = raw
			}
		})
	}
	if tried < len(all) {
		t.Errorf("only %d kinds of %d were tried", tried, len(all))
	}
}

// What is right but for one field is looked into further than what is wrong all over.
func TestWebhooksAnswerWhateverOneFieldHolds(t *testing.T) {
	scheme := everything(t)
	all := kindWebhooks(fake.NewClientBuilder().WithScheme(scheme).Build(), podtemplate.Settings{}, Options{})
	for file, s := range suites(t) {
		gvk := schema.FromAPIVersionAndKind(s.Base["apiVersion"].(string), s.Base["kind"].(string))
		webhooks := all[strings.ReplaceAll(gvk.Group, ".", "-")+"-"+strings.ToLower(gvk.Kind)]
		if webhooks == nil { // CloneSet has tests of its own
			continue
		}
		t.Run(gvk.Kind, func(t *testing.T) {
			asked := map[string]bool{}
			for i := range s.Cases {
				object := merged(t, s.base(&s.Cases[i]), s.Cases[i].Change)
				kind := gvk
				if v := s.Cases[i].Version; v != "" {
					kind.Version = v
				}
				whole := []byte(text(t, object))
				each(object, func() {
					raw := []byte(text(t, object))
					// One of four, always the same, and fewer with the race detector.
					if crc32.ChecksumIEEE(raw)%256 >= uint32(proptest.Often(64)) || asked[kind.Version+string(raw)] {
						return
					}
					asked[kind.Version+string(raw)] = true
					for _, handler := range []admission.Handler{webhooks.MutatingHandler(), webhooks.ValidatingHandler()} {
						if handler != nil {
							ask(t, handler, kind, admissionv1.Create, raw, nil)
							ask(t, handler, kind, admissionv1.Update, raw, whole)
							ask(t, handler, kind, admissionv1.Update, whole, raw)
						}
					}
				})
			}
			if len(asked) < proptest.Often(25) {
				t.Errorf("%s gave %d objects", file, len(asked))
			}
		})
	}
}

// each calls do once for every field below v that holds something else.
func each(v any, do func()) {
	others := []any{nil, map[string]any{}, []any{}, []any{nil}, "", "x", -1}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			for _, other := range others {
				v[name] = other
				do()
			}
			delete(v, name)
			do()
			v[name] = value
			each(value, do)
		}
	case []any:
		for i, value := range v {
			for _, other := range others {
				v[i] = other
				do()
			}
			v[i] = value
			each(value, do)
		}
	}
}

func ask(t *testing.T, handler admission.Handler, kind schema.GroupVersionKind, operation admissionv1.Operation, object, old []byte) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("%v of %s\n%s", r, object, old)
		}
	}()
	response := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Name: "web", Namespace: "ns", Operation: operation, Kind: metav1.GroupVersionKind(kind),
		Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old},
	}})
	if !response.Allowed && (response.Result == nil || response.Result.Message == "") {
		t.Errorf("refused without a word: %s", object)
	}
}
