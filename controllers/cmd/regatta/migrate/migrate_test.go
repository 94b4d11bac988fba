// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/terminal"
)

var api apiserver.Shared

func TestMain(m *testing.M) { api.RunTests(m) }

const (
	web = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default, labels: {team: shop}, annotations: {owner: shop}},
  spec: {replicas: 3, minReadySeconds: 2, selector: {matchLabels: {app: web}}, strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 2}},
    template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "nginx:1"}]}}}}`
	webSet = `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web, namespace: default}}`
	others = `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: default}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: default}, spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}}
---
{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: guard, namespace: default},
  spec: {maxUnavailable: 1, targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: default},
  spec: {minReplicas: 3, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web},
    metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}]}}`
)

// controllers are those of Deployments and CloneSets: each pod that is to exist is available two looks later. They
// record the fewest pods that were available, and the most that existed.
type controllers struct {
	client.Client
	mu           sync.Mutex
	fewest, most int
}

// settle has a workload look as if its controller had done its work.
func (c *controllers) settle(t *testing.T, kind string) {
	t.Helper()
	for range 4 {
		c.countPods(t, kind)
	}
}

// countPods does a part of the work of the controller of a kind, and returns the counts.
func (c *controllers) countPods(t *testing.T, kind string) counts {
	t.Helper()
	w := newWorkload(kind)
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, w.object)
	if apierrors.IsNotFound(err) || t.Context().Err() != nil {
		return counts{}
	}
	if err != nil {
		t.Error(err)
		return counts{}
	}
	is := w.countPods()
	available, existing := min(is.existing, is.desired), is.desired
	switch o := w.object.(type) {
	case *kruise.CloneSet:
		o.Status = kruise.CloneSetStatus{ObservedGeneration: o.Generation, Replicas: int32(existing), UpdatedReplicas: int32(existing), AvailableReplicas: int32(available)}
	case *appsv1.Deployment:
		o.Status = appsv1.DeploymentStatus{ObservedGeneration: o.Generation, Replicas: int32(existing), UpdatedReplicas: int32(existing), ReadyReplicas: int32(available), AvailableReplicas: int32(available)}
	}
	if err := c.Status().Update(t.Context(), w.object); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) && t.Context().Err() == nil {
		t.Error(err)
	}
	return w.countPods()
}

// run runs the controllers until the returned function is called.
func (c *controllers) run(t *testing.T, total int) (stop func()) {
	t.Helper()
	c.fewest, c.most = total, total
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			d, s := c.countPods(t, deployment), c.countPods(t, cloneSet)
			c.mu.Lock()
			c.fewest, c.most = min(c.fewest, d.available+s.available), max(c.most, d.existing+s.existing)
			c.mu.Unlock()
			time.Sleep(2 * time.Millisecond)
		}
	})
	return func() { cancel(); all.Wait() }
}

// newScene is a cluster with a Deployment of three pods and what belongs to it.
func newScene(t *testing.T) (*terminal.Terminal, *controllers) {
	t.Helper()
	user := terminal.NewTerminal(t, &api)
	user.CreateObjects(t, append([]string{web}, strings.Split(others, "---")...)...)
	t.Cleanup(func() {
		for _, o := range []client.Object{&kruise.CloneSet{}, &policy.PodUnavailableBudget{}} {
			if err := user.DeleteAllOf(context.Background(), o, client.InNamespace("default")); err != nil {
				t.Error(err)
			}
		}
	})
	c := &controllers{Client: user.Client}
	c.settle(t, deployment)
	return user, c
}

func migrate(t *testing.T, user *terminal.Terminal, args ...string) terminal.Result {
	t.Helper()
	return user.TypeCommand(t, newCommand(20*time.Millisecond), append([]string{"--stable-for=50ms", "--timeout=20s"}, args...)...)
}

func want(t *testing.T, got terminal.Result, code int, parts ...string) {
	t.Helper()
	if got.Code != code {
		t.Errorf("it ended with %d, want %d:\n%s%s", got.Code, code, got.Out, got.Err)
	}
	for _, part := range parts {
		if !strings.Contains(got.Out+got.Err, part) {
			t.Errorf("it printed\n%s%s\nwhich has no %q", got.Out, got.Err, part)
		}
	}
}

// scaledBy is what an autoscaler scales.
func scaledBy(t *testing.T, user *terminal.Terminal) string {
	t.Helper()
	hpa := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := user.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, hpa); err != nil {
		t.Fatal(err)
	}
	ref := hpa.Spec.ScaleTargetRef
	return ref.APIVersion + " " + ref.Kind + " " + ref.Name
}

func TestPodsMoveAndComeBack(t *testing.T) {
	user, c := newScene(t)

	got := migrate(t, user, "deployment/web", "--preview", "--step", "2")
	want(t, got, exit.Fine, `Move 3 pods from Deployment web to CloneSet web in namespace default:
  create CloneSet web with the template of Deployment web
  create PodUnavailableBudget guard-cloneset like guard, for the pods of CloneSet web
  pause HorizontalPodAutoscaler web, so that it does not change the replicas meanwhile
  create up to 2 pods at a time, wait until they are available, then delete as many of Deployment web;
    3 pods stay available at any time, and at most 5 exist besides those that terminate
  have HorizontalPodAutoscaler web scale CloneSet web
  leave Deployment web with 0 pods, for the way back: regatta migrate clone/web
These select the pods of both: Service web, PodDisruptionBudget web.
`)
	for _, r := range got.Requests {
		if !strings.HasPrefix(r, "GET ") {
			t.Errorf("a preview sends %s", r)
		}
	}

	// No controller runs: the migration cannot go on, and says for what it waits.
	want(t, migrate(t, user, "deployment/web", "--timeout", "60ms"), exit.Refused, "the controllers have not seen the present spec", "run the command again to go on, or go back with regatta migrate clone/web; until then HorizontalPodAutoscaler web is paused")
	if got := scaledBy(t, user); got != "apps/v1 Deployment web.MIGRATING" {
		t.Errorf("the autoscaler scales %s meanwhile", got)
	}
	stop := c.run(t, 3)
	got = migrate(t, user, "deployment/web", "--step", "2")
	stop()
	want(t, got, exit.Fine, "Go on to move 3 pods", "CloneSet web: 0 -> 2 pods", "HorizontalPodAutoscaler web scales CloneSet web", "CloneSet web has all 3 pods")
	if c.fewest < 3 || c.most > 5 {
		t.Errorf("%d pods were available and %d existed, want 3 at least and 5 at most", c.fewest, c.most)
	}
	if got := scaledBy(t, user); got != "apps.kruise.io/v1beta1 CloneSet web" {
		t.Errorf("the autoscaler scales %s in the end", got)
	}
	set := &kruise.CloneSet{}
	if err := user.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, set); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintln(set.Labels, set.Annotations, set.Spec.Selector.MatchLabels, set.Spec.Template.Labels, set.Spec.MinReadySeconds, set.Spec.UpdateStrategy.RollingUpdate.MaxSurge, set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy); got !=
		"map[team:shop] map[migrate.regatta.sh/label:workload owner:shop] map[app:web workload:cloneset] map[app:web workload:cloneset] 2 2 InPlaceIfPossible\n" {
		t.Errorf("the CloneSet has %s", got)
	}
	twin := &policy.PodUnavailableBudget{}
	if err := user.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "guard-cloneset"}, twin); err != nil || twin.Spec.TargetReference.Kind != "CloneSet" || twin.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the budget of the CloneSet is %+v, %v", twin.Spec, err)
	}
	if got := user.ReadField(t, web, "spec.replicas") + user.ReadField(t, web, "metadata.annotations"); strings.Contains(got, recordKey) || !strings.HasPrefix(got, "0\n") {
		t.Errorf("the Deployment has %s", got)
	}

	want(t, migrate(t, user, "deployment/web"), exit.Fine, "The pods of Deployment web have moved to CloneSet web already.")

	// Another image, and back to the Deployment that is still there.
	set.Spec.Template.Spec.Containers[0].Image = "nginx:2"
	if err := user.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	c.settle(t, cloneSet)
	stop = c.run(t, 3)
	got = migrate(t, user, "clone/web", "--delete-source", "--step", "50%")
	stop()
	want(t, got, exit.Fine, "Move 3 pods from CloneSet web to Deployment web", "Deployment web has the template of CloneSet web",
		"A Deployment has no such fields: spec.updateStrategy.rollingUpdate.podUpdatePolicy.", "CloneSet web deleted", "Deployment web has all 3 pods")
	if c.fewest < 3 || c.most > 5 {
		t.Errorf("on the way back %d pods were available and %d existed, want 3 at least and 5 at most", c.fewest, c.most)
	}
	if got := user.ReadField(t, web, "spec.template.spec.containers"); !strings.Contains(got, "nginx:2") {
		t.Errorf("the Deployment has %s", got)
	}
	if got := scaledBy(t, user); got != "apps/v1 Deployment web" {
		t.Errorf("the autoscaler scales %s again", got)
	}
	if err := user.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, set); !apierrors.IsNotFound(err) {
		t.Errorf("the CloneSet is still there: %v", err)
	}
}

// Each refused or failed write leaves a state from which the next run ends the migration with all pods.
func TestAnInterruptedMigrationGoesOn(t *testing.T) {
	for after := range 8 {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			user, c := newScene(t)
			stop := c.run(t, 3)
			defer stop()
			failing := client.Client(&failingClient{Client: user.Client, left: after})
			o := newOptions(5 * time.Millisecond)
			o.step, o.label = "1", "workload"
			m := &migration{client: failing, namespace: "default", out: io.Discard, poll: o.poll, timeout: time.Minute}
			about, err := o.parseSource([]string{"deployment/web"})
			if err != nil {
				t.Fatal(err)
			}
			p, err := o.buildPlan(t.Context(), m, about)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.carryOut(t.Context(), p); !errors.Is(err, errCut) {
				t.Fatalf("the migration ended with %v though its write %d failed", err, after)
			}
			want(t, migrate(t, user, "deployment/web"), exit.Fine, "has all 3 pods")
			if c.fewest < 3 {
				t.Errorf("%d pods were available, want 3", c.fewest)
			}
			if got := scaledBy(t, user); got != "apps.kruise.io/v1beta1 CloneSet web" {
				t.Errorf("the autoscaler scales %s in the end", got)
			}
		})
	}
}

func TestMigrationsThatMayNotBegin(t *testing.T) {
	user, c := newScene(t)
	for name, tc := range map[string]struct {
		objects []string
		// observed is true if the controller of the first object has seen it.
		observed bool
		// revised is true if the controller of the Deployment has seen it, and has updated no pod.
		revised bool
		// seen is true if the controller of the Deployment has seen it, and all pods are updated.
		seen   bool
		change func(*appsv1.Deployment)
		args   []string
		code   int
		says   string
	}{
		"no such workload":     {args: []string{"deployment/nothing"}, code: exit.Failed, says: "there is no Deployment nothing in namespace default"},
		"another kind":         {args: []string{"asts/web"}, code: exit.Usage, says: "this command is not for objects of kind Advanced StatefulSet; want clone/NAME or deployment/NAME"},
		"several":              {args: []string{"deployment/web", "deployment/api"}, code: exit.Usage, says: "name one workload"},
		"a step of nothing":    {args: []string{"deployment/web", "--step", "0"}, code: exit.Usage, says: `--step is "0"`},
		"a step without pods":  {args: []string{"deployment/web", "--step=-1"}, code: exit.Usage, says: `--step is "-1"`},
		"a label that is none": {args: []string{"deployment/web", "--label", "a b"}, code: exit.Usage, says: `--label is "a b"`},
		"a selector that would lose the pods": {
			objects: []string{`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: only, namespace: default},
				spec: {podSelector: {matchExpressions: [{key: workload, operator: DoesNotExist}]}}}`},
			args: []string{"deployment/web"}, code: exit.Refused, says: "NetworkPolicy only (!workload)",
		},
		"a WorkloadSpread": {
			objects: []string{`{apiVersion: apps.kruise.io/v1alpha1, kind: WorkloadSpread, metadata: {name: zones, namespace: default},
				spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, subsets: [{name: a}, {name: b}]}}`},
			args: []string{"deployment/web"}, code: exit.Refused, says: "WorkloadSpread zones",
		},
		"a target with pods": {
			objects: []string{`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web, namespace: default},
				spec: {replicas: 2, selector: {matchLabels: {app: other}}, template: {metadata: {labels: {app: other}}, spec: {containers: [{name: main, image: "nginx:1"}]}}}}`},
			args: []string{"deployment/web"}, code: exit.Refused, says: "CloneSet web exists and has 2 pods, and no migration between the two is under way; if its pods may go, scale it to 0 first",
		},
		"a rollout": {
			change: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:9" },
			args:   []string{"deployment/web"}, code: exit.Refused, says: "wait for its rollout first", revised: true,
		},
		"a label that the template has": {
			args: []string{"deployment/web", "--label", "app"}, code: exit.Refused, says: `label app of the template of Deployment web is "web" already; choose another --label`,
		},
		"a second autoscaler": {
			objects: []string{`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: early, namespace: default},
				spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}}}`},
			args: []string{"deployment/web"}, code: exit.Refused, says: "there are 2 HorizontalPodAutoscalers of Deployment web and CloneSet web, want one at most: early, web",
		},
		"an object that would select the new pods only": {
			objects: []string{`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny, namespace: default}, spec: {podSelector: {matchLabels: {workload: cloneset}}}}`},
			args:    []string{"deployment/web", "--preview"}, code: exit.Refused, says: "NetworkPolicy deny (workload=cloneset)",
		},
		"a budget that keeps the last pods": {
			objects: []string{`{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {name: least, namespace: default},
				spec: {minAvailable: 2, targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`},
			args: []string{"deployment/web"}, code: exit.Refused, says: "PodUnavailableBudget least (spec.minAvailable 2)",
		},
		"Recreate": {
			change: func(d *appsv1.Deployment) {
				d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
			},
			seen: true, args: []string{"deployment/web"}, code: exit.Refused, says: "spec.strategy.type of Deployment web is Recreate",
		},
		"a paused rollout": {
			change: func(d *appsv1.Deployment) { d.Spec.Paused = true },
			seen:   true, args: []string{"deployment/web"}, code: exit.Refused, says: "the rollout of Deployment web is paused",
		},
		"a record that cannot be read": {
			change: func(d *appsv1.Deployment) { d.Annotations[recordKey] = "3" },
			args:   []string{"deployment/web"}, code: exit.Refused, says: "annotation migrate.regatta.sh/record of Deployment web cannot be read",
		},
		"an autoscaler that another tool writes": {
			objects: []string{`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: keda, namespace: default,
				ownerReferences: [{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, name: queue, uid: "1", controller: true}]},
				spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`},
			args: []string{"deployment/web"}, code: exit.Refused, says: "ScaledObject queue with its HorizontalPodAutoscaler keda",
		},
		"an owner": {
			change: func(d *appsv1.Deployment) {
				d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Game", Name: "chess", UID: "1", Controller: ptr.To(true)}}
			},
			args: []string{"deployment/web"}, code: exit.Refused, says: "is of Game chess",
		},
		"claims": {
			objects: []string{`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: disks, namespace: default},
				spec: {replicas: 0, selector: {matchLabels: {app: disks}}, template: {metadata: {labels: {app: disks}}, spec: {containers: [{name: main, image: "nginx:1"}]}},
				  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}`},
			observed: true, args: []string{"clone/disks"}, code: exit.Refused, says: "has spec.volumeClaimTemplates",
		},
	} {
		t.Run(name, func(t *testing.T) {
			user.CreateObjects(t, tc.objects...)
			if tc.observed {
				set := &kruise.CloneSet{}
				if err := user.Get(t.Context(), client.ObjectKeyFromObject(terminal.ParseObject(t, tc.objects[0])), set); err != nil {
					t.Fatal(err)
				}
				set.Status.ObservedGeneration = set.Generation
				if err := user.Status().Update(t.Context(), set); err != nil {
					t.Fatal(err)
				}
			}
			d := &appsv1.Deployment{}
			if err := user.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, d); err != nil {
				t.Fatal(err)
			}
			if tc.change != nil {
				before := d.DeepCopy()
				tc.change(d)
				if err := user.Update(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				defer func() {
					before.ResourceVersion = ""
					if err := user.Update(context.Background(), before); err != nil {
						t.Error(err)
					}
					c.settle(t, deployment)
				}()
			}
			if tc.revised {
				d.Status.ObservedGeneration, d.Status.UpdatedReplicas = d.Generation, 1
				if err := user.Status().Update(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
			if tc.seen {
				c.settle(t, deployment)
			}
			got := migrate(t, user, tc.args...)
			want(t, got, tc.code, tc.says)
			for _, r := range got.Requests {
				if !strings.HasPrefix(r, "GET ") {
					t.Errorf("a migration that may not begin sends %s", r)
				}
			}
		})
	}
}

// The manifest has all pods and nothing that belongs to the source or to the API server.
func TestTheManifestOfTheTarget(t *testing.T) {
	user, _ := newScene(t)
	got := migrate(t, user, "deployment/web", "-o", "yaml")
	want(t, got, exit.Fine, "kind: CloneSet\n", "  replicas: 3\n", "      workload: cloneset\n", "    owner: shop\n")
	for _, part := range []string{"status", "uid", "resourceVersion", "creationTimestamp", recordKey} {
		if strings.Contains(got.Out, part) {
			t.Errorf("the manifest has %s:\n%s", part, got.Out)
		}
	}
	user.CreateObjects(t, got.Out) // the API server takes it
	if replicas := user.ReadField(t, webSet, "spec.replicas"); replicas != "3\n" {
		t.Errorf("it has %s replicas", replicas)
	}
}

// failingClient refuses all writes after some.
type failingClient struct {
	client.Client
	left int
}

var errCut = errors.New("the connection is cut")

func (f *failingClient) countWrite() error {
	if f.left--; f.left < 0 {
		return errCut
	}
	return nil
}

func (f *failingClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if err := f.countWrite(); err != nil {
		return err
	}
	return f.Client.Create(ctx, o, opts...)
}

func (f *failingClient) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if err := f.countWrite(); err != nil {
		return err
	}
	return f.Client.Patch(ctx, o, p, opts...)
}

// A change of a template, a scale-up by someone else and a second run stop a migration in the middle, and it goes back or on.
func TestOthersStopAMigration(t *testing.T) {
	user, c := newScene(t)
	stop := c.run(t, 3)
	defer stop()
	// The command is stopped once the CloneSet has a pod.
	half := func() {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		watching := &stoppingClient{Client: user.Client, stop: cancel, when: func(o client.Object) bool {
			set, ok := o.(*kruise.CloneSet)
			return ok && ptr.Deref(set.Spec.Replicas, 0) == 1
		}}
		o := newOptions(5 * time.Millisecond)
		o.step, o.label = "1", "workload"
		m := &migration{client: watching, namespace: "default", out: io.Discard, poll: o.poll, timeout: time.Minute}
		about, err := o.parseSource([]string{"deployment/web"})
		if err != nil {
			t.Fatal(err)
		}
		p, err := o.buildPlan(ctx, m, about)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.carryOut(ctx, p); err == nil || !strings.Contains(err.Error(), "interrupted") && !errors.Is(err, context.Canceled) {
			t.Fatalf("the migration ended with %v", err)
		}
	}
	setImage := func(o client.Object, image string) {
		t.Helper()
		w := newWorkload(deployment)
		if _, ok := o.(*kruise.CloneSet); ok {
			w = newWorkload(cloneSet)
		}
		for { // the controllers write too
			if err := user.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, w.object); err != nil {
				t.Fatal(err)
			}
			w.podTemplate().Spec.Containers[0].Image = image
			if err := user.Update(t.Context(), w.object); err == nil {
				return
			} else if !apierrors.IsConflict(err) {
				t.Fatal(err)
			}
		}
	}
	half()
	setImage(&appsv1.Deployment{}, "nginx:2")
	want(t, migrate(t, user, "deployment/web"), exit.Refused, "the template of Deployment web was changed since the migration began")
	if got := user.ReadField(t, webSet, "spec.replicas"); got != "1\n" {
		t.Errorf("a refused run changed the CloneSet to %s", got)
	}
	want(t, migrate(t, user, "clone/web"), exit.Fine, "Go on to move 3 pods from CloneSet web to Deployment web", "Deployment web has all 3 pods")
	if got := user.ReadField(t, web, "spec.template.spec.containers"); !strings.Contains(got, "nginx:2") {
		t.Errorf("going back undid the change of the Deployment: %s", got)
	}
	if c.fewest < 3 {
		t.Errorf("%d pods were available, want 3", c.fewest)
	}

	half()
	setImage(&kruise.CloneSet{}, "nginx:3")
	want(t, migrate(t, user, "clone/web"), exit.Refused, "the template of CloneSet web was changed since the migration began")
	setImage(&kruise.CloneSet{}, "nginx:2")
	want(t, migrate(t, user, "deployment/web"), exit.Fine, "CloneSet web has all 3 pods")
}

// stoppingClient calls stop after a write of an object.
type stoppingClient struct {
	client.Client
	stop func()
	when func(client.Object) bool
}

func (s *stoppingClient) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	err := s.Client.Patch(ctx, o, p, opts...)
	if s.when(o) {
		s.stop()
	}
	return err
}
