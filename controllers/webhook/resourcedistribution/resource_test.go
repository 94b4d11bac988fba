// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

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
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// writer is an API server that answers every dry run with one error.
type writer struct {
	client.Writer
	t     *testing.T
	err   error
	calls *int
}

func (w writer) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	*w.calls++
	all := client.CreateOptions{}
	all.ApplyOptions(options)
	if len(all.DryRun) == 0 || object.GetNamespace() != "ns" {
		w.t.Errorf("it is created in %s with %v", object.GetNamespace(), all)
	}
	return w.err
}

func TestDryRuns(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for _, tc := range []struct {
		name     string
		err      error
		want     string
		warnings int
	}{
		{"all is well", nil, "", 0},
		{"it is there", apierrors.NewAlreadyExists(secrets, "a"), "", 0},
		{"the manager may not", apierrors.NewForbidden(secrets, "a", errors.New("not you")), "", 1},
		{"it is wrong", apierrors.NewBadRequest("no such thing"), "spec.resource: Invalid value: no such thing", 0},
		{"the API server does not answer", errors.New("no answer"), "spec.resource: Internal error: trying to create it: no answer", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			distribution, found, calls := &v1beta1.ResourceDistribution{}, &rules.Findings{}, 0
			distribution.Spec.Resource = runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"b"}}`)}
			v := validator{writer{t: t, err: tc.err, calls: &calls}, "ns"}
			v.validate(t.Context(), distribution, nil, found)
			got := ""
			if len(found.Errs) > 0 {
				got = found.Errs.ToAggregate().Error()
			}
			if (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) || len(found.Warnings) != tc.warnings || calls != 1 {
				t.Errorf("got %q, %v after %d dry runs; want %q", got, found.Warnings, calls, tc.want)
			}
			if v.validate(t.Context(), distribution, distribution.DeepCopy(), found); calls != 1 {
				t.Error("what did not change was tried again")
			}
		})
	}
}
