// SPDX-License-Identifier: Apache-2.0

package namespaces_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/regatta-sh/regatta/controllers/workload/namespaces"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
)

func namespace(name string, labels map[string]string) client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func TestCompleteWorkload(t *testing.T) {
	long := map[string]string{}
	for i := range namespaces.MaxLabelBytes / 50 {
		long[fmt.Sprintf("shop.example/%010d", i)] = strings.Repeat("x", 40)
	}
	gold := map[string]string{"tier": "gold"}
	for _, tc := range []struct {
		name           string
		cached, server client.Object // nil for none
		namespace      string
		fails          error // of reads past the cache
		want           map[string]string
		missing        string
		wantErr        bool
	}{
		{name: "the cache has the namespace", cached: namespace("shop", gold), namespace: "shop", want: gold},
		{name: "a namespace without labels has none, and none is missing", cached: namespace("shop", nil), namespace: "shop"},
		{name: "the cache does not show the namespace yet", server: namespace("shop", gold), namespace: "shop", want: gold},
		{name: "nobody has the namespace", namespace: "shop", missing: namespaces.UnknownReason},
		{name: "the API server does not answer", namespace: "shop", fails: apierrors.NewTimeoutError("busy", 1), wantErr: true},
		{name: "the labels are too long", cached: namespace("shop", long), namespace: "shop", missing: namespaces.TooLongReason},
		{name: "a cluster-scoped workload has no namespace", namespace: ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			build := func(o client.Object, fails error) client.Client {
				b := fakeclient.NewClientBuilder(apiserver.Scheme(t))
				if o != nil {
					b = b.WithObjects(o)
				}
				return b.WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if fails != nil {
						return fails
					}
					return c.Get(ctx, key, o, opts...)
				}}).Build()
			}
			w := rollout.Workload{Kind: "CloneSet", Namespace: tc.namespace, Name: "web"}
			err := namespaces.Reader{Cached: build(tc.cached, nil), Live: build(tc.server, tc.fails)}.CompleteWorkload(t.Context(), &w)
			if (err != nil) != tc.wantErr || tc.fails != nil && !errors.Is(err, tc.fails) {
				t.Fatalf("the error is %v", err)
			}
			missing := ""
			for _, m := range w.MissingFacts {
				missing += m.Reason
				if m.Fact != namespaces.LabelsFact || !strings.Contains(m.Message, "shop") {
					t.Errorf("the missing fact is %+v", m)
				}
			}
			if !maps.Equal(w.NamespaceLabels, tc.want) || missing != tc.missing {
				t.Errorf("the labels are %d, and missing is %q; want %d and %q", len(w.NamespaceLabels), missing, len(tc.want), tc.missing)
			}
		})
	}
}

func TestLabelChangePredicatePassesOtherLabelsOnly(t *testing.T) {
	p := namespaces.LabelChangePredicate()
	before, after := namespace("shop", nil), namespace("shop", map[string]string{"tier": "gold"})
	if !p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("other labels do not pass")
	}
	if p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: before}) || p.Create(event.CreateEvent{Object: after}) || p.Delete(event.DeleteEvent{Object: after}) {
		t.Error("something else than other labels passes")
	}
}
