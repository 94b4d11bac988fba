// SPDX-License-Identifier: Apache-2.0

package predownload_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cloneset"
	"github.com/regatta-sh/regatta/controllers/daemonset"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/statefulset"
	"github.com/regatta-sh/regatta/controllers/workload/predownload"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/rules"
)

// world is an API server in memory with one workload web.
type world struct {
	*testing.T
	c      client.Client
	r      *rollout.Controller
	engine *engine.Engine
	events *record.FakeRecorder
	refuse error // of ImagePullJobs
}

func begin(t *testing.T, kind predownload.Kind, o client.Object, objects ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, kruise.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	e := rules.Engine(t, "")
	w := &world{T: t, engine: e, events: record.NewFakeRecorder(200)}
	b := fakeclient.NewClientBuilder(s).WithStatusSubresource(&corev1.Pod{}, &kruise.CloneSet{}, &kruise.StatefulSet{}, &kruise.DaemonSet{}).WithObjects(fakeclient.AddNamespaces(append(objects, o)...)...)
	for _, o := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}} {
		b = b.WithIndex(o, rollout.OwnerIndex, rollout.OwnerUID)
	}
	var mu sync.Mutex // pods are created in parallel
	n := 0
	w.c = b.WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if _, job := o.(*kruise.ImagePullJob); job && w.refuse != nil {
			return w.refuse
		}
		mu.Lock()
		n++
		o.SetUID(types.UID(fmt.Sprint("uid-", n)))
		mu.Unlock()
		return c.Create(ctx, o, opts...)
	}}).Build()
	w.r = rollout.New(kind, reconcile.Deps{Client: w.c, Live: w.c, Events: w.events, Engine: e}, rollout.WithAhead(predownload.NewAheadFunc(kind)))
	w.reconcile()
	w.reconcile()
	return w
}

func (w *world) reconcile() {
	w.Helper()
	if _, err := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}); err != nil {
		w.Fatal(err)
	}
}

// jobs are the ImagePullJobs, by what comes after the revision in their names.
func (w *world) jobs() map[string]*kruise.ImagePullJob {
	w.Helper()
	list := &kruise.ImagePullJobList{}
	if err := w.c.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	out := map[string]*kruise.ImagePullJob{}
	for i := range list.Items {
		name := list.Items[i].Name
		out[name[strings.LastIndex(name, "-")+1:]] = &list.Items[i]
	}
	return out
}

// marks are the marks of the newest revision.
func (w *world) marks() (out []string) {
	w.Helper()
	list := &appsv1.ControllerRevisionList{}
	if err := w.c.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	newest := slices.MaxFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	for _, key := range []string{kruise.ImagePreDownloadCreatedKey, kruise.ImagePreDownloadIgnoredKey} {
		if newest.Labels[key] == "true" {
			out = append(out, key)
		}
	}
	return out
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"team": "shop"}},
		Spec: corev1.PodSpec{
			Containers:       []corev1.Container{{Name: "main", Image: "web:1"}, {Name: "log", Image: "log:1"}},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "login"}},
		},
	}
}

func cloneSet(edit func(*kruise.CloneSet)) *kruise.CloneSet {
	set := &kruise.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "set", Generation: 1}}
	set.Spec.Replicas, set.Spec.Selector, set.Spec.Template = ptr.To[int32](5), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, template()
	set.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateCloneSetStrategy{PodUpdatePolicy: kruise.InPlaceIfPossiblePodUpdatePolicyType}
	if edit != nil {
		edit(set)
	}
	return set
}

// updated changes the image of the first container.
func (w *world) update(edit func(*corev1.PodTemplateSpec)) {
	w.Helper()
	set := &kruise.CloneSet{}
	if err := w.c.Get(w.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, set); err != nil {
		w.Fatal(err)
	}
	edit(&set.Spec.Template)
	set.Generation++
	if err := w.c.Update(w.Context(), set); err != nil {
		w.Fatal(err)
	}
	w.reconcile()
}

func newImage(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "web:2" }

func TestImagesArePulledAhead(t *testing.T) {
	kind := cloneset.New(cloneset.Gates{}, false)
	w := begin(t, kind, cloneSet(func(set *kruise.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{ImagePreDownloadParallelism: ptr.To(intstr.FromInt32(5))}
	}))
	if got := w.jobs(); len(got) > 0 {
		t.Fatalf("without an update there are %v", got)
	}
	w.update(newImage)
	jobs := w.jobs()
	job := jobs["main"]
	if len(jobs) != 1 || job == nil {
		t.Fatalf("got %v", jobs)
	}
	revision := strings.TrimSuffix(job.Name, "-main")
	s := job.Spec
	if s.Image != "web:2" || s.Parallelism.IntValue() != 5 || *s.PullPolicy.TimeoutSeconds != 300 || *s.PullPolicy.BackoffLimit != 1 ||
		*s.CompletionPolicy.TTLSecondsAfterFinished != 600 || !slices.Equal(s.PullSecrets, []string{"login"}) ||
		s.SandboxConfig.Labels["app"] != "web" || s.SandboxConfig.Annotations["team"] != "shop" {
		t.Errorf("got %+v", s)
	}
	want := metav1.LabelSelectorRequirement{Key: "controller-revision-hash", Operator: "NotIn", Values: []string{revision}}
	if x := s.PodSelector.MatchExpressions; s.PodSelector.MatchLabels["app"] != "web" || len(x) != 1 || x[0].String() != want.String() {
		t.Errorf("got %+v", s.PodSelector)
	}
	if job.Labels["controller-revision-hash"] != revision || job.Labels["app"] != "web" || job.OwnerReferences[0].UID != "set" || job.OwnerReferences[0].Kind != "CloneSet" {
		t.Errorf("got %+v", job.ObjectMeta)
	}
	if got := w.marks(); !slices.Equal(got, []string{kruise.ImagePreDownloadCreatedKey}) {
		t.Errorf("got %v", got)
	}
	if err := w.c.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if got := w.jobs(); len(got) > 0 {
		t.Errorf("once is enough: %v", got)
	}
}

func TestJobsGoWithTheRollout(t *testing.T) {
	w := begin(t, cloneset.New(cloneset.Gates{}, false), cloneSet(nil))
	w.update(newImage)
	if len(w.jobs()) != 1 {
		t.Fatal(w.jobs())
	}
	w.update(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "web:1" }) // it is taken back
	if got := w.jobs(); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

func TestWhereNothingIsPulledAhead(t *testing.T) {
	for name, tc := range map[string]struct {
		edit   func(*kruise.CloneSet)
		update func(*corev1.PodTemplateSpec)
		marks  []string
	}{
		"of three replicas": {func(set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](3) }, newImage, []string{kruise.ImagePreDownloadIgnoredKey}},
		"of pods that are recreated": {nil, func(t *corev1.PodTemplateSpec) {
			newImage(t)
			t.Spec.Containers[0].Command = []string{"x"}
		}, []string{kruise.ImagePreDownloadIgnoredKey}},
		"before enough updated pods are ready": {func(set *kruise.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{ImagePreDownloadMinUpdatedReadyPods: ptr.To[int32](1)}
		}, newImage, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, cloneset.New(cloneset.Gates{}, false), cloneSet(tc.edit))
			w.update(tc.update)
			if jobs, marks := w.jobs(), w.marks(); len(jobs) > 0 || !slices.Equal(marks, tc.marks) {
				t.Errorf("there are jobs %v and marks %v", jobs, marks)
			}
		})
	}
}

func TestAJobThatCannotBeCreatedIsToldAndTriedAgain(t *testing.T) {
	w := begin(t, cloneset.New(cloneset.Gates{}, false), cloneSet(nil))
	w.refuse = errors.New("the webhook is away")
	w.update(newImage)
	told := false
	for len(w.events.Events) > 0 {
		told = strings.HasPrefix(<-w.events.Events, "Normal FailedCreateImagePullJob failed to create ImagePullJob web-") || told
	}
	if !told || len(w.marks()) > 0 {
		t.Errorf("told is %t, marks are %v", told, w.marks())
	}
	w.refuse = nil
	w.reconcile()
	if len(w.jobs()) != 1 {
		t.Error(w.jobs())
	}
}

func TestAnAdvancedStatefulSetSaysItByAnnotations(t *testing.T) {
	set := &kruise.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "set", Generation: 1, Annotations: map[string]string{
		kruise.ImagePreDownloadParallelismKey: "3", kruise.ImagePreDownloadTimeoutSecondsKey: "60", kruise.ImagePreDownloadMinUpdatedReadyPodsKey: "25%",
	}}}
	set.Spec.Replicas, set.Spec.Selector, set.Spec.Template = ptr.To[int32](5), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, template()
	kind := statefulset.New(statefulset.Gates{})
	got := kind.PredownloadSettings(set)
	if got.Parallelism.IntValue() != 3 || *got.TimeoutSeconds != 60 || got.MinUpdatedReady != 2 || got.MaxUnavailable != 1 {
		t.Errorf("got %+v", got)
	}
	set.Annotations = map[string]string{kruise.ImagePreDownloadParallelismKey: "x", kruise.ImagePreDownloadTimeoutSecondsKey: "-1", kruise.ImagePreDownloadMinUpdatedReadyPodsKey: "y"}
	if got := kind.PredownloadSettings(set); got.Parallelism != nil || got.TimeoutSeconds != nil || got.MinUpdatedReady != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestAnAdvancedDaemonSetPullsAheadOfPodsThatAreRecreated(t *testing.T) {
	set := &kruise.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "set", Generation: 1, Annotations: map[string]string{
		kruise.ImagePreDownloadParallelismKey: "3",
	}}}
	set.Spec.Selector, set.Spec.Template = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, template()
	set.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateDaemonSet{
		Type: kruise.StandardRollingUpdateType, MaxUnavailable: ptr.To(intstr.FromInt32(1)), Partition: ptr.To(intstr.FromInt32(2)),
	}
	var nodes []client.Object
	for _, name := range []string{"a", "b"} {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	w := begin(t, daemonset.New(daemonset.Gates{}, true), set, nodes...)
	if got := w.jobs(); len(got) > 0 {
		t.Fatalf("without an update there are %v", got)
	}
	change := func(edit func(*kruise.DaemonSet)) {
		t.Helper()
		if err := w.c.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			t.Fatal(err)
		}
		edit(set)
		set.Generation++
		if err := w.c.Update(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
	}
	change(func(set *kruise.DaemonSet) { newImage(&set.Spec.Template) })
	jobs := w.jobs()
	if job := jobs["main"]; len(jobs) != 1 || job == nil || job.Spec.Image != "web:2" || job.Spec.Parallelism.IntValue() != 3 || job.OwnerReferences[0].Kind != "DaemonSet" {
		t.Fatalf("got %v", jobs)
	}
	told := false
	for len(w.events.Events) > 0 {
		told = told || strings.HasPrefix(<-w.events.Events, "Normal CreatedImagePullJob created ImagePullJob "+jobs["main"].Name+" for image: web:2")
	}
	if !told || !slices.Equal(w.marks(), []string{kruise.ImagePreDownloadCreatedKey}) {
		t.Errorf("the event was recorded: %t; marks are %v", told, w.marks())
	}
	change(func(set *kruise.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = "web:1" }) // it is taken back
	if got := w.jobs(); len(got) > 0 {
		t.Errorf("after the rollout there are %v", got)
	}
}
