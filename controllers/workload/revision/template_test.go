// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func template(image string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: image,
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1500m")}},
		}}},
	}
}

func data(raw string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, Data: runtime.RawExtension{Raw: []byte(raw)}}
}

func TestATemplateComesBackAsItWas(t *testing.T) {
	raw, err := EncodeTemplate(template("web:1"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeTemplate(data(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(got, template("web:1")) {
		t.Error(cmp.Diff(template("web:1"), got))
	}
	var doc struct {
		Spec struct{ Template map[string]any }
	}
	if err := json.Unmarshal(raw, &doc); err != nil || doc.Spec.Template["$patch"] != "replace" {
		t.Errorf("%v, the directive is %v", err, doc.Spec.Template["$patch"])
	}
	if nulls := bytes.Count(raw, []byte("null")); nulls != 1 {
		t.Errorf("it has %d nulls besides the creationTimestamp: %s", nulls-1, raw)
	}
	again, err := EncodeTemplate(template("web:1"))
	if err != nil || !bytes.Equal(raw, again) {
		t.Error("equal templates give other bytes")
	}
}

func TestEqual(t *testing.T) {
	const is = `{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"a"}]}}}}`
	for name, tc := range map[string]struct {
		other string
		want  bool
	}{
		"the same":                      {is, true},
		"in another order":              {`{"spec":{"template":{"spec":{"containers":[{"name":"a"}]},"$patch":"replace","metadata":{"labels":{"app":"web"}}}}}`, true},
		"with nulls, as older releases": {`{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"web"}},"spec":{"containers":[{"name":"a","env":null}]}}}}`, true},
		"another name":                  {`{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"b"}]}}}}`, false},
		"an empty list is not nothing":  {`{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"a","env":[]}]}}}}`, false},
		"no JSON":                       {`{`, false},
		"nothing":                       {``, false},
	} {
		if got := EqualData(data(is), data(tc.other)); got != tc.want || got != EqualData(data(tc.other), data(is)) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestSame(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"web-abc", "web-abc", true}, {"web-abc", "abc", true}, {"abc", "abc", true}, {"my-web-abc", "other-abc", true},
		{"web-abc", "web-abd", false}, {"", "", false}, {"", "abc", false}, {"abc", "", false}, {"web-", "web-", true},
	} {
		if got := SameHash(tc.a, tc.b); got != tc.want {
			t.Errorf("Same(%q, %q) = %v", tc.a, tc.b, got)
		}
	}
}

func TestCollisionsGiveOtherHashes(t *testing.T) {
	seen := map[string]bool{}
	for n := range int32(20) {
		h := HashData([]byte("x"), n)
		if seen[h] {
			t.Errorf("count %d gives %s again", n, h)
		}
		seen[h] = true
	}
}

func TestClaimsHash(t *testing.T) {
	claim := func(name, size string) corev1.PersistentVolumeClaim {
		return corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{"storage": resource.MustParse(size)},
			}},
		}
	}
	hash := func(claims ...corev1.PersistentVolumeClaim) string {
		h, err := ClaimsHash(claims)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if hash() != "" {
		t.Error("no claims have a hash")
	}
	if hash(claim("a", "1Gi"), claim("b", "1Gi")) != hash(claim("b", "1Gi"), claim("a", "1Gi")) {
		t.Error("their order counts")
	}
	if hash(claim("a", "1Gi")) == hash(claim("a", "2Gi")) || hash(claim("a", "1Gi")) == hash(claim("b", "1Gi")) {
		t.Error("their names or sizes do not count")
	}
	labelled := claim("a", "1Gi")
	labelled.Labels = map[string]string{"x": "y"}
	if hash(labelled) != hash(claim("a", "1Gi")) {
		t.Error("their labels count")
	}
}

// A client that may write revisions may write any contents.
func FuzzRevisions(f *testing.F) {
	f.Add(`{"spec":{"template":{"$patch":"replace","spec":{"containers":[{"name":"a"}]}}}}`)
	f.Add(`{"spec":{"template":null}}`)
	f.Add(`{"spec":{"template":{"metadata":{"creationTimestamp":null},"spec":{"containers":[null]}}}}`)
	f.Add(`[]`)
	f.Add(``)
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := DecodeTemplate(data(raw))
		if EqualData(data(raw), data(raw)) != true && err == nil {
			t.Error("it is readable and not equal to itself")
		}
		if err != nil {
			return
		}
		encoded, err := EncodeTemplate(got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeTemplate(data(string(encoded)))
		if err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(got, again) {
			t.Error(cmp.Diff(got, again))
		}
	})
}
