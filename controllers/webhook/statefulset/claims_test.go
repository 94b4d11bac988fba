// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// down is an API server that does not answer.
type down struct{ client.Reader }

func (down) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no answer")
}

func (down) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no answer")
}

func class(name string, born time.Time, isDefault string, grows *bool) client.Object {
	return &storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(born), Annotations: map[string]string{defaultClassKey: isDefault}},
		AllowVolumeExpansion: grows,
	}
}

func withClaim(size string, name *string) *v1beta1.StatefulSet {
	set := &v1beta1.StatefulSet{}
	set.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Spec.StorageClassName = name
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	return set
}

func TestWhichStorageClassLetsAClaimGrow(t *testing.T) {
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	classes := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(
		class("old", day, "true", ptr.To(true)), class("new", day.Add(time.Hour), "true", ptr.To(false)),
		class("newest", day.Add(2*time.Hour), "false", ptr.To(true)), class("silent", day, "", nil)).Build()
	none := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	for _, tc := range []struct {
		name   string
		reader client.Reader
		class  *string
		size   string
		off    bool
		want   string
	}{
		{"of several defaults the newest counts", classes, nil, "2Gi", false, "storage class new does not let volumes grow"},
		{"a class that says nothing lets it", classes, ptr.To("silent"), "2Gi", false, ""},
		{"a class that is gone does not", classes, ptr.To("gone"), "2Gi", false, `Not found: "gone"`},
		{"without a default there is none to ask", none, nil, "2Gi", false, "Not found"},
		{"no answer is no permission", down{}, nil, "2Gi", false, "no answer"},
		{"nor is it for a class by name", down{}, ptr.To("old"), "2Gi", false, "no answer"},
		{"a claim that shrinks causes no request, as the controller leaves it unchanged", down{}, nil, "1Mi", false, ""},
		{"nor does one that stays", down{}, nil, "1Gi", false, ""},
		{"nor does one that follows nothing", down{}, nil, "2Gi", true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found := &rules.Findings{}
			v := validator{reader: tc.reader, gates: Gates{AutoResizePVC: !tc.off}}
			v.validateClaims(t.Context(), withClaim(tc.size, tc.class), withClaim("1Gi", tc.class), field.NewPath("spec"), found)
			if err := found.Errs.ToAggregate(); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestWithoutTheirGatesNothingIsSaidOfClaims(t *testing.T) {
	d, set := defaulter{templates: podtemplate.Settings{}, keepTemplates: true}, &v1beta1.StatefulSet{}
	d.applyDefaults(set, nil)
	d.fillNewer(set)
	if set.Spec.PersistentVolumeClaimRetentionPolicy != nil || set.Spec.VolumeClaimUpdateStrategy.Type != "" || set.Spec.Template.Spec.RestartPolicy != "" {
		t.Errorf("got %v", set.Spec)
	}
}
