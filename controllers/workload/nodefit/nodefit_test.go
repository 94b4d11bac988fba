// SPDX-License-Identifier: Apache-2.0

package nodefit

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func node(edit ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"disk": "ssd"}}}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	for _, e := range edit {
		e(n)
	}
	return n
}

func tainted(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func selecting(op corev1.NodeSelectorOperator, values ...string) corev1.PodSpec {
	return corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: op, Values: values}}}},
	}}}}
}

func requesting(cpu string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}
}

func TestJudge(t *testing.T) {
	limited := requesting("1")
	limited.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}
	tolerant := corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}}
	for name, tc := range map[string]struct {
		spec   corev1.PodSpec
		node   *corev1.Node
		opts   []Option
		start  bool
		stay   bool
		reason string
	}{
		"a template that asks for nothing":               {node: node(), start: true, stay: true},
		"the node of the template":                       {spec: corev1.PodSpec{NodeName: "n1"}, node: node(), start: true, stay: true},
		"a node other than that of the template":         {spec: corev1.PodSpec{NodeName: "n2"}, node: node(), reason: NodeName},
		"a nodeSelector that matches":                    {spec: corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd"}}, node: node(), start: true, stay: true},
		"a nodeSelector that does not":                   {spec: corev1.PodSpec{NodeSelector: map[string]string{"disk": "hdd"}}, node: node(), reason: NodeAffinity},
		"an affinity that matches":                       {spec: selecting(corev1.NodeSelectorOpIn, "ssd"), node: node(), start: true, stay: true},
		"an affinity that does not":                      {spec: selecting(corev1.NodeSelectorOpNotIn, "ssd"), node: node(), reason: NodeAffinity},
		"a taint NoSchedule":                             {node: node(tainted("a", corev1.TaintEffectNoSchedule)), stay: true, reason: Tainted},
		"a taint NoExecute":                              {node: node(tainted("a", corev1.TaintEffectNoExecute)), reason: Tainted},
		"both taints":                                    {node: node(tainted("a", corev1.TaintEffectNoSchedule), tainted("b", corev1.TaintEffectNoExecute)), reason: Tainted},
		"a taint PreferNoSchedule":                       {node: node(tainted("a", corev1.TaintEffectPreferNoSchedule)), start: true, stay: true},
		"a taint that is tolerated":                      {spec: tolerant, node: node(tainted("a", corev1.TaintEffectNoExecute)), start: true, stay: true},
		"one of two taints that is tolerated":            {spec: tolerant, node: node(tainted("a", corev1.TaintEffectNoExecute), tainted("b", corev1.TaintEffectNoSchedule)), stay: true, reason: Tainted},
		"a cordoned node":                                {node: node(cordoned), stay: true, reason: Tainted},
		"a cordoned node, for a daemon":                  {node: node(cordoned, tainted(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)), opts: []Option{WithTolerations(DaemonTolerations(false)...)}, start: true, stay: true},
		"no network, for a daemon":                       {node: node(tainted(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)), opts: []Option{WithTolerations(DaemonTolerations(false)...)}, stay: true, reason: Tainted},
		"no network, for a daemon of the host's":         {node: node(tainted(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)), opts: []Option{WithTolerations(DaemonTolerations(true)...)}, start: true, stay: true},
		"requests that the node can allocate":            {spec: requesting("2"), node: node(), opts: []Option{WithRequests()}, start: true, stay: true},
		"requests beyond the node":                       {spec: requesting("2001m"), node: node(), opts: []Option{WithRequests()}, stay: true, reason: Insufficient},
		"requests beyond the node, without WithRequests": {spec: requesting("2001m"), node: node(), start: true, stay: true},
		"a limit alone is requested":                     {spec: limited, node: node(), opts: []Option{WithRequests()}, stay: true, reason: Insufficient},
		"a node that takes no pods":                      {node: node(func(n *corev1.Node) { delete(n.Status.Allocatable, corev1.ResourcePods) }), opts: []Option{WithRequests()}, stay: true, reason: Insufficient},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := NewRequirements(&tc.spec, tc.opts...)
			if err != nil {
				t.Fatal(err)
			}
			v := r.EvaluateNode(tc.node)
			if v.Start != tc.start || v.Stay != tc.stay || v.Reason != tc.reason || (v.Message == "") != tc.start {
				t.Errorf("got %+v", v)
			}
		})
	}
}

func TestAnAffinityThatCannotBeRead(t *testing.T) {
	spec := selecting("Near", "x")
	if _, err := NewRequirements(&spec); err == nil || !strings.Contains(err.Error(), "requiredDuringSchedulingIgnoredDuringExecution") {
		t.Errorf("got %v", err)
	}
}

func TestABoundPodFitsItsNodeAlone(t *testing.T) {
	for name, spec := range map[string]corev1.PodSpec{
		"without an affinity": {}, "with one": selecting(corev1.NodeSelectorOpIn, "ssd"),
	} {
		before := spec.DeepCopy()
		bound := spec
		BindToNode(&bound, "n1")
		r, err := NewRequirements(&bound)
		if err != nil {
			t.Fatal(err)
		}
		other := node()
		other.Name = "n2"
		if !r.EvaluateNode(node()).Start || r.EvaluateNode(other).Start {
			t.Errorf("%s: it fits n1: %+v, n2: %+v", name, r.EvaluateNode(node()), r.EvaluateNode(other))
		}
		if got := NodeOf(&corev1.Pod{Spec: bound}); got != "n1" {
			t.Errorf("%s: it is bound to %q", name, got)
		}
		BindToNode(&bound, "n2")
		if got := NodeOf(&corev1.Pod{Spec: bound}); got != "n2" {
			t.Errorf("%s: bound anew it is on %q", name, got)
		}
		if before.String() != spec.String() {
			t.Errorf("%s: the template was changed to %s", name, spec.String())
		}
	}
	if got := NodeOf(&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n3"}}); got != "n3" {
		t.Errorf("a pod that runs is on %q", got)
	}
	if got := NodeOf(&corev1.Pod{}); got != "" {
		t.Errorf("a pod that waits is on %q", got)
	}
}

func TestWhatChangesAVerdict(t *testing.T) {
	ready := func(status corev1.ConditionStatus, beat int) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.Unix(int64(beat), 0)}}
			n.ResourceVersion = string(rune('a' + beat))
		}
	}
	for name, tc := range map[string]struct {
		before, after *corev1.Node
		want          bool
	}{
		"a heartbeat": {node(ready("True", 1)), node(ready("True", 2)), false},
		"images and addresses": {node(), node(func(n *corev1.Node) {
			n.Status.Images, n.Status.Addresses = []corev1.ContainerImage{{Names: []string{"i"}}}, []corev1.NodeAddress{{Address: "a"}}
		}), false},
		"an annotation": {node(), node(func(n *corev1.Node) { n.Annotations = map[string]string{"a": "b"} }), false},
		"a condition":   {node(ready("True", 1)), node(ready("False", 1)), true},
		"a label":       {node(), node(func(n *corev1.Node) { n.Labels["a"] = "b" }), true},
		"a taint":       {node(), node(tainted("a", corev1.TaintEffectNoSchedule)), true},
		"a cordon":      {node(), node(cordoned), true},
		"what it can allocate": {node(), node(func(n *corev1.Node) {
			n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1")
		}), true},
		"the same in other words": {node(), node(func(n *corev1.Node) {
			n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("2000m")
		}), false},
	} {
		if got := NodeChanged(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
