// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// workload is any object that has revisions.
func workload() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Namespace: "shop", UID: "uid",
		Annotations: map[string]string{"note": "x", corev1.LastAppliedConfigAnnotation: "long"},
	}}
}

type history struct {
	t       *testing.T
	c       client.Client
	current string
	// collisions is what the status remembers of them.
	collisions int32
}

func newHistory(t *testing.T, objects ...client.Object) *history {
	return &history{t: t, c: fake.NewClientBuilder().WithObjects(objects...).Build()}
}

func (h *history) revisions() []*appsv1.ControllerRevision {
	h.t.Helper()
	list := &appsv1.ControllerRevisionList{}
	if err := h.c.List(h.t.Context(), list); err != nil {
		h.t.Fatal(err)
	}
	var out []*appsv1.ControllerRevision
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], workload()) {
			out = append(out, &list.Items[i])
		}
	}
	return out
}

func (h *history) owner(image string) Owner {
	return Owner{
		Object: workload(), Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Template: template(image),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"selected": "yes"}}, Current: h.current, Collisions: h.collisions, Live: h.c,
	}
}

// resolve resolves what the cache shows: all revisions unless some are given.
func (h *history) resolve(image string, shown ...*appsv1.ControllerRevision) History {
	h.t.Helper()
	if shown == nil {
		shown = h.revisions()
	}
	got, err := ResolveHistory(h.t.Context(), h.c, h.owner(image), shown)
	if err != nil {
		h.t.Fatal(err)
	}
	h.collisions = got.Collisions
	return got
}

func TestTheFirstRevisionIsBothCurrentAndUpdate(t *testing.T) {
	h := newHistory(t)
	got := h.resolve("web:1")
	if got.Current != got.Update || len(got.All) != 1 || got.Update.Revision != 1 {
		t.Fatalf("%+v", got)
	}
	r := h.revisions()[0]
	hash := r.Labels[appsv1.ControllerRevisionHashLabelKey]
	if r.Name != "web-"+hash || r.Labels["app"] != "web" || r.Labels["selected"] != "yes" || r.Annotations["note"] != "x" {
		t.Errorf("name %s, labels %v, annotations %v", r.Name, r.Labels, r.Annotations)
	}
	if _, ok := r.Annotations[corev1.LastAppliedConfigAnnotation]; ok {
		t.Error("it carries what kubectl applied")
	}
	if again := h.resolve("web:1"); again.Update.Name != r.Name || len(h.revisions()) != 1 {
		t.Error("an equal template made another revision")
	}
}

func TestAnotherTemplateIsTheUpdateRevision(t *testing.T) {
	h := newHistory(t)
	h.current = h.resolve("web:1").Update.Name
	got := h.resolve("web:2")
	if got.Current.Name != h.current || got.Update.Name == h.current || got.Update.Revision != 2 || len(got.All) != 2 {
		t.Errorf("current %s, update %s numbered %d", got.Current.Name, got.Update.Name, got.Update.Revision)
	}
}

func TestGoingBackMakesTheOldRevisionTheNewest(t *testing.T) {
	h := newHistory(t)
	h.current = h.resolve("web:1").Update.Name
	h.resolve("web:2")
	got := h.resolve("web:1")
	if got.Update.Name != h.current || got.Update.Revision != 3 || len(h.revisions()) != 2 {
		t.Errorf("update %s numbered %d of %d", got.Update.Name, got.Update.Revision, len(h.revisions()))
	}
	if last := got.All[len(got.All)-1]; last.Name != got.Update.Name {
		t.Error("it is not the last of all")
	}
	if again := h.resolve("web:1"); again.Update.Revision != 3 {
		t.Error("it is numbered again though it is the newest")
	}
}

func TestGoingBackRecordsTheClaimsOfNow(t *testing.T) {
	h := newHistory(t)
	claims := func(size string) (out []corev1.PersistentVolumeClaim) {
		c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
		c.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse(size)}
		return append(out, c)
	}
	resolve := func(image, size string) *appsv1.ControllerRevision {
		t.Helper()
		o := h.owner(image)
		o.Claims = claims(size)
		got, err := ResolveHistory(t.Context(), h.c, o, h.revisions())
		if err != nil {
			t.Fatal(err)
		}
		return got.Update
	}
	first := resolve("web:1", "1Gi")
	resolve("web:2", "1Gi")
	back := resolve("web:1", "2Gi")
	want, err := ClaimsHash(claims("2Gi"))
	if err != nil {
		t.Fatal(err)
	}
	if back.Name != first.Name || back.Annotations[ClaimsHashKey] != want {
		t.Errorf("revision %s has claims hash %q, want %s with %q", back.Name, back.Annotations[ClaimsHashKey], first.Name, want)
	}
	for _, r := range h.revisions() {
		if r.Name == back.Name && r.Annotations[ClaimsHashKey] != want {
			t.Errorf("it is written with %q", r.Annotations[ClaimsHashKey])
		}
	}
}

func TestACurrentRevisionThatIsGoneIsTheUpdateRevision(t *testing.T) {
	h := newHistory(t)
	h.current = "web-gone"
	if got := h.resolve("web:1"); got.Current != got.Update {
		t.Errorf("current is %v", got.Current)
	}
}

func TestARevisionThatTheCacheDoesNotShowYetIsFound(t *testing.T) {
	h := newHistory(t)
	first := h.resolve("web:1")
	// A client that reads from the cache would not find it either.
	got, err := ResolveHistory(t.Context(), unread{h.c}, h.owner("web:1"), nil)
	if err != nil || got.Update.Name != first.Update.Name || got.Collisions != 0 || len(h.revisions()) != 1 {
		t.Errorf("%v, %+v", err, got)
	}
}

// unread cannot read.
type unread struct{ client.Client }

func (unread) Get(_ context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return fmt.Errorf("the cache was read")
}

func TestANameThatIsTakenIsACollision(t *testing.T) {
	first := newHistory(t).resolve("web:1").Update
	stranger := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: first.Name, Namespace: "shop"}, Data: first.Data}
	h := newHistory(t, stranger)
	got := h.resolve("web:1")
	if got.Collisions != 1 || got.Update.Name == first.Name || len(h.revisions()) != 1 {
		t.Errorf("%d collisions, update %s", got.Collisions, got.Update.Name)
	}
	if got.Update.Labels[appsv1.ControllerRevisionHashLabelKey] != ShortHash(got.Update.Name) {
		t.Error("its label is that of another name")
	}
	if again := h.resolve("web:1"); again.Collisions != 1 || again.Update.Name != got.Update.Name {
		t.Error("it collides again")
	}
}

func TestByLabel(t *testing.T) {
	h := newHistory(t)
	h.resolve("web:1")
	got := h.resolve("web:2")
	for _, r := range got.All {
		if got.ByLabel(r.Name) != r || got.ByLabel(ShortHash(r.Name)) != r {
			t.Errorf("%s is not found by its name or its hash", r.Name)
		}
	}
	if got.ByLabel("web-gone") != nil || got.ByLabel("") != nil {
		t.Error("what is not there is found")
	}
}

func TestTruncate(t *testing.T) {
	for name, tc := range map[string]struct {
		limit int
		used  []string
		want  []string // images whose revisions are left
	}{
		"down to the limit, the oldest first": {2, nil, []string{"web:1", "web:4", "web:5", "web:6"}},
		"a limit of none":                     {0, nil, []string{"web:1", "web:6"}},
		"a limit below none is none":          {-1, nil, []string{"web:1", "web:6"}},
		"what pods run is kept beside":        {1, []string{"web:2", "web:3"}, []string{"web:1", "web:2", "web:3", "web:5", "web:6"}},
		"a limit that is not reached":         {9, nil, []string{"web:1", "web:2", "web:3", "web:4", "web:5", "web:6"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			image := map[string]string{}
			var last History
			for i := 1; i <= 6; i++ {
				last = h.resolve(fmt.Sprint("web:", i))
				image[last.Update.Name] = fmt.Sprint("web:", i)
				if i == 1 {
					h.current = last.Update.Name
				}
			}
			if err := last.Truncate(t.Context(), h.c, tc.limit, func(r *appsv1.ControllerRevision) bool { return slices.Contains(tc.used, image[r.Name]) }); err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, r := range h.revisions() {
				left = append(left, image[r.Name])
			}
			slices.Sort(left)
			if !slices.Equal(left, tc.want) {
				t.Errorf("left are %v, want %v", left, tc.want)
			}
		})
	}
}

// A revision that is made before those of an orphaned predecessor are adopted has the number of
// one of these, until it is seen beside it.
func TestTheUpdateRevisionIsNewerThanOneThatIsAdoptedLater(t *testing.T) {
	h := newHistory(t)
	adopted := h.resolve("web:1").Update
	h.c = fake.NewClientBuilder().Build()
	update := h.resolve("web:2", []*appsv1.ControllerRevision{}...).Update
	adopted.ResourceVersion, adopted.CreationTimestamp = "", update.CreationTimestamp
	if err := h.c.Create(t.Context(), adopted); err != nil {
		t.Fatal(err)
	}
	o := h.owner("web:2")
	o.Adopt = func(context.Context, *appsv1.ControllerRevision, map[string]string) error { return nil }
	got, err := ResolveHistory(t.Context(), h.c, o, []*appsv1.ControllerRevision{adopted, update})
	if err != nil || got.Update.Name != update.Name || got.Update.Revision <= adopted.Revision {
		t.Errorf("the update is %s with number %d, the other one has %d: %v", got.Update.Name, got.Update.Revision, adopted.Revision, err)
	}
}
