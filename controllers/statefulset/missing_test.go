// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

func limits(update, scale int32) func(*kruise.StatefulSet) {
	return func(set *kruise.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(update))
		set.Spec.ScaleStrategy = &kruise.StatefulSetScaleStrategy{MaxUnavailable: ptr.To(intstr.FromInt32(scale))}
	}
}

// Pods that wait for a pod that never becomes ready do not keep an update from replacing it.
func TestAnUpdateRepairsWhatMissingPodsWaitFor(t *testing.T) {
	e := testEngine(t)
	for name, tc := range map[string]struct {
		edit      func(*kruise.StatefulSet)
		made, did string
	}{
		"OrderedReady": {
			edit: func(set *kruise.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement },
			made: "+db-0=db:1", did: "-db-0 +db-0=db:2 +db-1=db:2 +db-2=db:2 +db-3=db:2",
		},
		"Parallel within scaleStrategy.maxUnavailable": {
			edit: limits(1, 2), made: "+db-0=db:1 +db-1=db:1",
			did: "-db-1 +db-1=db:2 +db-2=db:2 +db-3=db:2 -db-0 +db-0=db:2",
		},
		"OrderedReady, in place": {
			edit: func(set *kruise.StatefulSet) {
				set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
				set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = kruise.InPlaceIfPossiblePodUpdatePolicyType
			},
			made: "+db-0=db:1", did: "+db-1=db:2 +db-2=db:2 +db-3=db:2",
		},
		"OrderedReady, below the partition": {
			edit: func(set *kruise.StatefulSet) {
				set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
				set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](1)
			},
			made: "+db-0=db:1", did: "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, e, Gates{}, testSet(4, tc.edit))
			w.broken["db:1"] = true
			w.settle()
			if got := w.did(); got != tc.made {
				t.Fatalf("first it did %s, want %s", got, tc.made)
			}
			w.change(image("2"))
			w.settle()
			if got := w.did(); got != tc.did {
				t.Errorf("then it did %s, want %s", got, tc.did)
			}
		})
	}
}

// While pods that were tried cannot be created, an update takes no more of the others than
// maxUnavailable leaves room for, though these are not ready.
func TestPodsThatCannotBeCreatedUseUpMaxUnavailable(t *testing.T) {
	s := newLife(t, testEngine(t), testSet(3, nil))
	s.RunUntilStable()
	for _, p := range s.ListPods() {
		s.SetReady(p, false)
	}
	s.change(image("2"))
	s.refuse(func(name string) bool { return name == "db-2" })
	s.pass("db:1")
	if got := s.pods(); got != "db-0=db:1 db-1=db:1" {
		t.Errorf("there are %q%s", got, s.DescribeState())
	}
}

// refuse has the API server refuse new pods by their names.
func (s *life) refuse(which func(name string) bool) {
	s.Deny = func(o client.Object, what string) error {
		if _, ok := o.(*corev1.Pod); ok && what == "create" && which(o.GetName()) {
			return errors.New("exceeded quota")
		}
		return s.judge(o, what)
	}
}

// Whatever fails while there is no pod at all, each one that comes back has the revision that
// the partition gives it.
func TestThePartitionOutlivesAllPods(t *testing.T) {
	e := testEngine(t)
	for name, tc := range map[string]struct {
		edit    func(*kruise.StatefulSet)
		refused string
	}{
		"one create fails":                  {nil, "db-0"},
		"those of the revision before fail": {nil, "db-0 db-1"},
		"all fail":                          {nil, "db-0 db-1 db-2"},
		"OrderedReady": {
			func(set *kruise.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement }, "db-0",
		},
		"unordered": {
			func(set *kruise.StatefulSet) {
				set.Spec.UpdateStrategy.RollingUpdate.UnorderedUpdate = &kruise.UnorderedUpdateStrategy{}
			}, "db-0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLife(t, e, testSet(3, tc.edit))
			s.RunUntilStable()
			s.change(func(set *kruise.StatefulSet) {
				image("2")(set)
				set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](2)
			})
			s.RunUntilStable()
			want := "db-0=db:1 db-1=db:1 db-2=db:2"
			if got := s.pods(); got != want {
				t.Fatalf("before there are %q, want %q%s", got, want, s.DescribeState())
			}
			s.refuse(func(name string) bool { return slices.Contains(strings.Fields(tc.refused), name) })
			for _, p := range s.ListPods() {
				s.Delete(p)
			}
			s.pass("")
			s.refuse(func(string) bool { return false })
			s.RunUntilStable()
			if got := s.pods(); got != want {
				t.Errorf("in the end there are %q, want %q%s", got, want, s.DescribeState())
			}
		})
	}
}

// An update deletes no more available pods than can be created again at once: while
// scaleStrategy.maxUnavailable is used up, none.
func TestAnUpdateTakesWhatScalingCanBringBack(t *testing.T) {
	e := testEngine(t)
	for name, tc := range map[string]struct {
		policy kruise.PodUpdatePolicyType
		change func(*kruise.StatefulSet)
		sick   string // a pod that is not ready
		most   int    // ordinals without a pod
		want   string
	}{
		"which is one at a time": {
			policy: "ReCreate", change: image("2"), most: 1, want: "db:2 db:2 db:2 db:2",
		},
		"which is none beside a pod that is not available, and that the partition keeps": {
			policy: "ReCreate", sick: "db-0", want: "db:1 db:1 db:1 db:1",
			change: func(set *kruise.StatefulSet) {
				image("2")(set)
				set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](1)
			},
		},
		"where pods cannot be changed in place": {
			policy: "InPlaceIfPossible", most: 1, want: "db:2 db:2 db:2 db:2",
			change: func(set *kruise.StatefulSet) {
				image("2")(set)
				set.Spec.Template.Spec.Containers[0].Command = []string{"serve"}
			},
		},
		"but in place as many as maxUnavailable says": {
			policy: "InPlaceIfPossible", change: image("2"), sick: "db-0", want: "db:2 db:2 db:2 db:2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, e, Gates{}, testSet(4, func(set *kruise.StatefulSet) {
				limits(3, 1)(set)
				set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = tc.policy
			}))
			w.settle()
			if tc.sick != "" {
				w.sick(tc.sick)
			}
			w.change(tc.change)
			most := 0
			for range 30 {
				w.reconcile()
				most = max(most, 4-len(w.pods()))
				w.kubelet()
				if p := w.pods()[tc.sick]; p != nil && p.UID == w.sickly {
					w.sick(tc.sick)
				}
				w.now = w.now.Add(time.Second)
			}
			var images []string
			pods := w.pods()
			for _, name := range []string{"db-0", "db-1", "db-2", "db-3"} {
				if p := pods[name]; p != nil {
					images = append(images, p.Spec.Containers[0].Image)
				}
			}
			if got := strings.Join(images, " "); got != tc.want || most > tc.most {
				t.Errorf("in the end there are %s, want %s; %d ordinals were without a pod at once, want %d", got, tc.want, most, tc.most)
			}
		})
	}
}

// A pod that is not ready stays where a pod before it, which the partition keeps, uses up scaleStrategy.maxUnavailable: it would not
// be created again.
func TestAnUpdateLeavesAnUnavailablePodThatWouldStayAway(t *testing.T) {
	e := testEngine(t)
	for name, tc := range map[string]struct {
		limit int32
		want  string
	}{
		"no room beside db-0": {1, "db-0=db:1 db-1=db:1 db-2=db:1"},
		"room beside db-0":    {2, "db-0=db:1 db-1=db:2 db-2=db:2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLife(t, e, testSet(3, func(set *kruise.StatefulSet) {
				limits(3, tc.limit)(set)
				set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](1)
			}))
			s.RunUntilStable()
			s.SetReady(s.FindPod("db-0"), false)
			s.SetReady(s.FindPod("db-2"), false)
			s.change(image("2"))
			s.pass("db:1")
			if got := s.pods(); got != tc.want {
				t.Errorf("there are %q, want %q%s", got, tc.want, s.DescribeState())
			}
		})
	}
}

// The status names the claims that cannot be made in the same order each time, so that the status comes to rest.
func TestClaimsThatCannotBeMadeAreToldOnce(t *testing.T) {
	s := newLife(t, testEngine(t), testSet(6, func(set *kruise.StatefulSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	}))
	s.RunUntilStable()
	for _, p := range s.ListPods() {
		p = p.DeepCopy()
		p.Status = corev1.PodStatus{Phase: corev1.PodPending}
		s.UpdateStatus(p)
	}
	for _, c := range simulation.ListObjects[*corev1.PersistentVolumeClaim](s.Harness) {
		s.DropClaim(c)
	}
	s.Deny = func(o client.Object, what string) error {
		if _, ok := o.(*corev1.PersistentVolumeClaim); ok && what == "create" {
			return errors.New("exceeded quota: " + o.GetName())
		}
		return nil
	}
	before := len(s.ActionHistory())
	for range 10 {
		s.ShowAll(nil)
		s.ReconcileIfDue()
		s.Now = s.Now.Add(time.Minute)
	}
	written := 0
	for _, h := range s.ActionHistory()[before:] {
		if strings.HasPrefix(h, "patch status of StatefulSet") {
			written++
		}
	}
	if written > 2 { // what failed, and that no pod is ready
		t.Errorf("the status is written %d times%s", written, s.DescribeState())
	}
}

// sick has a pod be not ready, for as long as it is there.
func (w *world) sick(name string) {
	w.t.Helper()
	p := w.pods()[name]
	w.sickly = p.UID
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == corev1.PodReady {
			p.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	if err := w.c.Status().Update(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
}

// A restart in place is of the pods that the set wants: one that is to go is neither restarted
// nor waited for, and uses up nothing.
func TestARestartLeavesOutCondemnedPods(t *testing.T) {
	s := newLife(t, testEngine(t), testSet(3, func(set *kruise.StatefulSet) {
		hooked(set)
		set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	}))
	s.Options = []rollout.Option{rollout.WithAgents(func(context.Context, string) (bool, time.Duration, error) { return true, 0, nil })}
	s.RestartController()
	s.RunUntilStable()
	s.change(func(set *kruise.StatefulSet) { // the hook holds db-2, and db-1 waits for that
		set.Spec.Replicas = ptr.To[int32](1)
		set.Annotations = map[string]string{kruise.RestartInPlaceKey: s.Now.Add(time.Minute).UTC().Format(time.RFC3339)}
	})
	s.SetReady(s.FindPod("db-1"), false)
	s.pass("db:1")
	var restarted []string
	for _, o := range simulation.ListObjects[*kruise.ContainerRecreateRequest](s.Harness) {
		restarted = append(restarted, o.Spec.PodName)
	}
	if !slices.Equal(restarted, []string{"db-0"}) {
		t.Errorf("restarted are %v, want db-0%s", restarted, s.DescribeState())
	}
}

// Pods that wait for broken ones to be created again do not keep the update from these.
func TestAnUpdateBeginsWithBrokenPodsThatOthersWaitFor(t *testing.T) {
	e := testEngine(t)
	for name, tc := range map[string]struct {
		edit func(*kruise.StatefulSet)
		sick []string
	}{
		"all are broken":                            {limits(1, 1), []string{"db-0", "db-1", "db-2"}},
		"two may be updated at once":                {limits(2, 1), []string{"db-0", "db-1", "db-2"}},
		"available pods wait for one":               {limits(2, 1), []string{"db-0"}},
		"an available pod waits for two, unordered": {limits(3, 2), []string{"db-0", "db-1"}},
		"OrderedReady": {func(set *kruise.StatefulSet) {
			limits(1, 1)(set)
			set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
		}, []string{"db-0", "db-1", "db-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLife(t, e, testSet(3, func(set *kruise.StatefulSet) {
				tc.edit(set)
				if strings.HasSuffix(name, "unordered") {
					set.Spec.UpdateStrategy.RollingUpdate.UnorderedUpdate = &kruise.UnorderedUpdateStrategy{}
				}
			}))
			s.RunUntilStable()
			for _, name := range tc.sick {
				s.SetReady(s.FindPod(name), false)
			}
			s.change(image("2"))
			s.pass("db:1")
			if got, want := s.pods(), "db-0=db:2 db-1=db:2 db-2=db:2"; got != want {
				t.Errorf("there are %q, want %q%s", got, want, s.DescribeState())
			}
		})
	}
}
