// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type server struct {
	client.Writer
	answer  error
	created *corev1.Pod
	dryRun  bool
}

func (s *server) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	applied := &client.CreateOptions{}
	applied.ApplyOptions(options)
	s.created, s.dryRun = object.(*corev1.Pod), len(applied.DryRun) == 1 && applied.DryRun[0] == "All"
	return s.answer
}

func TestDryRun(t *testing.T) {
	pods := schema.GroupKind{Kind: "Pod"}
	spec := field.NewPath("spec")
	for _, tc := range []struct {
		name     string
		answer   error
		errs     []string
		warnings []string
	}{
		{name: "what the server creates is right"},
		{
			name: "what is invalid there is invalid here, at the path of the template",
			answer: apierrors.NewInvalid(pods, "x", field.ErrorList{
				field.Invalid(spec.Child("containers").Index(0).Child("securityContext"), "x", "wrong"),
				field.Required(spec.Child("os"), "needed"),
				{Type: field.ErrorTypeTooMany, Field: "spec.containers", BadValue: 3, Detail: "must have at most 2 items"},
			}),
			errs: []string{
				`spec.template.spec.containers[0].securityContext: Invalid value: "x": wrong`,
				`spec.template.spec.os: Required value: needed`,
				`spec.template.spec.containers: Invalid value: Too many: 3: must have at most 2 items`,
			},
		},
		{
			name:     "what is forbidden today may not be tomorrow",
			answer:   apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New("exceeded quota")),
			warnings: []string{`spec.template: the API server would not create a pod of this template now: pods "x" is forbidden: exceeded quota`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &server{answer: tc.answer}
			template := parse[corev1.PodTemplateSpec](t, `{metadata: {labels: {a: b}}, spec: {volumes: [{name: logs}]}}`)
			errs, warnings := DryRun{Pods: s}.CheckTemplate(t.Context(), "ns", template, []string{"data", "logs"}, field.NewPath("spec", "template"))
			var got []string
			for _, err := range errs {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.errs, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			want := parse[corev1.Pod](t, `{metadata: {namespace: ns, generateName: template-, labels: {a: b}}, spec: {volumes: [{name: logs}, {name: data, persistentVolumeClaim: {claimName: data}}]}}`)
			if diff := cmp.Diff(want, s.created); diff != "" || !s.dryRun {
				t.Errorf("dry run %t (-want +got):\n%s", s.dryRun, diff)
			}
			if len(template.Spec.Volumes) != 1 {
				t.Error("the template was changed")
			}
		})
	}
}
