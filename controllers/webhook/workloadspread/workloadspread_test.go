// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// failing is an API server that answers every read with one error.
type failing struct {
	client.Reader
	err error
}

func (f failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.err
}

func (f failing) List(context.Context, client.ObjectList, ...client.ListOption) error { return f.err }

func TestLookupsThatFail(t *testing.T) {
	broken, forbidden := errors.New("no answer"), apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "web", nil)
	spread := func(kind string) *v1beta1.WorkloadSpread {
		return &v1beta1.WorkloadSpread{Spec: v1beta1.WorkloadSpreadSpec{
			TargetReference: v1beta1.TargetReference{APIVersion: "apps/v1", Kind: kind, Name: "web"},
			Subsets:         []v1beta1.WorkloadSpreadSubset{{Name: "a", Patch: runtime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"a":"b"}}}`)}}},
		}}
	}
	for _, tc := range []struct {
		name, kind string
		err        error
		look       func(validator, *v1beta1.WorkloadSpread, *rules.Findings)
		want       string
		warnings   int
	}{
		{"others are not known", "Deployment", broken, func(v validator, s *v1beta1.WorkloadSpread, f *rules.Findings) { v.validateTarget(t.Context(), s, f) }, "spec.targetRef: Internal error: listing WorkloadSpreads", 0},
		{"the white list is not known", "DaemonSet", broken, func(v validator, s *v1beta1.WorkloadSpread, f *rules.Findings) { v.validateTarget(t.Context(), s, f) }, "spec.targetRef: Internal error: reading ConfigMap", 0},
		{"the workload is not known", "Deployment", broken, func(v validator, s *v1beta1.WorkloadSpread, f *rules.Findings) {
			v.validatePatches(t.Context(), s, nil, f)
		}, "spec.subsets[0].patch: Internal error: finding Deployment web", 0},
		{"the workload may not be known", "Deployment", forbidden, func(v validator, s *v1beta1.WorkloadSpread, f *rules.Findings) {
			v.validatePatches(t.Context(), s, nil, f)
		}, "", 1},
		{"an old patch is not tried again", "Deployment", broken, func(v validator, s *v1beta1.WorkloadSpread, f *rules.Findings) {
			v.validatePatches(t.Context(), s, s, f)
		}, "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			reader, found := failing{err: tc.err}, &rules.Findings{}
			tc.look(validator{reader, rules.Configuration{Reader: reader, Namespace: "ns"}, podtemplate.Settings{}, false}, spread(tc.kind), found)
			got := ""
			if len(found.Errs) > 0 {
				got = found.Errs.ToAggregate().Error()
			}
			if (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) || len(found.Warnings) != tc.warnings {
				t.Errorf("got %q, %v; want %q", got, found.Warnings, tc.want)
			}
		})
	}
}
