// SPDX-License-Identifier: Apache-2.0

package livenessprobe_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/livenessprobe"
	"github.com/regatta-sh/regatta/controllers/nodepodprobe"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/controllers/workload/restartrequest"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/rules"
)

// stage is an API server with the controllers of liveness probes. The node, its agent and its
// kubelet are the test's.
type stage struct {
	*testing.T
	client.Client
	agent *corev1.Pod
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
	deps := reconcile.Deps{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorderFor("test"), Engine: e}
	for _, c := range []reconcile.Controller{
		nodepodprobe.New(deps, nodepodprobe.WithLiveness(true)),
		livenessprobe.New(deps, "agents", livenessprobe.WithGrace(time.Second)),
	} {
		if err := c.SetupWithManager(t.Context(), mgr); err != nil {
			t.Fatal(err)
		}
	}
	apiserver.Run(t, mgr)
	s := &stage{T: t, Client: direct}
	for _, ns := range []string{"shop", "agents"} {
		s.do(s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	s.do(s.Create(t.Context(), node))
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	s.do(s.Status().Update(t.Context(), node))
	s.agent = s.pod("agents", "agent", nil, func(p *corev1.Pod) { p.Labels = map[string]string{"control-plane": "daemon"} })
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

// pod makes a pod that runs, with a liveness probe that was taken out of it.
func (s *stage) pod(namespace, name string, probe *corev1.Probe, edits ...func(*corev1.Pod)) *corev1.Pod {
	s.Helper()
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	o.Spec = corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "web", Image: "web:1", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}}
	if probe != nil {
		s.do(livenessprobe.Write(o, []livenessprobe.Saved{{Name: "web", LivenessProbe: probe}}))
	}
	for _, edit := range edits {
		edit(o)
	}
	s.do(s.Create(s.Context(), o))
	s.run(o, "containerd://"+name+"-1", true)
	return o
}

// run does what the kubelet does when a container runs.
func (s *stage) run(o *corev1.Pod, id string, started bool) {
	s.Helper()
	s.do(s.Get(s.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopy()
	o.Status.Phase, o.Status.PodIP, o.Status.PodIPs = corev1.PodRunning, "10.0.0.1", []corev1.PodIP{{IP: "10.0.0.1"}}
	o.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "web", ContainerID: id, Started: &started, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-time.Minute))}},
	}}
	s.do(s.Status().Patch(s.Context(), o, client.MergeFrom(before)))
	s.condition(o, corev1.PodInitialized, corev1.ConditionTrue)
	s.condition(o, corev1.PodReady, corev1.ConditionTrue)
}

func (s *stage) condition(o *corev1.Pod, t corev1.PodConditionType, status corev1.ConditionStatus) {
	s.Helper()
	s.do(s.Get(s.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopy()
	o.Status.Conditions = append(slices.DeleteFunc(o.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == t }), corev1.PodCondition{Type: t, Status: status})
	s.do(s.Status().Patch(s.Context(), o, client.StrategicMergeFrom(before)))
}

// asked waits for the names of the probes of a pod on the node.
func (s *stage) asked(pod string, want ...string) {
	s.Helper()
	s.eventually("what the node is asked for", func() string {
		o := &v1alpha1.NodePodProbe{}
		if err := s.Get(s.Context(), client.ObjectKey{Name: "n1"}, o); err != nil {
			return err.Error()
		}
		var got []string
		for _, p := range o.Spec.PodProbes {
			for _, probe := range p.Probes {
				if p.Name == pod {
					got = append(got, probe.Name)
				}
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Sprintf("got %q, want %q", got, want)
		}
		return ""
	})
}

// reports does what the agent does.
func (s *stage) reports(pod *corev1.Pod, state v1alpha1.ProbeState, at time.Time) {
	s.Helper()
	o := &v1alpha1.NodePodProbe{}
	s.do(s.Get(s.Context(), client.ObjectKey{Name: "n1"}, o))
	before := o.DeepCopy()
	o.Status.PodProbeStatuses = []v1alpha1.PodProbeStatus{{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID), ProbeStates: []v1alpha1.ContainerProbeState{{
		Name: "LivenessProbe#web", State: state, Message: "it hangs", LastProbeTime: ptr.To(metav1.NewTime(at)), LastTransitionTime: ptr.To(metav1.NewTime(at)),
	}}}}
	s.do(s.Status().Patch(s.Context(), o, client.MergeFrom(before)))
}

// requests waits for so many requests of a pod, and returns them.
func (s *stage) requests(pod *corev1.Pod, want int) []kruise.ContainerRecreateRequest {
	s.Helper()
	list := &kruise.ContainerRecreateRequestList{}
	s.eventually("requests", func() string {
		s.do(s.List(s.Context(), list, client.InNamespace("shop"), client.HasLabels{kruise.LivenessRequestKey}))
		list.Items = slices.DeleteFunc(list.Items, func(r kruise.ContainerRecreateRequest) bool { return r.Spec.PodName != pod.Name })
		if len(list.Items) != want {
			return fmt.Sprintf("there are %d, want %d", len(list.Items), want)
		}
		return ""
	})
	return list.Items
}

func TestTheControllers(t *testing.T) {
	s := newStage(t)
	tcp := func() *corev1.Probe {
		p := &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 3, TerminationGracePeriodSeconds: ptr.To[int64](7)}
		p.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromString("http")}
		return p
	}
	t.Run("a failure restarts the run that failed, once", func(t *testing.T) {
		pod := s.pod("shop", "web-1", tcp())
		s.asked("web-1", "LivenessProbe#web")
		s.reports(pod, v1alpha1.ProbeFailed, time.Now())
		r := s.requests(pod, 1)[0]
		if !strings.HasPrefix(r.Name, "web-1-liveness-") || r.Labels["crr.regatta.sh/liveness"] != "web" || *r.Spec.Strategy.TerminationGracePeriodSeconds != 7 ||
			r.Spec.Strategy.ForceRecreate || len(r.Spec.Containers) != 1 || len(r.OwnerReferences) != 1 {
			t.Errorf("got %+v", r)
		}
		s.reports(pod, v1alpha1.ProbeFailed, time.Now().Add(time.Second))
		time.Sleep(300 * time.Millisecond)
		s.requests(pod, 1)
		s.run(pod, "containerd://web-1-2", true)
		s.reports(pod, v1alpha1.ProbeFailed, time.Now().Add(2*time.Second))
		s.requests(pod, 2)
	})
	t.Run("a run that fails after its request has ended is asked to restart again", func(t *testing.T) {
		pod := s.pod("shop", "web-6", tcp())
		s.asked("web-6", "LivenessProbe#web")
		s.reports(pod, v1alpha1.ProbeFailed, time.Now())
		first := s.requests(pod, 1)[0]
		before := first.DeepCopy()
		first.Status.Phase, first.Status.CompletionTime = kruise.ContainerRecreateRequestFailed, ptr.To(metav1.NewTime(time.Now().Add(-time.Minute)))
		s.do(s.Status().Patch(t.Context(), &first, client.MergeFrom(before)))
		s.reports(pod, v1alpha1.ProbeFailed, time.Now().Add(time.Second))
		s.eventually("another request", func() string {
			again := s.requests(pod, 1)[0]
			if again.UID == first.UID || restartrequest.AttemptNumber(&again) != 2 {
				return fmt.Sprintf("it is %s with %v", again.UID, again.Annotations)
			}
			return ""
		})
	})
	t.Run("a container that is well again before it restarts stays as it is", func(t *testing.T) {
		pod := s.pod("shop", "web-2", tcp())
		s.asked("web-2", "LivenessProbe#web")
		s.reports(pod, v1alpha1.ProbeFailed, time.Now())
		s.requests(pod, 1)
		s.reports(pod, v1alpha1.ProbeSucceeded, time.Now().Add(time.Second))
		s.requests(pod, 0)
	})
	t.Run("a failure of the run before restarts nothing", func(t *testing.T) {
		pod := s.pod("shop", "web-3", tcp())
		s.asked("web-3", "LivenessProbe#web")
		s.reports(pod, v1alpha1.ProbeFailed, time.Now().Add(-time.Hour))
		time.Sleep(500 * time.Millisecond)
		s.requests(pod, 0)
		// The run before ended in the second in which this one started.
		s.do(s.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		s.reports(pod, v1alpha1.ProbeFailed, pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time)
		time.Sleep(500 * time.Millisecond)
		s.requests(pod, 0)
	})
	t.Run("nothing is probed before the startup probe has succeeded", func(t *testing.T) {
		pod := s.pod("shop", "web-4", tcp(), func(p *corev1.Pod) {
			p.Spec.Containers[0].StartupProbe = tcp()
			p.Spec.Containers[0].StartupProbe.FailureThreshold = 3
		})
		s.run(pod, "containerd://web-4-1", false)
		s.asked("web-4")
		s.run(pod, "containerd://web-4-1", true)
		s.asked("web-4", "LivenessProbe#web")
	})
	t.Run("a pod says when its node has no agent, and when it has one again", func(t *testing.T) {
		pod := s.pod("shop", "web-5", tcp())
		says := func(want string) {
			t.Helper()
			s.eventually("the condition", func() string {
				s.do(s.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
				got := ""
				for _, c := range pod.Status.Conditions {
					if c.Type == livenessprobe.ConditionType {
						got = strings.TrimSpace(string(c.Status) + " " + c.Reason + " " + c.Message)
					}
				}
				if got != want {
					return fmt.Sprintf("got %q, want %q", got, want)
				}
				return ""
			})
		}
		s.asked("web-5", "LivenessProbe#web")
		says("")
		s.condition(s.agent, corev1.PodReady, corev1.ConditionFalse)
		says("False NodeAgentMissing No node agent is ready on node n1, so the liveness probes of this pod are not run.")
		s.condition(s.agent, corev1.PodReady, corev1.ConditionTrue)
		says("True")
	})
}
