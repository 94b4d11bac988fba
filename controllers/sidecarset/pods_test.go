// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// SS-11, clause by clause.
func TestWhetherContainersRunWhatTheSpecSays(t *testing.T) {
	const digest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	record := `{"logs":{"lastContainerStatuses":{"shipper":{"imageID":"old"}}}}`
	for name, tc := range map[string]struct {
		image, runs, id, record string
		statuses                int
		want                    bool
	}{
		"without a record it does":                             {"logs:2", "logs:1", "old", "", 1, true},
		"fewer statuses than containers":                       {"logs:2", "logs:2", "new", "", 0, false},
		"more statuses than containers":                        {"logs:2", "logs:2", "new", "", 2, false},
		"the image that was recorded, of another name":         {"logs:2", "logs:1", "old", record, 1, false},
		"another image than was recorded":                      {"logs:2", "logs:1", "new", record, 1, true},
		"the image that was recorded, of the name of the spec": {"logs:2", "logs:2", "old", record, 1, true},
		"a record of another SidecarSet":                       {"logs:2", "logs:1", "old", `{"mesh":{"lastContainerStatuses":{"shipper":{"imageID":"old"}}}}`, 1, true},
		"a record that is no JSON":                             {"logs:2", "logs:1", "new", "{", 1, false},
		"the digest of the spec, whatever was recorded":        {"logs@" + digest, "logs", "docker.io/logs@" + digest, record, 1, true},
		"another digest":                                       {"logs@" + digest, "logs", "docker.io/logs@sha256:22", "", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "shipper", Image: tc.image}}}}
			if tc.record != "" {
				p.Annotations = map[string]string{kruise.SidecarSetInPlaceUpdateStateKey: tc.record}
			}
			for i := range tc.statuses {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: []string{"shipper", "other"}[i], Image: tc.runs, ImageID: tc.id})
			}
			if got := isConsistent("logs", p, []string{"shipper"}); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}

// SS-15: * represents each value that there is, in the order of the pods.
func TestPodsAreScatteredByEachValue(t *testing.T) {
	pod := func(labels map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	}
	pods := []*corev1.Pod{pod(map[string]string{"zone": "b"}), pod(nil), pod(map[string]string{"zone": "a"}), pod(map[string]string{"zone": "b"})}
	for name, tc := range map[string]struct{ terms, want []string }{
		"by each value":               {[]string{"zone=*"}, []string{"zone=b", "zone=a"}},
		"by one value":                {[]string{"zone=a"}, []string{"zone=a"}},
		"by one value, then by each":  {[]string{"zone=a", "zone=*"}, []string{"zone=a", "zone=b"}},
		"by a label that no pod has":  {[]string{"rack=*"}, nil},
		"by what is there twice once": {[]string{"zone=*", "zone=b"}, []string{"zone=b", "zone=a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var terms kruise.CloneSetUpdateScatterStrategy
			for _, term := range tc.terms {
				terms = append(terms, kruise.CloneSetUpdateScatterTerm{Key: term[:4], Value: term[5:]})
			}
			var want []points.ScatterTerm
			for _, term := range tc.want {
				want = append(want, points.ScatterTerm{Key: term[:4], Value: term[5:]})
			}
			if got := expandScatter(terms, pods); !reflect.DeepEqual(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}
