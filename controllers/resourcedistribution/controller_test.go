// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/rules"
)

// world is an API server with one ResourceDistribution at a time, of namespaces whose names
// begin with its own.
type world struct {
	*testing.T
	api    client.Client
	e      *engine.Engine
	r      *Reconciler
	events *record.FakeRecorder
	now    time.Time
	name   string
}

func (w *world) do(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// namespace makes a namespace and returns its name.
func (w *world) namespace(suffix string) string {
	w.Helper()
	name := w.name + "-" + suffix
	w.do(w.api.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": w.name}}}))
	return name
}

func (w *world) distribute(resource string, targets kruise.ResourceDistributionTargets) {
	w.Helper()
	raw, err := yaml.YAMLToJSON([]byte(resource))
	w.do(err)
	d := &kruise.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
	d.Spec = kruise.ResourceDistributionSpec{Resource: runtime.RawExtension{Raw: raw}, Targets: targets}
	w.do(w.api.Create(w.Context(), d))
}

func (w *world) get() *kruise.ResourceDistribution {
	w.Helper()
	d := &kruise.ResourceDistribution{}
	w.do(w.api.Get(w.Context(), client.ObjectKey{Name: w.name}, d))
	return d
}

func (w *world) edit(f func(*kruise.ResourceDistribution)) {
	w.Helper()
	d := w.get()
	f(d)
	w.do(w.api.Update(w.Context(), d))
}

func (w *world) reconcile() (time.Duration, error) {
	w.Helper()
	got, err := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: w.name}})
	return got.RequeueAfter, err
}

// settle reconciles until nothing is left to be looked at.
func (w *world) settle() {
	w.Helper()
	for range 20 {
		after, err := w.reconcile()
		w.do(err)
		if after > time.Second {
			return
		}
	}
	w.Fatal("it never settles")
}

func (w *world) status(want string) {
	w.Helper()
	s := w.get().Status
	got := fmt.Sprintf("%d/%d/%d", s.Desired, s.Succeeded, s.Failed)
	for _, c := range s.Conditions {
		if c.Status == corev1.ConditionTrue {
			got += fmt.Sprintf(" %s %v: %s", c.Type, c.FailedNamespaces, c.Reason)
		}
	}
	if len(s.Conditions) != 6 || got != want {
		w.Errorf("got %q with %d conditions, want %q", got, len(s.Conditions), want)
	}
}

func (w *world) secret(namespace string) *corev1.Secret {
	w.Helper()
	s := &corev1.Secret{}
	if err := w.api.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: "ca"}, s); err != nil {
		w.do(client.IgnoreNotFound(err))
		return nil
	}
	return s
}

const secret = `{apiVersion: v1, kind: Secret, metadata: {name: ca, labels: {a: b}}, stringData: {key: one}}`

func included(names ...string) (t kruise.ResourceDistributionTargets) {
	for _, name := range names {
		t.IncludedNamespaces.List = append(t.IncludedNamespaces.List, kruise.ResourceDistributionNamespace{Name: name})
	}
	return t
}

// cases are run on one API server, each with a ResourceDistribution of its own.
type cases struct {
	*testing.T
	api    client.Client
	prefix string
	n      int
}

func serve(t *testing.T, prefix string) *cases {
	t.Helper()
	_, api := apiserver.Serve(t)
	return &cases{T: t, api: api, prefix: prefix}
}

// run runs a case with rules of users.
func (c *cases) run(name string, f func(w *world), modules ...string) {
	c.Run(name, func(t *testing.T) {
		c.n++
		e := rules.Engine(t, strings.Join(modules, "\n"))
		w := &world{T: t, api: c.api, e: e, events: record.NewFakeRecorder(20), now: time.Now().Truncate(time.Second), name: fmt.Sprintf("%s%d", c.prefix, c.n)}
		w.r = New(reconcile.Deps{Client: c.api, Events: w.events, Engine: e, Now: func() time.Time { return w.now }})
		f(w)
		w.do(client.IgnoreNotFound(c.api.Delete(t.Context(), &kruise.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: w.name}})))
	})
}

func TestTheController(t *testing.T) {
	run := serve(t, "d").run

	run("copies go to the namespaces that are named and selected, less those that are excluded", func(w *world) {
		a, b, c := w.namespace("a"), w.namespace("b"), w.namespace("c")
		targets := included(a, "kube-system")
		targets.NamespaceSelector.MatchLabels = map[string]string{"of": w.name}
		targets.ExcludedNamespaces.List = []kruise.ResourceDistributionNamespace{{Name: c}}
		w.distribute(secret, targets)
		w.settle()
		w.status("2/2/0")
		if w.secret(c) != nil || w.secret("kube-system") != nil {
			w.Error("there are copies where there should be none")
		}
		for _, ns := range []string{a, b} {
			s := w.secret(ns)
			if s == nil || string(s.Data["key"]) != "one" || s.Labels["a"] != "b" || s.Annotations[kruise.ResourceDistributionFromKey] != w.name {
				w.Fatalf("the copy is %v", s)
			}
			if o := metav1.GetControllerOf(s); o == nil || o.UID != w.get().UID || !*o.BlockOwnerDeletion {
				w.Errorf("it is owned by %v", s.OwnerReferences)
			}
		}
	})
	run("a change of the data reaches the copies, and what others added to their metadata stays", func(w *world) {
		a := w.namespace("a")
		w.distribute(secret, included(a))
		w.settle()
		s := w.secret(a)
		s.Labels["mine"], s.Finalizers = "yes", []string{"example.com/keep"}
		w.do(w.api.Update(w.Context(), s))
		w.edit(func(d *kruise.ResourceDistribution) {
			d.Spec.Resource.Raw = bytes.Replace(d.Spec.Resource.Raw, []byte("one"), []byte("two"), 1)
		})
		w.settle()
		if s = w.secret(a); string(s.Data["key"]) != "two" || s.Labels["mine"] != "yes" || !slices.Contains(s.Finalizers, "example.com/keep") {
			w.Errorf("the copy is %v", s)
		}
		s.Finalizers = nil
		w.do(w.api.Update(w.Context(), s))
	})
	run("a change of a label alone reaches the copies as well", func(w *world) {
		a := w.namespace("a")
		w.distribute(secret, included(a))
		w.settle()
		w.edit(func(d *kruise.ResourceDistribution) {
			d.Spec.Resource.Raw = bytes.Replace(d.Spec.Resource.Raw, []byte(`"a":"b"`), []byte(`"a":"c"`), 1)
		})
		w.settle()
		if s := w.secret(a); s.Labels["a"] != "c" {
			w.Errorf("the labels are %v", s.Labels)
		}
	})
	run("an object that another client made is left as it is", func(w *world) {
		a, b := w.namespace("a"), w.namespace("b")
		w.do(w.api.Create(w.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a, Name: "ca"}, StringData: map[string]string{"key": "theirs"}}))
		w.distribute(secret, included(a, b))
		w.settle()
		w.status("2/1/1 ConflictOccurred [" + a + "]: it is not a copy of this ResourceDistribution")
		w.edit(func(d *kruise.ResourceDistribution) { d.Spec.Targets = included(b) })
		w.settle()
		w.status("1/1/0")
		if s := w.secret(a); s == nil || string(s.Data["key"]) != "theirs" {
			w.Errorf("it is %v", s)
		}
	})
	run("a namespace that is missing is named, and served once it is there", func(w *world) {
		a := w.name + "-a"
		w.distribute(secret, included(a))
		w.settle()
		w.status("1/0/1 NamespaceNotExists [" + a + "]: namespace not found or is terminating")
		w.namespace("a")
		w.settle()
		w.status("1/1/0")
	})
	run("a copy leaves a namespace that is no target any more, also after a restart", func(w *world) {
		a, b := w.namespace("a"), w.namespace("b")
		w.distribute(secret, included(a, b))
		w.settle()
		w.r = New(reconcile.Deps{Client: w.api, Events: w.events, Engine: w.e, Now: func() time.Time { return w.now }})
		w.edit(func(d *kruise.ResourceDistribution) { d.Spec.Targets = included(b) })
		w.settle()
		if w.secret(a) != nil || w.secret(b) == nil {
			w.Errorf("copies: %v, %v", w.secret(a), w.secret(b))
		}
		w.status("1/1/0")
	})
	run("a Secret that another client changed or deleted is as it was within a minute", func(w *world) {
		a, b := w.namespace("a"), w.namespace("b")
		w.distribute(secret, included(a, b))
		w.settle()
		s := w.secret(a)
		s.Data["key"] = []byte("changed")
		w.do(w.api.Update(w.Context(), s))
		w.do(w.api.Delete(w.Context(), w.secret(b)))
		after, err := w.reconcile()
		w.do(err)
		if after > 45*time.Second {
			w.Errorf("it is looked at again in %s", after)
		}
		w.now = w.now.Add(after)
		w.settle()
		if string(w.secret(a).Data["key"]) != "one" || w.secret(b) == nil {
			w.Errorf("copies: %v, %v", w.secret(a), w.secret(b))
		}
	})
	run("what has not changed is not written", func(w *world) {
		a := w.namespace("a")
		w.distribute(secret, included(a))
		w.settle()
		copied, d := w.secret(a).ResourceVersion, w.get().ResourceVersion
		w.r = New(reconcile.Deps{Client: w.api, Events: w.events, Engine: w.e, Now: func() time.Time { return w.now }})
		w.settle()
		if w.secret(a).ResourceVersion != copied || w.get().ResourceVersion != d {
			w.Error("a restart writes")
		}
	})
	run("a rule keeps copies out of a namespace, and an event says so once", func(w *world) {
		a, b := w.namespace("a"), w.namespace("b")
		w.distribute(secret, included(a, b))
		w.settle()
		w.settle()
		w.status("1/1/0")
		if w.secret(a) != nil || w.secret(b) == nil {
			w.Errorf("copies: %v, %v", w.secret(a), w.secret(b))
		}
		if got := <-w.events.Events; !strings.Contains(got, "DistributionDenied") || !strings.Contains(got, a+" takes none. (rule extend.placement.x)") || len(w.events.Events) > 0 {
			w.Errorf("event %q and %d more", got, len(w.events.Events))
		}
	}, `package extend.placement.x
deny contains {"reason": "No", "message": sprintf("%s takes none.", [ns.name]), "target": ns.name} if {
	some ns in input.namespaces
	endswith(ns.name, "-a")
}`)
	run("while a rule holds, copies neither come nor go", func(w *world) {
		a, b := w.namespace("a"), w.namespace("b")
		w.distribute(secret, included(a))
		w.settle()
		w.edit(func(d *kruise.ResourceDistribution) {
			d.Annotations = map[string]string{"freeze": "yes"}
			d.Spec.Targets = included(b)
		})
		if after, err := w.reconcile(); err != nil || after != heldAgain {
			w.Errorf("again in %s: %v", after, err)
		}
		if w.secret(a) == nil || w.secret(b) != nil {
			w.Errorf("copies: %v, %v", w.secret(a), w.secret(b))
		}
		if got := <-w.events.Events; !strings.Contains(got, "DistributionHeld Not now. (rule extend.placement.x)") {
			w.Errorf("event %q", got)
		}
	}, `package extend.placement.x
hold contains {"reason": "Frozen", "message": "Not now."} if input.distribution.annotations.freeze`)
	run("a policy that wants every namespace reaches only those of the spec", func(w *world) {
		a, b := w.namespace("a"), w.namespace("b")
		targets := included(a, b)
		targets.ExcludedNamespaces.List = []kruise.ResourceDistributionNamespace{{Name: b}}
		w.distribute(secret, targets)
		w.settle()
		if w.secret(a) == nil || w.secret(b) != nil || w.secret("default") != nil {
			w.Error("it went beyond the spec")
		}
	}, `package override.placement
distribution := {"namespaces": [ns.name | some ns in input.namespaces], "holds": [], "denials": []}`)
	run("a policy that names another namespace has no answer, and all copies stay", func(w *world) {
		w.distribute(secret, included(w.namespace("a")))
		if _, err := w.reconcile(); err != nil || w.secret("default") != nil || w.secret(w.name+"-a") != nil {
			w.Errorf("copies: %v %v", w.secret("default"), err)
		}
	}, `package override.placement
distribution := {"namespaces": ["default"], "holds": [], "denials": []}`)
	run("copies of OpenKruise are taken over without a write", func(w *world) { takeOver(w) })
}

// takeOver has an object and its copy as OpenKruise 1.8 leaves them.
func takeOver(w *world) {
	raw, err := os.ReadFile("testdata/openkruise.yaml")
	w.do(err)
	parts := strings.Split(string(raw), "\n---\n")
	d, copied := &kruise.ResourceDistribution{}, &corev1.ConfigMap{}
	w.do(yaml.Unmarshal([]byte(parts[0]), d))
	w.do(yaml.Unmarshal([]byte(parts[1]), copied))
	w.do(w.api.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
	status := d.Status
	d.ResourceVersion, d.UID, w.name = "", "", d.Name
	w.do(w.api.Create(w.Context(), d))
	d.Status = status
	w.do(w.api.Status().Update(w.Context(), d))
	copied.ResourceVersion, copied.UID = "", ""
	copied.OwnerReferences[0].UID = d.UID
	w.do(w.api.Create(w.Context(), copied))
	w.settle()
	now := &corev1.ConfigMap{}
	w.do(w.api.Get(w.Context(), client.ObjectKeyFromObject(copied), now))
	if now.ResourceVersion != copied.ResourceVersion || w.get().ResourceVersion != d.ResourceVersion {
		w.Errorf("written: %v, %v", now, w.get())
	}
	w.do(client.IgnoreNotFound(w.api.Delete(w.Context(), now)))
	if err := w.api.Get(w.Context(), client.ObjectKeyFromObject(copied), now); !apierrors.IsNotFound(err) {
		w.Error(err)
	}
}
