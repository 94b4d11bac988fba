package policybundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/engine"
)

// cluster is what outlives a manager.
type cluster struct {
	client.WithWatch
	uids int
}

func newCluster(t *testing.T, on interceptor.Funcs) *cluster {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, policy.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return &cluster{WithWatch: fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&policy.ClusterPolicyBundle{}).WithInterceptorFuncs(on).Build()}
}

// apply makes a bundle, or gives it other files and with them a generation.
func (c *cluster) apply(t *testing.T, name string, files map[string]string) {
	t.Helper()
	texts := map[string]policy.FileText{}
	for path, text := range files {
		texts[path] = policy.FileText(text)
	}
	b := &policy.ClusterPolicyBundle{}
	if err := c.Get(t.Context(), types.NamespacedName{Name: name}, b); err == nil {
		b.Spec.Files, b.Generation = texts, b.Generation+1
		if err := c.Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		return
	}
	c.uids++
	b = &policy.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{
		Name: name, Generation: 1, UID: types.UID(fmt.Sprintf("uid-%d", c.uids)), CreationTimestamp: metav1.Unix(int64(c.uids), 0),
	}}
	b.Spec.Files = texts
	if err := c.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) bundle(t *testing.T, name string) *policy.ClusterPolicyBundle {
	t.Helper()
	b := &policy.ClusterPolicyBundle{}
	if err := c.Get(t.Context(), types.NamespacedName{Name: name}, b); err != nil {
		t.Fatal(err)
	}
	return b
}

// kept are the revisions that hold files, and what they hold.
func (c *cluster) kept(t *testing.T) []appsv1.ControllerRevision {
	t.Helper()
	list := &appsv1.ControllerRevisionList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// status is what people see: the condition, and what is active.
func (c *cluster) status(t *testing.T, name string) string {
	t.Helper()
	b := c.bundle(t, name)
	ready := meta.FindStatusCondition(b.Status.Conditions, policy.PolicyBundleReady)
	if ready == nil {
		return "none"
	}
	if ready.ObservedGeneration != b.Generation || b.Status.ObservedGeneration != b.Generation || (b.Status.ActiveRevision == "") != (b.Status.LastActivationTime == nil) {
		t.Errorf("the status contradicts itself: %+v", b.Status)
	}
	active := map[bool]string{true: "active", false: "inactive"}[b.Status.ActiveRevision != ""]
	return fmt.Sprintf("%s %s %s", ready.Status, ready.Reason, active)
}

// manager is one replica of one life.
type manager struct {
	*Reconciler
	t      *testing.T
	watch  watcher
	runner *runner
	events *record.FakeRecorder
}

func newManager(t *testing.T, c *cluster, leads bool) *manager {
	t.Helper()
	w := watcher{make(chan engine.Rollback, 10)}
	l, r := newLibrary(t, engine.WithObserver(w), engine.WithGrace(20*time.Millisecond))
	elected := make(chan struct{})
	if leads {
		close(elected)
	}
	events := record.NewFakeRecorder(100)
	return &manager{&Reconciler{
		Client: c, Library: l, Keeper: Keeper{Client: c, Reader: c, Namespace: "kruise-system"}, Events: events, Leads: elected,
	}, t, w, r, events}
}

func (m *manager) load() {
	m.t.Helper()
	if err := m.Load(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
}

func (m *manager) reconcile(names ...string) {
	m.t.Helper()
	for _, name := range names {
		if _, err := m.Reconcile(m.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil {
			m.t.Fatal(err)
		}
	}
}

// told are the events since it was asked last.
func (m *manager) told() []string {
	var out []string
	for {
		select {
		case e := <-m.events.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func wantStatus(t *testing.T, c *cluster, name, want string) {
	t.Helper()
	if got := c.status(t, name); got != want {
		t.Errorf("the status is %q, want %q", got, want)
	}
}

func TestABundleFromItsFirstDayOn(t *testing.T) {
	c := newCluster(t, interceptor.Funcs{})
	m := newManager(t, c, true)
	c.apply(t, "freeze", hold("a", "One", "true"))
	m.load()
	m.reconcile("freeze", "freeze")
	wantStatus(t, c, "freeze", "True Activated active")
	if told := m.told(); len(told) != 1 || !strings.HasPrefix(told[0], "Normal Activated Revision ") {
		t.Errorf("the events are %q", told)
	}

	c.apply(t, "freeze", broken)
	m.reconcile("freeze", "freeze")
	wantStatus(t, c, "freeze", "False CompileFailed active")
	want(t, m.Library, "One")
	told := m.told()
	if len(told) != 1 || !strings.HasPrefix(told[0], "Warning CompileFailed The newest files are not enforced: a.rego:2:") || !strings.Contains(told[0], " stays active.") {
		t.Errorf("the events are %q", told)
	}

	// A restart, on the leader or not, keeps what was good.
	for _, leads := range []bool{false, true} {
		next := newManager(t, c, leads)
		next.load()
		want(t, next.Library, "One")
		next.reconcile("freeze")
		wantStatus(t, c, "freeze", "False CompileFailed active")
		want(t, next.Library, "One")
		if told := next.told(); len(told) != 0 {
			t.Errorf("the same was told again: %q", told)
		}
	}

	c.apply(t, "freeze", hold("a", "Two", "true"))
	m.reconcile("freeze")
	wantStatus(t, c, "freeze", "True Activated active")
	want(t, m.Library, "Two")
	if kept := c.kept(t); len(kept) != 1 || !strings.Contains(string(kept[0].Data.Raw), "Two") || !metav1.IsControlledBy(&kept[0], c.bundle(t, "freeze")) {
		t.Errorf("kept are %v", kept)
	}

	if err := c.Delete(t.Context(), c.bundle(t, "freeze")); err != nil {
		t.Fatal(err)
	}
	m.reconcile("freeze")
	want(t, m.Library, "")
}

func TestABundleThatWasNeverGood(t *testing.T) {
	c := newCluster(t, interceptor.Funcs{})
	c.apply(t, "freeze", broken)
	m := newManager(t, c, true)
	m.load()
	m.reconcile("freeze")
	wantStatus(t, c, "freeze", "False CompileFailed inactive")
	b := c.bundle(t, "freeze")
	if message := b.Status.Conditions[0].Message; !strings.HasSuffix(message, " (and 1 more in status.errors). Nothing of this bundle is enforced.") {
		t.Errorf("the message is %s", message)
	}
	if len(c.kept(t)) != 0 {
		t.Error("something was kept")
	}
	if err := c.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	m.reconcile("freeze")
}

func TestOnlyTheLeaderWrites(t *testing.T) {
	writes := 0
	c := newCluster(t, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			writes++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	c.apply(t, "freeze", hold("a", "One", "true"))
	c.apply(t, "bad", broken)
	m := newManager(t, c, false)
	elected := make(chan struct{})
	m.Leads = elected
	m.load()
	m.reconcile("freeze", "bad", "freeze", "bad")
	want(t, m.Library, "One")
	if writes != 0 || len(c.kept(t)) != 0 || len(m.told()) != 0 {
		t.Errorf("it wrote %d times, keeps %d", writes, len(c.kept(t)))
	}
	close(elected)
	result, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "freeze"}})
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("%v %v", result, err)
	}
	m.reconcile("bad")
	m.reconcile("freeze", "bad")
	if writes != 2 || len(c.kept(t)) != 1 || len(m.told()) != 2 {
		t.Errorf("it wrote %d times, keeps %d", writes, len(c.kept(t)))
	}
}

func TestAGateThatFails(t *testing.T) {
	c := newCluster(t, interceptor.Funcs{})
	c.apply(t, "freeze", hold("a", "One", "true"))
	m := newManager(t, c, true)
	m.runner.fail = errors.New("fork: no memory")
	if err := m.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "fork: no memory") {
		t.Errorf("got %v: nothing may be decided without the bundle", err)
	}
	if _, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "freeze"}}); err == nil {
		t.Error("it is not tried again")
	}
	wantStatus(t, c, "freeze", "none")
	m.runner.fail = nil
	m.load()
	want(t, m.Library, "One")
	m.reconcile("freeze")
	m.runner.fail = errors.New("fork: no memory")
	c.apply(t, "freeze", hold("a", "Two", "true"))
	if _, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "freeze"}}); err == nil {
		t.Error("it is not tried again")
	}
	want(t, m.Library, "One")
}

func TestOfTwoBundlesWithOnePackageTheFirstKeepsIt(t *testing.T) {
	c := newCluster(t, interceptor.Funcs{})
	m := newManager(t, c, true)
	c.apply(t, "z", hold("a", "Z", "true"))
	m.reconcile("z")
	c.apply(t, "a", hold("a", "A", "true"))
	m.reconcile("a")
	want(t, m.Library, "Z")
	next := newManager(t, c, true)
	next.load()
	want(t, next.Library, "Z")
	next.reconcile("a", "z")
	wantStatus(t, c, "a", "False CompileFailed inactive")
	if err := c.Delete(t.Context(), c.bundle(t, "z")); err != nil {
		t.Fatal(err)
	}
	next.reconcile("z", "a") // it is looked at again in time
	wantStatus(t, c, "a", "True Activated active")
	want(t, next.Library, "A")
}

func TestARollbackLastsUntilTheFilesChange(t *testing.T) {
	for name, tc := range map[string]struct {
		before map[string]string
		status string
		holds  string
	}{
		"what was good before comes back": {hold("slow", "Quick", "true"), "False RolledBack active", "Quick"},
		"nothing was good before":         {nil, "False RolledBack inactive", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, interceptor.Funcs{})
			m, other := newManager(t, c, true), newManager(t, c, false)
			if tc.before != nil {
				c.apply(t, "slow", tc.before)
				m.reconcile("slow")
			}
			c.apply(t, "slow", slow)
			m.reconcile("slow")
			other.load()
			wantStatus(t, c, "slow", "True Activated active")
			exhaust(t, m.Library, m.watch)
			m.told()
			m.reconcile("slow", "slow")
			wantStatus(t, c, "slow", tc.status)
			want(t, m.Library, tc.holds)
			if told := m.told(); len(told) != 1 || !strings.HasPrefix(told[0], "Warning RolledBack ") {
				t.Errorf("the events are %q", told)
			}

			// Nor do they come back by a restart, or stay with another replica.
			next := newManager(t, c, true)
			next.load()
			for _, replica := range []*manager{next, other} {
				replica.reconcile("slow")
				want(t, replica.Library, tc.holds)
				wantStatus(t, c, "slow", tc.status)
			}

			c.apply(t, "slow", hold("slow", "Fixed", "true"))
			next.reconcile("slow")
			wantStatus(t, c, "slow", "True Activated active")
			want(t, next.Library, "Fixed")
		})
	}
}

func TestKeep(t *testing.T) {
	c := newCluster(t, interceptor.Funcs{})
	k := Keeper{Client: c, Reader: c, Namespace: "kruise-system"}
	long := strings.Repeat("a-very-long-name-", 14) + "x"
	files := hold("a", "One", "true")
	for _, name := range []string{"freeze", long, long + "y"} {
		c.apply(t, name, files)
		for range 2 {
			if err := k.Keep(t.Context(), c.bundle(t, name), files); err != nil {
				t.Fatal(err)
			}
		}
	}
	names := map[string]bool{}
	for _, rev := range c.kept(t) {
		names[rev.Name] = true
		if len(rev.Name) > 63 || len(rev.Labels[bundleLabel]) > 63 {
			t.Errorf("%s with %v is too long", rev.Name, rev.Labels)
		}
	}
	if len(names) != 3 {
		t.Errorf("kept are %v", names)
	}

	// A bundle that was deleted and made anew does not take what the garbage
	// collector is about to delete for its own.
	old := c.bundle(t, "freeze")
	if err := c.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	c.apply(t, "freeze", files)
	anew := c.bundle(t, "freeze")
	if last, err := k.LastGood(t.Context(), anew); err != nil || last != nil {
		t.Errorf("%v %v", last, err)
	}
	if err := k.Keep(t.Context(), anew, files); err != nil {
		t.Fatal(err)
	}
	if last, err := k.LastGood(t.Context(), anew); err != nil || !maps.Equal(last, files) {
		t.Errorf("%v %v", last, err)
	}
	if err := k.Keep(t.Context(), anew, nil); err != nil {
		t.Fatal(err)
	}
	if last, err := k.LastGood(t.Context(), anew); err != nil || last != nil {
		t.Errorf("%v %v", last, err)
	}
}
