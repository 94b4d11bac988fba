// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func claimsNamed(names ...string) (out []corev1.PersistentVolumeClaim) {
	for _, name := range names {
		out = append(out, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return out
}

// recorded are the names that a revision records, "nothing" if it says nothing.
func (h *history) recorded(name string) string {
	h.t.Helper()
	for _, rev := range h.revisions() {
		if rev.Name == name {
			claims, ok := ClaimTemplates(rev)
			if !ok {
				return "nothing"
			}
			var names []string
			for _, c := range claims {
				names = append(names, c.Name)
			}
			return strings.Join(names, " ")
		}
	}
	h.t.Fatalf("there is no revision %s", name)
	return ""
}

func (h *history) resolveWith(image string, claims []corev1.PersistentVolumeClaim) History {
	h.t.Helper()
	o := h.owner(image)
	o.WithoutClaims, o.RecordsClaims, o.Claims = true, true, claims
	got, err := ResolveHistory(h.t.Context(), h.c, o, h.revisions())
	if err != nil {
		h.t.Fatal(err)
	}
	if at := got.All[len(got.All)-1]; at != got.Update {
		h.t.Errorf("the newest revision is %s, and the update %s", at.Name, got.Update.Name)
	}
	return got
}

func TestARevisionRecordsTheClaimTemplatesOfItsTime(t *testing.T) {
	h := newHistory(t)
	first := h.resolveWith("web:1", claimsNamed("data")).Update.Name
	second := h.resolveWith("web:2", nil).Update.Name
	if a, b := h.recorded(first), h.recorded(second); a != "data" || b != "" {
		t.Fatalf("recorded are %q and %q", a, b)
	}
	h.resolveWith("web:2", claimsNamed("logs", "data"))
	if a, b := h.recorded(first), h.recorded(second); a != "data" || b != "logs data" {
		t.Errorf("after an edit of the claims alone recorded are %q and %q", a, b)
	}
	h.resolveWith("web:1", claimsNamed("other"))
	if a, b := h.recorded(first), h.recorded(second); a != "other" || b != "logs data" {
		t.Errorf("after a rollback recorded are %q and %q", a, b)
	}
	h.resolveWith("web:1", claimsNamed(strings.Repeat("x", maxClaimTemplates)))
	if a := h.recorded(first); a != "nothing" {
		t.Errorf("templates that are too long are recorded: %d bytes", len(a))
	}
}

func TestARevisionThatRecordsNoClaimTemplatesStaysAsItIs(t *testing.T) {
	h := newHistory(t)
	first := h.resolve("web:1").Update
	again := h.resolveWith("web:1", claimsNamed("data")).Update
	if h.recorded(first.Name) != "nothing" || again.ResourceVersion != h.revisions()[0].ResourceVersion {
		t.Error("the revision was changed")
	}
	first.Annotations = map[string]string{ClaimTemplatesKey: "none"}
	if _, ok := ClaimTemplates(first); ok {
		t.Error("a record that cannot be read says something")
	}
}

// A revision that is rolled back to may have more annotations than the workload has now: the record goes where there is no room
// for it, since the API server would refuse the revision in each round.
func TestARecordLeavesTheAnnotationsWithinTheirLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		room int
		want string
	}{"no room": {room: 2000, want: "nothing"}, "room": {room: maxClaimTemplates, want: "data"}} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			first := h.resolveWith("web:1", nil).Update
			h.resolveWith("web:2", nil)
			first.Annotations["notes"] = strings.Repeat("n", maxAnnotations-tc.room)
			if err := h.c.Update(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			long := claimsNamed("data")
			long[0].Annotations = map[string]string{"long": strings.Repeat("x", maxClaimTemplates/2)}
			size := 0
			for k, v := range h.resolveWith("web:1", long).Update.Annotations {
				size += len(k) + len(v)
			}
			if got := h.recorded(first.Name); got != tc.want || size > maxAnnotations {
				t.Errorf("recorded is %s, want %s; the annotations have %d bytes, want %d at the most", got, tc.want, size, maxAnnotations)
			}
		})
	}
}
