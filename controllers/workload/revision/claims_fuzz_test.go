// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
)

func revisionWithClaims(text string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "db-1", Annotations: map[string]string{ClaimTemplatesKey: text}}}
}

// A text that says nothing of claims leaves pods of the revision those of the workload. Only an empty list means that they have none.
func TestATextThatSaysNothingOfClaimsLeavesThoseOfTheWorkload(t *testing.T) {
	own := []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	for _, text := range append(annotationtest.HostileTexts(), `[{"name":""}]`, `[{"name":"../x"}]`, `[{"name":"data"},{"name":"data"}]`) {
		got := ClaimTemplatesOf(revisionWithClaims(text), own)
		switch {
		case text == "[]":
			if len(got) != 0 {
				t.Errorf("an empty list means %d claims", len(got))
			}
			continue
		case strings.HasPrefix(text, `[{"name":"a",`): // a claim of that name, and more
			continue
		}
		if len(got) != 1 || got[0].Name != "data" {
			t.Errorf("%.40q means %d claims, want that of the workload", text, len(got))
		}
	}
}

func FuzzClaimTemplates(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Add(`[{"name":"data","spec":{}}]`)
	f.Fuzz(func(t *testing.T, text string) {
		out, ok := ClaimTemplates(revisionWithClaims(text))
		if !ok && out != nil {
			t.Errorf("the claims are not known, and the result has %v", out)
		}
		for _, c := range out {
			if c.Name == "" {
				t.Error("a claim template has no name")
			}
		}
	})
}
