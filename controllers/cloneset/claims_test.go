// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/test/rules"
)

// owned are the pods that the CloneSet owns and that do not terminate.
func (s *life) owned() []*corev1.Pod {
	return slices.DeleteFunc(s.ListPods(), func(p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil || !metav1.IsControlledBy(p, s.set())
	})
}

// mounted has the UID of the claim of each pod, by the instance id of the pod.
func (s *life) mounted() map[string]types.UID {
	out := map[string]types.UID{}
	for _, p := range s.owned() {
		id := p.Labels[kruise.CloneSetInstanceIDKey]
		for _, c := range simulation.ListObjects[*corev1.PersistentVolumeClaim](s.Harness) {
			if c.Name == claimName(s.set(), "data", id) {
				out[id] = c.UID
			}
		}
	}
	return out
}

// comesBack deletes a pod that is at rest, and fails unless the same instance id
// comes back with the same claim. The controller may be started again meanwhile.
func (s *life) comesBack(p *corev1.Pod, restart bool) {
	s.Helper()
	before := s.mounted()
	s.Delete(p)
	for i := range 3 { // while it terminates
		if restart && i == 1 {
			s.RestartController()
		}
		s.ShowAll(nil)
		s.ReconcileIfDue()
		s.Now = s.Now.Add(time.Second)
	}
	s.RunUntilStable()
	if diff := cmp.Diff(before, s.mounted()); diff != "" {
		s.Fatalf("after the deletion of pod %s the pods have other claims: %s%s", p.Name, diff, s.DescribeState())
	}
}

func claimSet(replicas int32, reuse bool) *kruise.CloneSet {
	return &kruise.CloneSet{Spec: kruise.CloneSetSpec{
		Replicas:             &replicas,
		Selector:             &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template:             simTemplate("web:1", "1"),
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
		ScaleStrategy:        kruise.CloneSetScaleStrategy{EnablePVCReuse: reuse},
		UpdateStrategy: kruise.CloneSetUpdateStrategy{RollingUpdate: &kruise.RollingUpdateCloneSetStrategy{
			PodUpdatePolicy: kruise.InPlaceIfPossiblePodUpdatePolicyType, MaxUnavailable: ptr.To(intstr.FromInt32(2)),
		}},
	}}
}

func TestClaimsAreReused(t *testing.T) {
	e := rules.Engine(t, "")
	start := func(t *testing.T, set *kruise.CloneSet) *life {
		s := newLife(t, e, gates{}, set)
		s.RunUntilStable()
		s.finished()
		return s
	}
	finish := func(s *life, p *corev1.Pod) {
		p = p.DeepCopy()
		p.Status.Phase = corev1.PodFailed
		s.UpdateStatus(p)
	}
	creates := func(s *life, from int) (out []string) {
		for _, h := range s.ActionHistory()[from:] {
			if strings.HasPrefix(h, "create ") {
				out = append(out, h)
			}
		}
		return out
	}

	t.Run("by the replacement of a pod that was deleted", func(t *testing.T) {
		s := start(t, claimSet(3, true))
		for i := range 3 {
			s.comesBack(s.ListPods()[i], i == 1)
			s.finished()
		}
	})
	t.Run("by the replacements of all pods at once", func(t *testing.T) {
		s := start(t, claimSet(3, true))
		before := s.mounted()
		for _, p := range s.ListPods() {
			s.Delete(p)
		}
		s.RunUntilStable()
		s.finished()
		if diff := cmp.Diff(before, s.mounted()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("by the replacement of a pod that finished while it terminated", func(t *testing.T) {
		s := start(t, claimSet(2, true))
		before, p := s.mounted(), s.ListPods()[0]
		s.Delete(p)
		finish(s, s.ListPods()[0])
		s.RunUntilStable()
		s.finished()
		if diff := cmp.Diff(before, s.mounted()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("ahead of the claim of a pod that was not replaced", func(t *testing.T) {
		s := start(t, claimSet(3, true))
		s.change(func(set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](2) })
		s.Delete(s.ListPods()[0])
		s.RunUntilStable()
		for i := range 2 { // whatever the order of the claims
			s.comesBack(s.ListPods()[i], false)
		}
		left := s.mounted()
		s.change(func(set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](3) })
		s.RunUntilStable()
		s.finished()
		if now := s.mounted(); len(now) != 3 || len(left) != 2 {
			t.Errorf("%v, then %v", left, now)
		}
		if claims := len(simulation.ListObjects[*corev1.PersistentVolumeClaim](s.Harness)); claims != 3 {
			t.Errorf("there are %d claims, want the 3 that were there", claims)
		}
	})
	t.Run("by no pod that is deleted with its claims", func(t *testing.T) {
		s := start(t, claimSet(3, true))
		before := s.mounted()
		s.change(func(set *kruise.CloneSet) { set.Spec.Template = simTemplate("web:1", "2") }) // recreates
		for range 40 {
			for _, p := range s.ListPods() {
				s.StepPod(p.Name)
			}
			s.ShowAll(&corev1.Pod{}) // the cache of claims lags behind
			s.ReconcileIfDue()
		}
		s.RunUntilStable()
		s.finished()
		for id := range s.mounted() {
			if _, ok := before[id]; ok {
				t.Errorf("id %s is used again", id)
			}
		}
		for len(s.Events.Events) > 0 {
			if e := <-s.Events.Events; strings.HasPrefix(e, "Warning") {
				t.Error(e)
			}
		}
	})
	t.Run("not without reuse", func(t *testing.T) {
		s := start(t, claimSet(2, false))
		before := s.mounted()
		s.Delete(s.ListPods()[0])
		s.RunUntilStable()
		s.finished()
		now := s.mounted()
		maps.DeleteFunc(now, func(id string, uid types.UID) bool { return before[id] == uid })
		if len(now) != 1 {
			t.Errorf("%v are new, want one", now)
		}
	})
	t.Run("once the pod is gone, however long it terminates", func(t *testing.T) {
		s := start(t, claimSet(3, true))
		before, p := s.mounted(), s.ListPods()[0]
		s.Delete(p)
		from := len(s.ActionHistory())
		s.change(func(set *kruise.CloneSet) {
			set.Spec.Template = simTemplate("web:2", "1")
			set.Spec.Replicas = ptr.To[int32](5)
		})
		for range 60 {
			for _, other := range s.ListPods() {
				if other.Name != p.Name {
					s.StepPod(other.Name)
				}
			}
			s.ShowAll(nil)
			s.ReconcileIfDue()
			s.Now = s.Now.Add(time.Minute)
		}
		if got := s.CountPods(); got.Active != 4 || got.Available != 4 || got.Updated != 4 {
			t.Fatalf("while it terminates there are %+v, want 4 that are updated%s", got, s.DescribeState())
		}
		if got := creates(s, from); len(got) != 4+1 { // a claim and a pod each, and a revision
			t.Errorf("while it terminates these are tried: %v", got)
		}
		for len(s.Events.Events) > 0 {
			if e := <-s.Events.Events; strings.HasPrefix(e, "Warning") {
				t.Error(e)
			}
		}
		s.RunUntilStable()
		s.finished()
		now := s.mounted()
		maps.DeleteFunc(now, func(id string, _ types.UID) bool { _, ok := before[id]; return !ok })
		if diff := cmp.Diff(before, now); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("when only the API server shows that the pod terminates", func(t *testing.T) {
		s := start(t, claimSet(2, true))
		p := s.ListPods()[0]
		id := p.Labels[kruise.CloneSetInstanceIDKey]
		s.DropPodFromCache(p)
		for len(s.Events.Events) > 0 {
			<-s.Events.Events
		}
		from := len(s.ActionHistory())
		s.Reconcile()
		if got := creates(s, from); len(got) != 2 || !strings.HasSuffix(got[1], id) { // its claim, and the pod
			t.Errorf("these are tried: %v", got)
		}
		if again := s.Timer.Sub(s.Now); again != time.Second {
			t.Errorf("it is tried again in %s", again)
		}
		if n := len(s.Events.Events); n > 0 {
			t.Errorf("%d events: %s", n, <-s.Events.Events)
		}
	})
	t.Run("and deleted without reuse, also after a delete that lost a race", func(t *testing.T) {
		s := start(t, claimSet(2, false))
		races := 0
		s.Deny = func(o client.Object, verb string) error {
			if _, ok := o.(*corev1.PersistentVolumeClaim); ok && verb == "delete" && races < 2 {
				races++
				return apierrors.NewConflict(schema.GroupResource{Resource: "persistentvolumeclaims"}, o.GetName(), errors.New("another version"))
			}
			return nil
		}
		s.change(func(set *kruise.CloneSet) { set.Spec.Template = simTemplate("web:1", "2") }) // recreates
		s.RunUntilStable()
		if races != 2 {
			t.Fatalf("%d deletes lost a race", races)
		}
		s.finished()
	})
	t.Run("by no pod that podsToDelete names", func(t *testing.T) {
		s := start(t, claimSet(2, true))
		p := s.ListPods()[0]
		other := s.ListPods()[1].Labels[kruise.CloneSetInstanceIDKey]
		before := s.mounted()
		s.Delete(p)
		s.change(func(set *kruise.CloneSet) { set.Spec.ScaleStrategy.PodsToDelete = []string{p.Name} })
		s.RunUntilStable()
		s.finished()
		if now := s.mounted(); now[other] != before[other] {
			t.Errorf("%v, then %v", before, now)
		}
	})
}
