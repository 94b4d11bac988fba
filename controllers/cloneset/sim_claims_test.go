// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
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
)

// stopPod deletes a pod as `kubectl delete pod` and a drain do: it terminates
// until its kubelet has stopped it.
func (s *sim) stopPod(p *corev1.Pod) {
	s.t.Helper()
	if err := s.truth.Delete(context.Background(), p.DeepCopy()); err != nil {
		s.t.Fatal(err)
	}
	s.commit(p)
	s.showAll("Pod")
}

// owned are the pods that the CloneSet owns and that do not terminate.
func (s *sim) owned() []*corev1.Pod {
	return slices.DeleteFunc(s.all(), func(p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil || !metav1.IsControlledBy(p, s.set())
	})
}

// mounted has the UID of the claim of each pod, by the instance id of the pod.
func (s *sim) mounted() map[string]types.UID {
	out := map[string]types.UID{}
	for _, p := range s.owned() {
		id := p.Labels[kruise.CloneSetInstanceIDKey]
		if c, ok := s.last["PersistentVolumeClaim/"+claimName(s.set(), "data", id)]; ok {
			out[id] = c.GetUID()
		}
	}
	return out
}

// comesBack deletes a pod that is at rest, and fails unless the same instance id
// comes back with the same claim. The controller may be started again meanwhile.
func (s *sim) comesBack(p *corev1.Pod, restart bool) {
	s.t.Helper()
	before := s.mounted()
	s.stopPod(p)
	for i := range 3 { // while it terminates
		if restart && i == 1 {
			s.start()
		}
		s.showAll("")
		s.work()
		s.now = s.now.Add(time.Second)
	}
	s.settle()
	if diff := cmp.Diff(before, s.mounted()); diff != "" {
		s.t.Fatalf("after the deletion of pod %s the pods have other claims: %s%s", p.Name, diff, s.dump())
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
	server, e := simServer(), simEngine(t)
	start := func(t *testing.T, ns string, set *kruise.CloneSet) *sim {
		s := newSim(t, server, e, ns, gates{}, set)
		s.settle()
		s.finished()
		return s
	}
	finish := func(s *sim, p *corev1.Pod) {
		p = p.DeepCopy()
		p.Status.Phase = corev1.PodFailed
		if err := server.Status().Update(t.Context(), p); err != nil {
			s.t.Fatal(err)
		}
		s.commit(p)
	}
	creates := func(s *sim, from int) (out []string) {
		for _, h := range s.history[from:] {
			if strings.HasPrefix(h, "create ") {
				out = append(out, h)
			}
		}
		return out
	}

	t.Run("by the replacement of a pod that was deleted", func(t *testing.T) {
		s := start(t, "deleted", claimSet(3, true))
		for i := range 3 {
			s.comesBack(s.all()[i], i == 1)
			s.finished()
		}
	})
	t.Run("by the replacements of all pods at once", func(t *testing.T) {
		s := start(t, "all", claimSet(3, true))
		before := s.mounted()
		for _, p := range s.all() {
			s.stopPod(p)
		}
		s.settle()
		s.finished()
		if diff := cmp.Diff(before, s.mounted()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("by the replacement of a pod that finished while it terminated", func(t *testing.T) {
		s := start(t, "finished", claimSet(2, true))
		before, p := s.mounted(), s.all()[0]
		s.stopPod(p)
		finish(s, s.all()[0])
		s.settle()
		s.finished()
		if diff := cmp.Diff(before, s.mounted()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("ahead of the claim of a pod that was not replaced", func(t *testing.T) {
		s := start(t, "ahead", claimSet(3, true))
		s.change(func(set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](2) })
		s.stopPod(s.all()[0])
		s.settle()
		for i := range 2 { // whatever the order of the claims
			s.comesBack(s.all()[i], false)
		}
		left := s.mounted()
		s.change(func(set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](3) })
		s.settle()
		s.finished()
		if now := s.mounted(); len(now) != 3 || len(left) != 2 {
			t.Errorf("%v, then %v", left, now)
		}
		claims := 0
		for k := range s.last {
			if strings.HasPrefix(k, "PersistentVolumeClaim/") {
				claims++
			}
		}
		if claims != 3 {
			t.Errorf("there are %d claims, want the 3 that were there", claims)
		}
	})
	t.Run("by no pod that is deleted with its claims", func(t *testing.T) {
		s := start(t, "recreate", claimSet(3, true))
		before := s.mounted()
		s.change(func(set *kruise.CloneSet) { set.Spec.Template = simTemplate("web:1", "2") }) // recreates
		for range 40 {
			for _, p := range s.all() {
				s.kubelet(p.Name)
			}
			s.showAll("Pod") // the cache of claims lags behind
			s.work()
		}
		s.settle()
		s.finished()
		for id := range s.mounted() {
			if _, ok := before[id]; ok {
				t.Errorf("id %s is used again", id)
			}
		}
		for len(s.events.Events) > 0 {
			if e := <-s.events.Events; strings.HasPrefix(e, "Warning") {
				t.Error(e)
			}
		}
	})
	t.Run("not without reuse", func(t *testing.T) {
		s := start(t, "off", claimSet(2, false))
		before := s.mounted()
		s.stopPod(s.all()[0])
		s.settle()
		s.finished()
		now := s.mounted()
		maps.DeleteFunc(now, func(id string, uid types.UID) bool { return before[id] == uid })
		if len(now) != 1 {
			t.Errorf("%v are new, want one", now)
		}
	})
	t.Run("once the pod is gone, however long it terminates", func(t *testing.T) {
		s := start(t, "long", claimSet(3, true))
		before, p := s.mounted(), s.all()[0]
		s.stopPod(p)
		from := len(s.history)
		s.change(func(set *kruise.CloneSet) {
			set.Spec.Template = simTemplate("web:2", "1")
			set.Spec.Replicas = ptr.To[int32](5)
		})
		for range 60 {
			for _, other := range s.all() {
				if other.Name != p.Name {
					s.kubelet(other.Name)
				}
			}
			s.showAll("")
			s.work()
			s.now = s.now.Add(time.Minute)
		}
		if got := s.look(); got.Active != 4 || got.Available != 4 || got.Updated != 4 {
			t.Fatalf("while it terminates there are %+v, want 4 that are updated%s", got, s.dump())
		}
		if got := creates(s, from); len(got) != 4+1 { // a claim and a pod each, and a revision
			t.Errorf("while it terminates these are tried: %v", got)
		}
		for len(s.events.Events) > 0 {
			if e := <-s.events.Events; strings.HasPrefix(e, "Warning") {
				t.Error(e)
			}
		}
		s.settle()
		s.finished()
		now := s.mounted()
		maps.DeleteFunc(now, func(id string, _ types.UID) bool { _, ok := before[id]; return !ok })
		if diff := cmp.Diff(before, now); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("when only the API server shows that the pod terminates", func(t *testing.T) {
		s := start(t, "unseen", claimSet(2, true))
		p := s.all()[0]
		id := p.Labels[kruise.CloneSetInstanceIDKey]
		if err := server.Delete(t.Context(), p.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		// The cache shows its end already.
		delete(s.cache, "Pod/"+p.Name)
		delete(s.pristine, "Pod/"+p.Name)
		s.tell(p, nil)
		for len(s.events.Events) > 0 {
			<-s.events.Events
		}
		from := len(s.history)
		s.reconcile()
		if got := creates(s, from); len(got) != 2 || !strings.HasSuffix(got[1], id) { // its claim, and the pod
			t.Errorf("these are tried: %v", got)
		}
		if again := s.timer.Sub(s.now); again != time.Second {
			t.Errorf("it is tried again in %s", again)
		}
		if n := len(s.events.Events); n > 0 {
			t.Errorf("%d events: %s", n, <-s.events.Events)
		}
	})
	t.Run("and deleted without reuse, also after a delete that lost a race", func(t *testing.T) {
		s := start(t, "race", claimSet(2, false))
		races := 0
		s.deny = func(o client.Object, verb string) error {
			if _, ok := o.(*corev1.PersistentVolumeClaim); ok && verb == "delete" && races < 2 {
				races++
				return apierrors.NewConflict(schema.GroupResource{Resource: "persistentvolumeclaims"}, o.GetName(), errors.New("another version"))
			}
			return nil
		}
		s.change(func(set *kruise.CloneSet) { set.Spec.Template = simTemplate("web:1", "2") }) // recreates
		s.settle()
		if races != 2 {
			t.Fatalf("%d deletes lost a race", races)
		}
		s.finished()
	})
	t.Run("by no pod that podsToDelete names", func(t *testing.T) {
		s := start(t, "named", claimSet(2, true))
		p := s.all()[0]
		other := s.all()[1].Labels[kruise.CloneSetInstanceIDKey]
		before := s.mounted()
		s.stopPod(p)
		s.change(func(set *kruise.CloneSet) { set.Spec.ScaleStrategy.PodsToDelete = []string{p.Name} })
		s.settle()
		s.finished()
		if now := s.mounted(); now[other] != before[other] {
			t.Errorf("%v, then %v", before, now)
		}
	})
}
