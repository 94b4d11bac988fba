// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/explain"
)

// answers is an asker that can fall silent.
type answers struct{ silent atomic.Bool }

func (a *answers) FetchExplanation(_ context.Context, q managers.Question) (explain.Reply, []error, error) {
	if a.silent.Load() || q.Kind != "CloneSet" || q.Name != "web" {
		return explain.Reply{}, nil, errors.New("no manager is there")
	}
	return explain.Reply{Answer: explain.Answer{Verdict: explain.Held}}, nil, nil
}

func eventually(t *testing.T, f *feed, what string, is func(snapshot) bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		s, err := f.takeSnapshot()
		if err != nil {
			t.Fatal(err)
		}
		if is(s) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %+v", what, s)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func fakes(t *testing.T) (*dynamicfake.FakeDynamicClient, *fake.Clientset) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := kruise.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1", Labels: map[string]string{"app": "web", "controller-revision-hash": "web-new"},
			OwnerReferences: []metav1.OwnerReference{{UID: "u", Controller: ptr.To(true)}},
		},
	}
	return dynamicfake.NewSimpleDynamicClient(scheme, webSet(4, 2, nil)), fake.NewClientset(pod)
}

func TestTheFeedFollowsWhatChanges(t *testing.T) {
	objects, client := fakes(t)
	a := &answers{}
	f, err := newFeed(t.Context(), client, objects, a, web())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		f.runWatches(ctx)
		close(done)
	}()
	eventually(t, f, "the pods are counted and the manager is asked", func(s snapshot) bool {
		return len(s.revisions) == 1 && s.revisions[0].newest && s.answer != nil && s.silence == nil
	})
	a.silent.Store(true)
	eventually(t, f, "the last answer stays when the manager falls silent", func(s snapshot) bool { return s.silence != nil && s.answer != nil })
	if _, err := client.CoreV1().Events("shop").Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e"}, Reason: "FailedCreate",
		InvolvedObject: corev1.ObjectReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, f, "an event is seen", func(s snapshot) bool { return len(s.events) == 1 })
	next, err := runtime.DefaultUnstructuredConverter.ToUnstructured(webSet(10, 10, nil))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: next}
	u.SetGroupVersionKind(kruise.GroupVersion.WithKind("CloneSet"))
	sets := objects.Resource(kruise.GroupVersion.WithResource("clonesets")).Namespace("shop")
	if _, err := sets.Update(ctx, u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, f, "a change of the status is seen", func(s snapshot) bool { return s.state.IsComplete() })
	if err := sets.Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, f, "that it is gone is seen", func(s snapshot) bool { return s.gone && s.state != nil })
	cancel()
	<-done
}

func TestWhatCannotBeWatchedIsTold(t *testing.T) {
	objects, client := fakes(t)
	client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("jane may not"))
	})
	f, err := newFeed(t.Context(), client, objects, &answers{}, web())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go f.runWatches(ctx)
	eventually(t, f, "the rest goes on", func(s snapshot) bool {
		return s.blind != nil && strings.Contains(s.blind.Error(), "watching its pods: ") && s.answer != nil
	})
}

func TestACloneSetThatIsNotThere(t *testing.T) {
	objects, client := fakes(t)
	_, err := newFeed(t.Context(), client, objects, &answers{}, target.Target{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "gone"})
	if err == nil || err.Error() != "there is no CloneSet gone in namespace shop" {
		t.Errorf("got %v", err)
	}
}

func TestWrongUse(t *testing.T) {
	for args, want := range map[string]string{
		"watch":            "tell what it is about: clone/NAME",
		"watch pod/web-1":  "it cannot be a Pod here; want clone/NAME",
		"watch clone/a b":  "nothing is decided about a clone/a",
		"watch clone/a -x": "unknown shorthand flag",
	} {
		t.Run(args, func(t *testing.T) {
			cmd := NewCommand(nil)
			cmd.SetArgs(strings.Fields(args))
			cmd.SetOut(&bytes.Buffer{})
			cmd.SetErr(&bytes.Buffer{})
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
