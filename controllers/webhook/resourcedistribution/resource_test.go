// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
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
		{"it is wrong", apierrors.NewBadRequest("no such thing"), "spec.resource: Invalid value: the API server refuses it: the API server answers 400 BadRequest", 0},
		{"the API server does not answer", errors.New("no answer"), "spec.resource: Internal error: trying to create it: no answer", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			distribution, found, calls := &v1beta1.ResourceDistribution{}, &rules.Findings{}, 0
			distribution.Spec.Resource = runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"b"}}`)}
			v := validator{writer{t: t, err: tc.err, calls: &calls}, "ns"}
			v.validateSpec(t.Context(), distribution, nil, found)
			got := ""
			if len(found.Errs) > 0 {
				got = found.Errs.ToAggregate().Error()
			}
			if (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) || len(found.Warnings) != tc.warnings || calls != 1 {
				t.Errorf("got %q, %v after %d dry runs; want %q", got, found.Warnings, calls, tc.want)
			}
			if v.validateSpec(t.Context(), distribution, distribution.DeepCopy(), found); calls != 1 {
				t.Error("what did not change was tried again")
			}
		})
	}
}

func TestRefusalsDoNotRepeatASecret(t *testing.T) {
	refusal := func(body string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", field.ErrorList{field.Invalid(field.NewPath("data").Key("k"), body, "is "+body)})
	}
	const secret = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"k":"hunter2"}}`
	for name, tc := range map[string]struct {
		raw, want string
		err       error
	}{
		"without a kind":              {`{"metadata":{"name":"a"},"stringData":{"k":"hunter2"}}`, "spec.resource: Invalid value: must be a complete Secret or ConfigMap: Object 'Kind' is missing", nil},
		"with a number":               {strings.Replace(secret, `"hunter2"`, "77777777", 1), "spec.resource: Invalid value: stringData", nil},
		"with what is no base64":      {strings.Replace(secret, `"stringData"`, `"data"`, 1), "spec.resource: Invalid value: data has a value that is not in base64", nil},
		"with a field that is wrong":  {secret, "spec.resource.data[k]: Invalid value: Invalid value", refusal("hunter2")},
		"by a webhook that repeats":   {secret, "", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", errors.New("hunter2"))},
		"by an error that repeats":    {secret, "spec.resource: Internal error: trying to create it: it failed for a reason", errors.New("hunter2")},
		"as a request that is wrong":  {secret, "spec.resource: Invalid value: the API server refuses it: the API server answers 400", apierrors.NewBadRequest("hunter2")},
		"a ConfigMap keeps its texts": {strings.Replace(secret, "Secret", "ConfigMap", 1), "spec.resource.data[k]: Invalid value: Invalid value: \"text\": is text", refusal("text")},
	} {
		t.Run(name, func(t *testing.T) {
			distribution, found, calls := &v1beta1.ResourceDistribution{}, &rules.Findings{}, 0
			distribution.Spec.Resource = runtime.RawExtension{Raw: []byte(tc.raw)}
			validator{writer{t: t, err: tc.err, calls: &calls}, "ns"}.validateSpec(t.Context(), distribution, nil, found)
			got := ""
			if len(found.Errs) > 0 {
				got = found.Errs.ToAggregate().Error()
			}
			all := got + fmt.Sprint(found.Warnings)
			if (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) || strings.Contains(all, "hunter2") || strings.Contains(all, "7777") {
				t.Errorf("got %q and %v, want %q", got, found.Warnings, tc.want)
			}
		})
	}
}
