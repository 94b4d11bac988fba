// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/engine/decision"
)

func TestWhyThereIsNoAnswer(t *testing.T) {
	of := func(kind, apiVersion string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}
		if kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, APIVersion: apiVersion, Name: "web", Controller: ptr.To(true)}}
		}
		if change != nil {
			change(p)
		}
		return p
	}
	none := func(*corev1.Pod) {}
	tests := []struct {
		name string
		pod  *corev1.Pod
		want string
	}{
		{"the pod does not exist", nil, "there is no pod web-1 in namespace shop"},
		{"it has no owner", of("", "", none), "pod shop/web-1 belongs to no workload"},
		{"something else owns it", of("ReplicaSet", "apps/v1", none), "belongs to ReplicaSet web, and policies decide only when pods of CloneSets, StatefulSets or DaemonSets are updated"},
		{"a CloneSet of another group owns it", of("CloneSet", "example.com/v1", none), "belongs to CloneSet web, and policies decide only"},
		{"it is being deleted", of("CloneSet", "apps.kruise.io/v1alpha1", func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.NewTime(time.Unix(0, 0))), []string{"x"}
		}), "is being deleted until 1970-01-01T00:00:00Z"},
		{"it has ended", of("CloneSet", "apps.kruise.io/v1beta1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), "has ended (Failed)"},
		{"nothing is wrong with it", of("CloneSet", "apps.kruise.io/v1beta1", none), ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var objects []runtime.Object
			if tc.pod != nil {
				objects = append(objects, tc.pod)
			}
			l := lookup{pods: fake.NewClientset(objects...).CoreV1()}
			check(t, l.objectProblem(t.Context(), target.Target{Kind: target.Pod, Namespace: "shop", Name: "web-1"}), tc.want)
		})
	}
}

func TestWhyThereIsNoAnswerOfACloneSet(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := kruise.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	set := &kruise.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Status:     kruise.CloneSetStatus{Conditions: []kruise.CloneSetCondition{{Type: "FailedScale"}}},
	}
	l := lookup{objects: dynamicfake.NewSimpleDynamicClient(scheme, set)}
	check(t, l.objectProblem(t.Context(), target.Target{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web"}), "")
	check(t, l.objectProblem(t.Context(), target.Target{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "gone"}), "there is no CloneSet gone in namespace shop")
	if c := l.readConditions(t.Context(), decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"}); len(c) != 1 || c[0].Type != "FailedScale" {
		t.Errorf("conditions %v", c)
	}
	if c := l.readConditions(t.Context(), decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web"}); len(c) != 1 {
		t.Errorf("with the group it has the conditions %v", c)
	}
	if c := l.readConditions(t.Context(), decision.Subject{Group: "apps", Kind: "CloneSet", Namespace: "shop", Name: "web"}); c != nil {
		t.Errorf("one of another group has the conditions %v", c)
	}
	if c := l.readConditions(t.Context(), decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "gone"}); c != nil {
		t.Errorf("conditions %v", c)
	}
}

func check(t *testing.T, got error, want string) {
	t.Helper()
	if (got == nil) != (want == "") || (got != nil && !strings.Contains(got.Error(), want)) {
		t.Errorf("got %v, want %q", got, want)
	}
}

func TestWrongUse(t *testing.T) {
	tests := []struct{ name, args, want string }{
		{"nothing to tell about", "", "tell what it is about: either an object, such as pod/NAME, or --request or --user-name"},
		{"an object and a request", "pod/web-1 --request r1", "tell what it is about"},
		{"a form of words that names nothing", "web-1", `"web-1" is not enough; want pod/NAME or clone/NAME`},
		{"a form that is not there", "pod/web-1 -o xml", `it is one of text, json, yaml`},
		{"an endpoint that would be shown credentials in clear", "pod/web-1 --endpoint http://x:1 --server https://127.0.0.1:1", "want https://HOST:PORT"},
		{"a fact without a value", "pod/web-1 --if update", "--if: \"update\": there is no value; want FACT=VALUE"},
		{"facts of all requests of a user", "--user-name bob --if update=1", "--if is about one answer"},
		{"as another user", "pod/web-1 --as bob", "unknown flag: --as"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			cmd := NewCommand()
			cmd.SetArgs(strings.Fields(tc.args))
			cmd.SetOut(&bytes.Buffer{})
			cmd.SetErr(&bytes.Buffer{})
			check(t, cmd.ExecuteContext(t.Context()), tc.want)
		})
	}
}
