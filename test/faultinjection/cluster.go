// SPDX-License-Identifier: Apache-2.0

package faultinjection

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/regatta-sh/regatta/controllers/api"
	"github.com/regatta-sh/regatta/test/fakeclient"
)

// store is the API server in memory. It gives objects a UID and a time, and collects garbage.
type store struct {
	client.WithWatch
	t      testing.TB
	now    func() time.Time
	scheme *runtime.Scheme

	written atomic.Bool // since the last snapshot
	last    *snapshot

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]bool
	uids  map[types.UID]string
	drawn map[string]string
	count int
}

func newStore(t testing.TB, s *Scenario, now func() time.Time) *store {
	t.Helper()
	scheme, withStatus := kindsOf(s.Groups)
	out := &store{t: t, now: now, kinds: map[schema.GroupVersionKind]bool{}, uids: map[types.UID]string{}, drawn: map[string]string{}, scheme: scheme}
	b := fakeclient.NewClientBuilder(scheme)
	if s.Applies {
		b = fake.NewClientBuilder().WithScheme(scheme)
	}
	b = b.WithStatusSubresource(withStatus...)
	if s.Build != nil {
		s.Build(b)
	}
	for _, o := range fakeclient.AddNamespaces(s.Objects...) {
		o, ok := o.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatalf("%T is no object", o)
		}
		out.completeObject(o)
		b = b.WithObjects(o)
	}
	out.WithWatch = interceptor.NewClient(b.Build(), out.countWrites())
	return out
}

// commonKinds are those of kindsOf without more groups.
var commonKinds = sync.OnceValues(func() (*runtime.Scheme, []client.Object) { return addKinds(nil) })

// kindsOf is a scheme of few groups, since the API server in memory reads all of it at each patch, with an object of each kind that has a status.
func kindsOf(more []func(*runtime.Scheme) error) (*runtime.Scheme, []client.Object) {
	if len(more) == 0 {
		return commonKinds()
	}
	return addKinds(more)
}

func addKinds(more []func(*runtime.Scheme) error) (*runtime.Scheme, []client.Object) {
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, api.AddToScheme}, more...) {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	var out []client.Object
	for kind := range scheme.AllKnownTypes() {
		o, err := scheme.New(kind)
		if object, ok := o.(client.Object); ok && err == nil && hasStatus(object) {
			out = append(out, object)
		}
	}
	return scheme, out
}

// Create creates an object as an API server does.
func (s *store) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	generated := o.GetName() == ""
	s.completeObject(o)
	if err := s.WithWatch.Create(ctx, o, opts...); err != nil {
		return err
	}
	if generated {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drawn[o.GetName()] = o.GetGenerateName() + "*"
	}
	return nil
}

// Apply applies an object as an API server does: one that was not there gets a UID.
func (s *store) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := s.WithWatch.Apply(ctx, o, opts...); err != nil {
		return err
	}
	u, ok := o.(client.Object)
	if !ok || u.GetUID() != "" {
		return nil
	}
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(u.GetObjectKind().GroupVersionKind())
	if err := s.Get(ctx, client.ObjectKeyFromObject(u), made); err != nil {
		return err
	}
	s.completeObject(made)
	return s.Update(ctx, made)
}

// completeObject gives a new object a UID and a time.
func (s *store) completeObject(o client.Object) {
	s.mu.Lock()
	s.count++
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("%s%012d", uidPrefix, s.count)))
	}
	s.mu.Unlock()
	if created := o.GetCreationTimestamp(); created.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(s.now()))
	}
	if o.GetGeneration() == 0 {
		o.SetGeneration(1)
	}
	s.noteKind(o)
}

// noteKind has the objects of a kind listed from now on.
func (s *store) noteKind(o client.Object) {
	kind, err := apiutil.GVKForObject(o, s.scheme)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds[kind] = true
	if _, ok := s.uids[o.GetUID()]; !ok && o.GetUID() != "" {
		name := o.GetName()
		if name == "" {
			name = o.GetGenerateName() + "*"
		}
		s.uids[o.GetUID()] = kind.Kind + " " + name
	}
}

// countWrites has the objects listed again after a write.
func (s *store) countWrites() interceptor.Funcs {
	wrote := func(err error) error { s.written.Store(true); return err }
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return wrote(c.Create(ctx, o, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return wrote(c.Update(ctx, o, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return wrote(c.Patch(ctx, o, p, opts...))
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return wrote(c.Apply(ctx, o, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return wrote(c.Delete(ctx, o, opts...))
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteAllOfOption) error {
			return wrote(c.DeleteAllOf(ctx, o, opts...))
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, s client.Object, opts ...client.SubResourceCreateOption) error {
			return wrote(c.SubResource(sub).Create(ctx, o, s, opts...))
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return wrote(c.SubResource(sub).Update(ctx, o, opts...))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := c.SubResource(sub).Patch(ctx, o, p, opts...); err != nil || sub != "status" {
				return wrote(err)
			}
			return wrote(patchPodMetadata(ctx, c, o, p))
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return wrote(c.SubResource(sub).Apply(ctx, o, opts...))
		},
	}
}

// patchPodMetadata changes the labels and annotations of a pod by a patch of its status, as an API server does.
func patchPodMetadata(ctx context.Context, c client.Client, o client.Object, p client.Patch) error {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	raw, err := p.Data(pod)
	if err != nil || !bytes.Contains(raw, []byte(`"labels"`)) && !bytes.Contains(raw, []byte(`"annotations"`)) {
		return nil //nolint:nilerr // the patch was made, and it can be that it is by a difference
	}
	return c.Patch(ctx, pod, client.RawPatch(p.Type(), raw))
}

// listObjects returns all objects.
func (s *store) listObjects() (out []unstructured.Unstructured) {
	s.mu.Lock()
	kinds := slices.SortedFunc(maps.Keys(s.kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	s.mu.Unlock()
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := s.List(context.Background(), list); err != nil {
			s.t.Fatal(err)
		}
		out = append(out, list.Items...)
	}
	return out
}

// collectGarbage deletes objects whose owners are gone.
func (s *store) collectGarbage() {
	if !s.written.Load() {
		return
	}
	for again := true; again; {
		again = false
		objects := s.listObjects()
		there := map[types.UID]bool{}
		for i := range objects {
			there[objects[i].GetUID()] = true
		}
		for i := range objects {
			o := &objects[i]
			owners := o.GetOwnerReferences()
			gone := len(owners) > 0 && o.GetDeletionTimestamp() == nil && !slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool {
				return there[r.UID] || s.uids[r.UID] == "" // it may be of a kind that the scenario leaves out
			})
			if gone {
				if err := client.IgnoreNotFound(s.Delete(context.Background(), o)); err != nil {
					s.t.Fatal(err)
				}
				again = true
			}
		}
	}
}

// uidPrefix is of the UIDs that the API server gives.
const uidPrefix = "00000000-0000-4000-8000-"

var (
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d| \+0000 UTC)?`)
	// volatile are the fields of metadata that differ from run to run.
	volatile = []string{"resourceVersion", "uid", "managedFields", "creationTimestamp", "generation", "selfLink"}
)

// describeState returns all objects without what differs from run to run, in order.
func (s *store) describeState(random *regexp.Regexp) []string {
	var out []string
	for _, o := range s.listObjects() {
		for _, field := range volatile {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
		raw, err := json.MarshalIndent(o.Object, "", " ")
		if err != nil {
			s.t.Fatal(err)
		}
		out = append(out, s.withoutRandom(string(raw), random))
	}
	slices.Sort(out)
	return out
}

func (s *store) withoutRandom(text string, random *regexp.Regexp) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, name := range s.uids {
		if !strings.HasPrefix(string(uid), uidPrefix) {
			continue // the scenario has it
		}
		text = strings.ReplaceAll(text, string(uid), "UID of "+name)
	}
	for name, prefix := range s.drawn {
		text = strings.ReplaceAll(text, name, prefix)
	}
	text = anyTime.ReplaceAllString(text, "TIME")
	if random != nil {
		text = random.ReplaceAllString(text, "RANDOM")
	}
	return text
}

// snapshot is the objects that exist, and those of them that a controller has events of.
type snapshot struct{ all, watched string }

func (s *store) takeSnapshot(watches map[string]Changes) snapshot {
	if !s.written.Swap(false) && s.last != nil {
		return *s.last
	}
	var all, watched strings.Builder
	for _, o := range s.listObjects() {
		unstructured.RemoveNestedField(o.Object, "metadata", "resourceVersion")
		unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
		s.writeObject(&all, &o)
		switch watches[o.GetKind()] {
		case ChangesOfSpec:
			unstructured.RemoveNestedField(o.Object, "status")
			fallthrough
		case AllChanges:
			s.writeObject(&watched, &o)
		}
	}
	s.last = &snapshot{all.String(), watched.String()}
	return *s.last
}

func (s *store) writeObject(out *strings.Builder, o *unstructured.Unstructured) {
	raw, err := json.Marshal(o.Object)
	if err != nil {
		s.t.Fatal(err)
	}
	out.Write(raw)
	out.WriteByte('\n')
}

// hasStatus reports whether objects of a type have a status.
func hasStatus(o client.Object) bool {
	return reflect.ValueOf(o).Elem().FieldByName("Status").IsValid()
}
