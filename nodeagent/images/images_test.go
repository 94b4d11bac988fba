// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/cri/critest"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// world is a node with a NodeImage of its own.
type world struct {
	*testing.T
	api     client.Client
	runtime *critest.Runtime
	events  *record.FakeRecorder
	name    string
	agent   *Agent
}

// start starts an agent, as after a restart of the process.
func (w *world) start(opts ...Option) {
	ctx, stop := context.WithCancel(w.Context())
	w.Cleanup(stop)
	opts = append(opts, WithClock(time.Now, func(context.Context, time.Duration) {}))
	w.agent = New(ctx, w.api, w.api, cri.NewNode(w.runtime.Socket), w.events, opts...)
}

func (w *world) want(image string, tags ...kruise.ImageTagSpec) {
	w.Helper()
	o := &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
	for i := range tags {
		tags[i].CreatedAt = ptr.To(metav1.Now())
		if tags[i].PullPolicy == nil {
			tags[i].PullPolicy = &kruise.ImageTagPullPolicy{}
		}
		tags[i].PullPolicy.TTLSecondsAfterFinished = ptr.To[int32](60)
	}
	o.Spec.Images = map[string]kruise.ImageSpec{image: {Tags: tags}}
	if err := w.api.Create(w.Context(), o); err != nil {
		w.Fatal(err)
	}
}

func (w *world) get() *kruise.NodeImage {
	w.Helper()
	o := &kruise.NodeImage{}
	if err := w.api.Get(w.Context(), client.ObjectKey{Name: w.name}, o); err != nil {
		w.Fatal(err)
	}
	return o
}

// status is what the NodeImage says of its tags, a line each.
func (w *world) status() string {
	var out []string
	for name, image := range w.get().Status.ImageStatuses {
		for _, t := range image.Tags {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s:%s@%d %s %d%% %s", name, t.Tag, t.Version, t.Phase, t.Progress, t.Message)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// until reconciles until the status is as it should be.
func (w *world) until(what string) {
	w.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := w.agent.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: w.name}}); err != nil {
			w.Fatal(err)
		}
		got := w.status()
		if strings.HasPrefix(got, what) {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("got %q, want %q", got, what)
		}
	}
}

func TestTheAgent(t *testing.T) {
	_, api := apiserver.Serve(t)
	n := 0
	start := func(name string, f func(w *world), opts ...Option) {
		t.Run(name, func(t *testing.T) {
			n++
			w := &world{T: t, api: api, runtime: critest.Start(t, "containerd"), events: record.NewFakeRecorder(50), name: fmt.Sprintf("node-%d", n)}
			w.start(opts...)
			f(w)
		})
	}
	tag := func(name string, edits ...func(*kruise.ImageTagSpec)) kruise.ImageTagSpec {
		spec := kruise.ImageTagSpec{Tag: name, PullPolicy: &kruise.ImageTagPullPolicy{}}
		for _, edit := range edits {
			edit(&spec)
		}
		return spec
	}

	start("the condition of a feature gate that was off goes", func(w *world) {
		w.want("nginx", tag("1.20"))
		o := w.get()
		o.Status.Conditions = []metav1.Condition{{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "FeatureGateOff", LastTransitionTime: metav1.Now()}}
		if err := w.api.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		w.until("nginx:1.20@0 Succeeded 100%")
		if got := w.get().Status.Conditions; meta.FindStatusCondition(got, kruise.ConditionStalled) != nil || !meta.IsStatusConditionTrue(got, kruise.ConditionReady) {
			t.Errorf("got %v, though the gate is on", got)
		}
	})
	start("an image is pulled, once, whatever restarts", func(w *world) {
		w.want("nginx", tag("1.20"))
		w.until("nginx:1.20@0 Succeeded 100%")
		s := w.get().Status
		if s.Desired != 1 || s.Succeeded != 1 || s.Pulling != 0 || s.FirstSyncStatus == nil || s.FirstSyncStatus.Status != kruise.SyncStatusSucceeded {
			t.Errorf("got %+v", s)
		}
		if got := s.ImageStatuses["nginx"].Tags[0]; got.ImageID != "nginx@sha256:nginx:1.20" || got.StartTime == nil || got.CompletionTime == nil {
			t.Errorf("got %+v", got)
		}
		w.start()
		w.until("nginx:1.20@0 Succeeded 100%")
		if got := w.runtime.RecordedCalls(); !slices.Equal(got, []string{`pull nginx:1.20 as ""`}) {
			t.Errorf("the runtime was asked for %q", got)
		}
		if event := <-w.events.Events; !strings.HasPrefix(event, "Normal PullImageSucceed Image nginx:1.20, ecalpsedTime ") {
			t.Errorf("got %q", event)
		}
	})

	start("another version is pulled again", func(w *world) {
		w.want("nginx", tag("1.20"))
		w.until("nginx:1.20@0 Succeeded")
		o := w.get()
		o.Spec.Images["nginx"].Tags[0].Version = 1
		if err := api.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		w.until("nginx:1.20@1 Succeeded")
		if got := w.runtime.RecordedCalls(); len(got) != 2 {
			t.Errorf("the runtime was asked for %q", got)
		}
	})

	start("an image that the node has is not pulled, if that is said", func(w *world) {
		w.runtime.AddImage("sha256:1", "nginx:1.20")
		w.want("nginx", tag("1.20", func(s *kruise.ImageTagSpec) { s.ImagePullPolicy = kruise.PullIfNotPresent }))
		w.until("nginx:1.20@0 Succeeded 100%")
		if got := w.runtime.RecordedCalls(); len(got) > 0 || w.get().Status.ImageStatuses["nginx"].Tags[0].ImageID != "nginx@sha256:1" {
			t.Errorf("the runtime was asked for %q", got)
		}
	})

	start("a digest is pulled as one", func(w *world) {
		digest := "sha256:" + strings.Repeat("a", 64)
		w.want("nginx", tag(digest))
		w.until("nginx:" + digest + "@0 Succeeded")
		if got := w.runtime.RecordedCalls(); !slices.Equal(got, []string{`pull nginx@` + digest + ` as ""`}) {
			t.Errorf("the runtime was asked for %q", got)
		}
	})

	start("a registry that fails is asked again, so many times", func(w *world) {
		w.runtime.OnPull = func(context.Context, *runtimev1.PullImageRequest) error {
			return status.Error(codes.Unknown, "429 Too Many Requests")
		}
		w.want("nginx", tag("1.20", func(s *kruise.ImageTagSpec) { s.PullPolicy.BackoffLimit = ptr.To[int32](2) }))
		w.until("nginx:1.20@0 Failed 0% pulling image nginx:1.20: rpc error: code = Unknown desc = 429 Too Many Requests")
		if got := w.runtime.RecordedCalls(); len(got) != 3 {
			t.Errorf("the runtime was asked for %q", got)
		}
		if event := <-w.events.Events; !strings.HasPrefix(event, "Warning PullImageFailed Failed to pull image nginx:1.20 on node "+w.name+" for ") {
			t.Errorf("got %q", event)
		}
	})

	start("a registry that hangs is left at the timeout and at the deadline", func(w *world) {
		w.runtime.OnPull = func(ctx context.Context, _ *runtimev1.PullImageRequest) error { <-ctx.Done(); return ctx.Err() }
		w.want("nginx",
			tag("late", func(s *kruise.ImageTagSpec) { s.PullPolicy.ActiveDeadlineSeconds = ptr.To[int64](1) }),
			tag("slow", func(s *kruise.ImageTagSpec) {
				s.PullPolicy.TimeoutSeconds, s.PullPolicy.BackoffLimit = ptr.To[int32](1), ptr.To[int32](0)
			}))
		w.until("nginx:late@0 Failed 0% pulling exceeds the activeDeadlineSeconds: ")
		if got := w.status(); !strings.Contains(got, "nginx:slow@0 ") {
			t.Errorf("got %q", got)
		}
	})

	start("one at a time waits for the other", func(w *world) {
		w.start(WithWorkers(1))
		going := make(chan struct{})
		w.runtime.OnPull = func(ctx context.Context, _ *runtimev1.PullImageRequest) error {
			select {
			case <-going:
			case <-ctx.Done():
			}
			return nil
		}
		w.want("nginx", tag("a"), tag("b"))
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			w.until("nginx:a@0 ")
			if s := w.get().Status; s.Pulling == 1 && s.Waiting == 1 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("got %q", w.status())
			}
		}
		close(going)
		w.until("nginx:a@0 Succeeded 100%; nginx:b@0 Succeeded 100%")
	})

	start("what is not wanted any more is ended", func(w *world) {
		ended := make(chan struct{})
		w.runtime.OnPull = func(ctx context.Context, _ *runtimev1.PullImageRequest) error {
			<-ctx.Done()
			close(ended)
			return ctx.Err()
		}
		w.want("nginx", tag("1.20"))
		w.until("nginx:1.20@0 Pulling")
		for len(w.runtime.RecordedCalls()) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		o := w.get()
		o.Spec.Images = nil
		if err := api.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		for w.status() != "" {
			w.until("")
		}
		<-ended
	})

	start("the login of a secret is tried before none", func(w *world) {
		config, err := json.Marshal(map[string]any{"auths": map[string]any{"registry.example.com": map[string]any{"username": "ann", "password": "x"}, "other.example.com": map[string]any{"username": "bob", "password": "x"}}})
		if err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "login"}, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: config}}
		if err := api.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		w.runtime.OnPull = func(_ context.Context, q *runtimev1.PullImageRequest) error {
			if q.GetAuth().GetUsername() != "" {
				return status.Error(codes.Unknown, "401 Unauthorized")
			}
			return nil
		}
		w.want("registry.example.com/shop", tag("1"))
		o := w.get()
		image := o.Spec.Images["registry.example.com/shop"]
		image.PullSecrets = []kruise.ReferenceObject{{Namespace: "default", Name: "none"}, {Namespace: "default", Name: "login"}}
		o.Spec.Images["registry.example.com/shop"] = image
		if err := api.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		w.until("registry.example.com/shop:1@0 Succeeded")
		if got := w.runtime.RecordedCalls(); !slices.Equal(got, []string{`pull registry.example.com/shop:1 as "ann"`, `pull registry.example.com/shop:1 as ""`}) {
			t.Errorf("the runtime was asked for %q", got)
		}
	})

	start("each login that is for the registry is tried, of any secret", func(w *world) {
		for i, auths := range []string{`{"index.docker.io":{"username":"cid","password":"x"}}`, `{"docker.io":{"username":"ann","password":"x"},"docker.io/shop":{"username":"bob","password":"x"}}`} {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("hub-", i)}, Type: corev1.SecretTypeDockerConfigJson}
			secret.Data = map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":` + auths + `}`)}
			if err := api.Create(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		}
		w.runtime.OnPull = func(_ context.Context, q *runtimev1.PullImageRequest) error {
			if q.GetAuth().GetUsername() != "cid" {
				return status.Error(codes.Unknown, "401 Unauthorized")
			}
			return nil
		}
		w.want("shop/web", tag("1"))
		o := w.get()
		image := o.Spec.Images["shop/web"]
		image.PullSecrets = []kruise.ReferenceObject{{Namespace: "default", Name: "hub-0"}, {Namespace: "default", Name: "hub-1"}}
		o.Spec.Images["shop/web"] = image
		if err := api.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		w.until("shop/web:1@0 Succeeded")
		if got := w.runtime.RecordedCalls(); !slices.Equal(got, []string{`pull shop/web:1 as "bob"`, `pull shop/web:1 as "ann"`, `pull shop/web:1 as "cid"`}) {
			t.Errorf("the runtime was asked for %q", got)
		}
	})

	start("what a runtime says of a login is left out", func(w *world) {
		for name, entry := range map[string]string{
			"said-0": `{"username":"ann","password":"hunter2"}`, "said-1": `{"identitytoken":"token-of-ann"}`, "said-2": `{"registrytoken":"other-token"}`,
			"said-3": `{"auth":"` + base64.StdEncoding.EncodeToString([]byte("bob:swordfish")) + `"}`,
		} {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Type: corev1.SecretTypeDockercfg}
			secret.Data = map[string][]byte{corev1.DockerConfigKey: []byte(`{"docker.io":` + entry + `}`)}
			if err := api.Create(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		}
		w.runtime.OnPull = func(_ context.Context, r *runtimev1.PullImageRequest) error {
			a := r.GetAuth()
			said := base64.StdEncoding.EncodeToString([]byte(a.GetUsername() + ":" + a.GetPassword()))
			return status.Errorf(codes.Unknown, "401 Unauthorized for %s %s %s %s", a.GetPassword(), a.GetIdentityToken(), a.GetRegistryToken(), said)
		}
		w.want("shop/said", tag("1", func(s *kruise.ImageTagSpec) { s.PullPolicy.BackoffLimit = ptr.To[int32](0) }))
		o := w.get()
		image := o.Spec.Images["shop/said"]
		for i := range 4 {
			image.PullSecrets = append(image.PullSecrets, kruise.ReferenceObject{Namespace: "default", Name: fmt.Sprintf("said-%d", i)})
		}
		o.Spec.Images["shop/said"] = image
		if err := api.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		w.until("shop/said:1@0 Failed 0% pulling image shop/said:1: ")
		texts := w.status() + <-w.events.Events
		for _, text := range []string{"hunter2", "token-of-ann", "other-token", "swordfish", base64.StdEncoding.EncodeToString([]byte("ann:hunter2"))} {
			if strings.Contains(texts, text) {
				t.Errorf("%q has %q", texts, text)
			}
		}
		if !strings.Contains(texts, "401 Unauthorized for    Og==") { // without a login
			t.Errorf("got %q", texts)
		}
	})

	start("a pull that runs goes on by an edit of its policy", func(w *world) {
		w.runtime.OnPull = func(ctx context.Context, _ *runtimev1.PullImageRequest) error { <-ctx.Done(); return ctx.Err() }
		w.want("nginx", tag("1.20", func(s *kruise.ImageTagSpec) { s.PullPolicy.BackoffLimit = ptr.To[int32](5) }))
		w.until("nginx:1.20@0 Pulling")
		o := w.get()
		policy := o.Spec.Images["nginx"].Tags[0].PullPolicy
		policy.TimeoutSeconds, policy.BackoffLimit = ptr.To[int32](1), ptr.To[int32](0)
		if err := api.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		w.until("nginx:1.20@0 Failed 0% the attempt exceeds the timeoutSeconds: pulling image nginx:1.20: ")
		if got := w.runtime.RecordedCalls(); len(got) != 1 {
			t.Errorf("the runtime was asked for %q", got)
		}
	})

	start("the logins of the node are tried before none, and their faults are reported", func(w *world) {
		w.start(WithCredentials(func(_ context.Context, image string) ([]*cri.Login, error) {
			return []*cri.Login{{Username: "node of " + image}}, errors.New("another plugin is broken")
		}))
		w.runtime.OnPull = func(context.Context, *runtimev1.PullImageRequest) error {
			return status.Error(codes.Unknown, "401 Unauthorized")
		}
		w.want("nginx", tag("1.20", func(s *kruise.ImageTagSpec) { s.PullPolicy.BackoffLimit = ptr.To[int32](0) }))
		w.until("nginx:1.20@0 Failed 0% another plugin is broken")
		if got := w.runtime.RecordedCalls(); !slices.Equal(got, []string{`pull nginx:1.20 as "node of nginx"`, `pull nginx:1.20 as ""`}) {
			t.Errorf("the runtime was asked to %q", got)
		}
	})

	start("a node that is to have no image says that it has none", func(w *world) {
		if err := api.Create(t.Context(), &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: w.name}}); err != nil {
			t.Fatal(err)
		}
		w.until("")
		if s := w.get().Status; s.Desired != 0 || s.FirstSyncStatus == nil {
			t.Errorf("got %+v", s)
		}
	})

	start("a node without a runtime says so, and goes on when there is one", func(w *world) {
		w.runtime.StopServer()
		w.start()
		w.want("nginx", tag("1.20", func(s *kruise.ImageTagSpec) { s.PullPolicy.BackoffLimit = ptr.To[int32](1000) }))
		got, err := w.agent.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: w.name}})
		if first := w.get().Status.FirstSyncStatus; err != nil || got.RequeueAfter == 0 || first == nil || first.Status != kruise.SyncStatusFailed || !strings.Contains(first.Message, "no container runtime answers") {
			t.Fatalf("got %v, %v, %v", first, got, err)
		}
		if event := <-w.events.Events; !strings.HasPrefix(event, "Warning ContainerRuntimeMissing no container runtime answers") {
			t.Errorf("got %q", event)
		}
	})

	start("a node whose runtime serves no images says so, though it had none before", func(w *world) {
		w.runtime.StopServer()
		w.start()
		if err := api.Create(t.Context(), &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: w.name}}); err != nil {
			t.Fatal(err)
		}
		w.until("")
		<-w.events.Events // that it has none
		w.runtime.NoImages = true
		w.runtime.StartServer(t)
		w.start()
		w.until("")
		const why = "serves no images by CRI v1"
		if first := w.get().Status.FirstSyncStatus; first == nil || first.Status != kruise.SyncStatusFailed || !strings.HasSuffix(first.Message, why) {
			t.Errorf("got %v", first)
		}
		if event := <-w.events.Events; !strings.HasPrefix(event, "Warning ContainerRuntimeMissing containerd ") || !strings.HasSuffix(event, why) {
			t.Errorf("got %q", event)
		}
		w.runtime.StopServer()
		w.runtime.NoImages = false
		w.runtime.StartServer(t)
		w.start()
		w.until("")
		if first := w.get().Status.FirstSyncStatus; first == nil || first.Status != kruise.SyncStatusSucceeded || first.Message != "" {
			t.Errorf("got %v", first)
		}
	})
}
