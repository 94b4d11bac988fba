// SPDX-License-Identifier: Apache-2.0

package podprobemarker_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/nodepodprobe"
	"github.com/regatta-sh/regatta/controllers/podprobemarker"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/rules"
)

// stage is an API server with both controllers. Nodes, their agents and kubelets are the
// test's.
type stage struct {
	*testing.T
	client.Client
	kicks chan event.GenericEvent
	ns    string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	ctrl.SetLogger(klog.Background())
	env, direct := apiserver.Serve(t)
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{Scheme: direct.Scheme(), Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	e := rules.Engine(t, "")
	if err := nodes.AddIndex(t.Context(), mgr.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, Client: direct, kicks: make(chan event.GenericEvent, 1)}
	deps := reconcile.Deps{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorderFor("test"), Engine: e, PolicyChanges: s.kicks}
	for _, c := range []reconcile.Controller{
		nodepodprobe.New(deps),
		podprobemarker.New(deps, podprobemarker.WithServerless(true)),
	} {
		if err := c.SetupWithManager(t.Context(), mgr); err != nil {
			t.Fatal(err)
		}
	}
	apiserver.Run(t, mgr)
	return s
}

func (s *stage) do(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) eventually(what string, f func() string) {
	s.Helper()
	apiserver.Eventually(s, what, f)
}

func (s *stage) node(name string, labels map[string]string) {
	s.Helper()
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	s.do(s.Create(s.Context(), o))
	o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	s.do(s.Status().Update(s.Context(), o))
}

// pod makes a pod that runs on a node.
func (s *stage) pod(name, node string, edits ...func(*corev1.Pod)) *corev1.Pod {
	s.Helper()
	zero := int64(0)
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name, Labels: map[string]string{"app": "game"}}}
	o.Spec = corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: &zero, Containers: []corev1.Container{{
		Name: "server", Image: "game:1", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}},
	}}}
	for _, edit := range edits {
		edit(o)
	}
	s.do(s.Create(s.Context(), o))
	o.Status.Phase, o.Status.PodIP = corev1.PodRunning, "10.0.0.1"
	o.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.1"}}
	o.Status.Conditions = append(o.Status.Conditions, corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue})
	s.do(s.Status().Update(s.Context(), o))
	return o
}

func (s *stage) probes(node string) *v1alpha1.NodePodProbe {
	s.Helper()
	o := &v1alpha1.NodePodProbe{}
	if err := s.Get(s.Context(), client.ObjectKey{Name: node}, o); err != nil {
		s.do(client.IgnoreNotFound(err))
		return nil
	}
	return o
}

// asked waits for what a node is to probe: pod and probe.
func (s *stage) asked(node string, want ...string) {
	s.Helper()
	s.eventually("what "+node+" is asked for", func() string {
		o := s.probes(node)
		if o == nil {
			return "there is no NodePodProbe"
		}
		var got []string
		for _, p := range o.Spec.PodProbes {
			for _, probe := range p.Probes {
				got = append(got, p.Namespace+"/"+p.Name+" "+probe.Name)
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Sprintf("got %q, want %q", got, want)
		}
		return ""
	})
}

// reports does what the agent of a node does.
func (s *stage) reports(node string, pod *corev1.Pod, uid string, states ...v1alpha1.ContainerProbeState) {
	s.Helper()
	o := s.probes(node)
	before := o.DeepCopy()
	now := metav1.Now().Rfc3339Copy()
	for i := range states {
		states[i].LastProbeTime, states[i].LastTransitionTime = &now, &now
	}
	o.Status.PodProbeStatuses = []v1alpha1.PodProbeStatus{{Name: pod.Name, Namespace: pod.Namespace, UID: uid, ProbeStates: states}}
	s.do(s.Status().Patch(s.Context(), o, client.MergeFrom(before)))
}

// marked waits for labels, annotations and a condition of a pod, in a line.
func (s *stage) marked(name, want string) {
	s.Helper()
	s.eventually("pod "+name, func() string {
		o := &corev1.Pod{}
		s.do(s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, o))
		var got []string
		for _, m := range []map[string]string{o.Labels, o.Annotations} {
			for _, key := range slices.Sorted(maps.Keys(m)) {
				if strings.HasPrefix(key, "game.example/") {
					got = append(got, key+"="+m[key])
				}
			}
		}
		for _, c := range o.Status.Conditions {
			if strings.HasPrefix(string(c.Type), "game.example/") {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Message)))
			}
		}
		if text := strings.Join(got, ", "); text != want {
			return fmt.Sprintf("got %q, want %q", text, want)
		}
		return ""
	})
}

func (s *stage) marker(name string, edits ...func(*v1alpha1.PodProbeMarker)) *v1alpha1.PodProbeMarker {
	s.Helper()
	o := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}
	o.Spec.Probes = []v1alpha1.PodContainerProbe{{Name: "idle", ContainerName: "server", PodConditionType: "game.example/Idle", MarkerPolicy: []v1alpha1.ProbeMarkerPolicy{
		{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"game.example/players": "false"}},
		{State: v1alpha1.ProbeFailed, Labels: map[string]string{"game.example/players": "true"}, Annotations: map[string]string{"game.example/cost": "100"}},
	}}}
	o.Spec.Probes[0].Probe.Exec = &corev1.ExecAction{Command: []string{"/idle.sh"}}
	for _, edit := range edits {
		edit(o)
	}
	s.do(s.Create(s.Context(), o))
	return o
}

func (s *stage) status(name string, generation, matched int64) {
	s.Helper()
	s.eventually("the status of "+name, func() string {
		o := &v1alpha1.PodProbeMarker{}
		s.do(s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, o))
		if o.Status.ObservedGeneration != generation || o.Status.MatchedPods != matched || !slices.Contains(o.Finalizers, kruise.NodePodProbeCleanupFinalizer) {
			return fmt.Sprintf("%+v, finalizers %v", o.Status, o.Finalizers)
		}
		return ""
	})
}

func TestTheControllers(t *testing.T) {
	s := newStage(t)
	s.node("n1", nil)
	s.node("cloud", map[string]string{kruise.ServerlessNodeKey: kruise.ServerlessNodeValue})
	run := func(ns, name string, f func(s *stage)) {
		t.Run(name, func(t *testing.T) {
			in := *s
			in.T, in.ns = t, ns
			in.do(in.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
			f(&in)
			in.do(in.DeleteAllOf(t.Context(), &v1alpha1.PodProbeMarker{}, client.InNamespace(ns)))
			in.asked("n1")
		})
	}
	s.asked("n1")

	run("marks", "a result marks a pod, and the next one takes the marks back", func(s *stage) {
		pod := s.pod("game-1", "n1")
		s.marker("game")
		s.asked("n1", "marks/game-1 game#idle")
		s.status("game", 1, 1)
		s.reports("n1", pod, string(pod.UID), v1alpha1.ContainerProbeState{Name: "game#idle", State: v1alpha1.ProbeFailed, Message: "two players"})
		s.marked("game-1", "game.example/players=true, game.example/cost=100, game.example/Idle False two players")
		s.reports("n1", pod, string(pod.UID), v1alpha1.ContainerProbeState{Name: "game#idle", State: v1alpha1.ProbeSucceeded})
		s.marked("game-1", "game.example/players=false, game.example/Idle True")
		s.reports("n1", pod, string(pod.UID), v1alpha1.ContainerProbeState{Name: "game#idle", State: v1alpha1.ProbeUnknown})
		s.marked("game-1", "game.example/Idle Unknown")
	})
	run("uid", "a result of another pod of the same name is none", func(s *stage) {
		pod := s.pod("game-1", "n1")
		s.marker("game")
		s.asked("n1", "uid/game-1 game#idle")
		s.reports("n1", pod, "another", v1alpha1.ContainerProbeState{Name: "game#idle", State: v1alpha1.ProbeSucceeded})
		time.Sleep(500 * time.Millisecond)
		s.marked("game-1", "")
	})
	run("changes", "a probe that is taken out of a marker is not run any more, and one that differs is", func(s *stage) {
		s.pod("game-1", "n1")
		m := s.marker("game", func(m *v1alpha1.PodProbeMarker) {
			web := v1alpha1.PodContainerProbe{Name: "web", ContainerName: "server", PodConditionType: "game.example/Web"}
			web.Probe.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromString("web")}
			none := v1alpha1.PodContainerProbe{Name: "none", ContainerName: "server", PodConditionType: "game.example/None"}
			none.Probe.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromString("missing")}
			other := v1alpha1.PodContainerProbe{Name: "other", ContainerName: "missing", PodConditionType: "game.example/Other"}
			other.Probe.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}
			m.Spec.Probes = append(m.Spec.Probes, web, none, other)
		})
		s.asked("n1", "changes/game-1 game#idle", "changes/game-1 game#web")
		if got := s.probes("n1").Spec.PodProbes[0]; got.Probes[1].Probe.TCPSocket.Port != intstr.FromInt32(8080) || got.IP != "10.0.0.1" {
			s.Errorf("got %+v", got)
		}
		s.status("game", 1, 1)
		s.do(s.Get(s.Context(), client.ObjectKeyFromObject(m), m))
		m.Spec.Probes = m.Spec.Probes[1:2]
		s.do(s.Update(s.Context(), m))
		s.asked("n1", "changes/game-1 game#web")
		s.status("game", 2, 1)
	})
	run("ends", "a marker that is deleted takes its probes along and no other ones", func(s *stage) {
		s.pod("game-1", "n1")
		m := s.marker("game")
		s.marker("big-game") // its name contains that of the other
		s.asked("n1", "ends/game-1 big-game#idle", "ends/game-1 game#idle")
		s.status("game", 1, 1)
		s.do(s.Delete(s.Context(), m))
		s.asked("n1", "ends/game-1 big-game#idle")
		s.eventually("the marker", func() string {
			if err := s.Get(s.Context(), client.ObjectKeyFromObject(m), m); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("it is still there: %v, %v", m.Finalizers, err)
			}
			return ""
		})
	})
	run("leaves", "a pod that leaves the selector or goes is probed no more", func(s *stage) {
		one, two := s.pod("game-1", "n1"), s.pod("game-2", "n1")
		s.marker("game")
		s.asked("n1", "leaves/game-1 game#idle", "leaves/game-2 game#idle")
		s.status("game", 1, 2)
		s.do(s.Patch(s.Context(), one, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"app":"other"}}}`))))
		s.asked("n1", "leaves/game-2 game#idle")
		s.do(s.Delete(s.Context(), two))
		s.asked("n1")
		s.status("game", 1, 0)
	})
	run("cloud", "a serverless pod is marked by its own condition", func(s *stage) {
		pod := s.pod("game-1", "cloud", func(p *corev1.Pod) {
			p.Labels["app"] = "other" // the list counts
			p.Annotations = map[string]string{kruise.PodProbeMarkerListKey: "game"}
		})
		s.marker("game")
		s.status("game", 1, 1)
		idle := func(status corev1.ConditionStatus) {
			s.do(s.Get(s.Context(), client.ObjectKeyFromObject(pod), pod))
			before := pod.DeepCopy()
			pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == "game.example/Idle" })
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "game.example/Idle", Status: status})
			s.do(s.Status().Patch(s.Context(), pod, client.MergeFrom(before)))
		}
		idle(corev1.ConditionFalse)
		s.marked("game-1", "game.example/players=true, game.example/cost=100, game.example/Idle False")
		idle(corev1.ConditionTrue)
		s.marked("game-1", "game.example/players=false, game.example/Idle True")
		if s.probes("cloud") != nil {
			s.Error("the serverless node has a NodePodProbe")
		}
	})
	t.Run("a node that is gone takes its NodePodProbe along", func(t *testing.T) {
		s.node("n2", nil)
		s.asked("n2")
		s.do(s.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}))
		s.eventually("the NodePodProbe", func() string {
			if s.probes("n2") != nil {
				return "it is still there"
			}
			return ""
		})
	})
}
