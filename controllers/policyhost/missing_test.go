// SPDX-License-Identifier: Apache-2.0

package policyhost_test

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policyhost"
	"github.com/regatta-sh/regatta/controllers/policyhost/hosttest"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// strict reports whether decisions in a namespace are strict fallbacks for want of a bundle.
func strict(h *policyhost.Host, namespace, name string) bool {
	return strings.HasPrefix(hosttest.HoldReasons(h.Engine(), namespace), "Error bundle "+name+" takes part in this decision and is missing")
}

// A replica that starts and cannot load a bundle takes the copy on its disk; without one
// it is strict where the bundle decides, and nowhere else, until it can.
func TestABundleThatCannotBeLoaded(t *testing.T) {
	p, config := newPublisher(t)
	dir := t.TempDir()
	own := &policy.PolicyBundle{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}}
	p.create(own)
	files := hosttest.HoldFiles("own", "Own", "true")
	a := p.artifact(own, files, false)
	a.Points = []string{"node/restart"} // as was noted when a bundle of the platform kept it from rollouts
	p.publish(own, a, nil)
	load := func(opts ...policyhost.Option) (*policyhost.Host, *prometheus.Registry) {
		t.Helper()
		metrics := prometheus.NewRegistry()
		h := newHost(t, config, append(opts, policyhost.WithMetrics(metrics))...)
		if _, err := h.LoadBundles(t.Context()); err != nil {
			t.Fatal(err)
		}
		return h, metrics
	}
	gauge := func(from prometheus.Gatherer) (n int) {
		families, err := from.Gather()
		p.do(err)
		for _, f := range families {
			if f.GetName() == "regatta_policy_bundles_missing" {
				n = len(f.GetMetric())
			}
		}
		return n
	}
	first, metrics := load(policyhost.WithDirectory(dir))
	if got := hosttest.HoldReasons(first.Engine(), "shop"); got != "Own" || gauge(metrics) != 0 {
		t.Fatalf("at first it holds for %q", got)
	}
	p.do(p.Delete(t.Context(), &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: a.KeptIn}}))

	copied, _ := load(policyhost.WithDirectory(dir))
	if got := hosttest.HoldReasons(copied.Engine(), "shop"); got != "Own" {
		t.Errorf("with a copy on disk it holds for %q", got)
	}
	if me, err := copied.SyncBundle(t.Context(), own); err != nil || me.Strict != "" || !strings.Contains(me.Problem, "is gone") || me.Revision != bundle.ShortRevision(a.Revision) {
		t.Errorf("with a copy on disk it runs %+v, %v", me, err)
	}

	h, metrics := load()
	if !strict(h, "shop", "shop/own") || hosttest.HoldReasons(h.Engine(), "bank") != "" {
		t.Errorf("without a copy, in shop it holds for %q and in bank for %q", hosttest.HoldReasons(h.Engine(), "shop"), hosttest.HoldReasons(h.Engine(), "bank"))
	}
	me, err := h.SyncBundle(t.Context(), own)
	if err != nil || me.Strict != policy.PolicyBundleNotLoadedReason || !strings.Contains(me.Problem, "is gone") || me.Revision != "" {
		t.Errorf("without a copy it runs %+v, %v", me, err)
	}
	if gauge(metrics) != 1 {
		t.Errorf("%d bundles are counted as missing", gauge(metrics))
	}

	p.artifact(own, files, false) // the leader puts it back
	if me, err = h.SyncBundle(t.Context(), own); err != nil || me.Strict != "" || me.Problem != "" {
		t.Errorf("once it is there again it runs %+v, %v", me, err)
	}
	if got := hosttest.HoldReasons(h.Engine(), "shop"); got != "Own" || gauge(metrics) != 0 {
		t.Errorf("once it is there again it holds for %q, and %d are missing", got, gauge(metrics))
	}
}

// The bundle that is missing can be changed and deleted, whatever it may refuse, and its
// deletion ends that its decisions are strict.
func TestAMissingBundleCanBeDeleted(t *testing.T) {
	p, config := newPublisher(t)
	all := &policy.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
	p.create(all)
	a := p.artifact(all, hosttest.HoldFiles("all", "All", "true"), false)
	p.publish(all, a, nil) // by a manager that does not write its points
	p.do(p.Delete(t.Context(), &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: a.KeptIn}}))
	h := newHost(t, config)
	if _, err := h.LoadBundles(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strict(h, "shop", "all") || !strict(h, "bank", "all") {
		t.Errorf("it holds for %q", hosttest.HoldReasons(h.Engine(), "shop"))
	}
	for kind, allowed := range map[string]bool{"ClusterPolicyBundle": true, "PolicyBundle": true, "CustomResourceDefinition": false} {
		in := protection.DeletionInput{Request: protection.Request{Operation: protection.Delete}, Object: protection.Object{Group: "policy.kruise.io", Kind: kind, Name: "all"}}
		out, rec := engine.Decide(t.Context(), h.Engine(), protection.DeletionPoint(), decision.Subject{Group: "policy.kruise.io", Kind: kind, Name: "all"}, in)
		if out.Allow != allowed {
			t.Errorf("%s: %+v %s", kind, out, rec.Error)
		}
	}
	p.do(h.RemoveBundle(t.Context(), policyhost.Key{Name: "all"}))
	if got := hosttest.HoldReasons(h.Engine(), "shop"); got != "" {
		t.Errorf("after it was deleted it holds for %q", got)
	}
}

// A bundle that is withheld and cannot be loaded is missing; a copy of it does not decide in
// place of anything; and people can delete it whatever it takes part in.
func TestABundleThatIsWithheld(t *testing.T) {
	p, config := newPublisher(t)
	all := &policy.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
	p.create(all)
	a := p.artifact(all, map[string]string{"a.rego": "package extend.protection.all\n\ndeny contains {\"reason\": \"R\", \"message\": \"m\"} if input.object.name == \"never\"\n"}, false)
	p.publish(all, nil, nil)
	all.GetStatus().Withheld = a
	p.do(p.Status().Update(t.Context(), all))
	dir := t.TempDir()
	check := func(h *policyhost.Host, because string) {
		t.Helper()
		for kind, allowed := range map[string]bool{"ClusterPolicyBundle": true, "CustomResourceDefinition": false} {
			in := protection.DeletionInput{Request: protection.Request{Operation: protection.Delete}, Object: protection.Object{Group: "policy.kruise.io", Kind: kind, Name: "all"}}
			out, rec := engine.Decide(t.Context(), h.Engine(), protection.DeletionPoint(), decision.Subject{Group: "policy.kruise.io", Kind: kind, Name: "all"}, in)
			if out.Allow != allowed || !allowed && !strings.Contains(rec.Error, because) {
				t.Errorf("%s: %+v %s", kind, out, rec.Error)
			}
		}
	}
	h := newHost(t, config, policyhost.WithDirectory(dir))
	if _, err := h.LoadBundles(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(h, "was rolled back")
	p.do(p.Delete(t.Context(), &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: a.KeptIn}}))
	lost := newHost(t, config)
	if _, err := lost.LoadBundles(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(lost, "is missing")
	if me, err := lost.SyncBundle(t.Context(), all); err != nil || me.Strict != policy.PolicyBundleNotLoadedReason {
		t.Errorf("it runs %+v, %v", me, err)
	}
	all.GetStatus().Withheld = nil
	p.publish(all, a, nil)
	copied := newHost(t, config, policyhost.WithDirectory(dir))
	if _, err := copied.LoadBundles(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(copied, "is missing")
	p.do(h.RemoveBundle(t.Context(), policyhost.Key{Name: "all"}))
	in := protection.DeletionInput{Request: protection.Request{Operation: protection.Delete}, Object: protection.Object{Kind: "ConfigMap", Namespace: "shop", Name: "x"}}
	if out, rec := engine.Decide(t.Context(), h.Engine(), protection.DeletionPoint(), decision.Subject{Kind: "ConfigMap", Namespace: "shop", Name: "x"}, in); !out.Allow {
		t.Errorf("after it was deleted: %+v %s", out, rec.Error)
	}
}

// A key that is taken out of the spec takes back what it has signed, on replicas that run
// it and on those that start, whichever generation let it in.
func TestAKeyThatIsTakenAway(t *testing.T) {
	p, config := newPublisher(t)
	other, _ := newKey(t)
	p.keyID = "default"
	b := &policy.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "signed"}}
	b.Spec.HTTP = &policy.HTTPPolicySource{URL: "https://policies.example.com/bundle.tar.gz"}
	keys := []policy.PolicyKey{{ID: "default", PublicKey: p.public}, {ID: "other", PublicKey: other}}
	b.Spec.Verification = &policy.PolicyVerification{Keys: keys}
	p.create(b)
	a := p.artifact(b, hosttest.HoldFiles("signed", "Signed", "true"), true)
	p.publish(b, a, nil)
	dir := t.TempDir()
	h := newHost(t, config, policyhost.WithDirectory(dir))
	if _, err := h.LoadBundles(t.Context()); err != nil {
		t.Fatal(err)
	}
	runs := func(h *policyhost.Host, want, why string) {
		t.Helper()
		me, err := h.SyncBundle(t.Context(), b)
		if err != nil || me.Strict != why || (why != "") != strings.Contains(me.Problem, `names the key "default", and no key of spec.verification.keys`) {
			t.Errorf("it runs %+v, %v", me, err)
		}
		if got := hosttest.HoldReasons(h.Engine(), "shop"); got != want && (want != "" || !strict(h, "shop", "signed")) {
			t.Errorf("it holds for %q, want %q", got, want)
		}
	}
	update := func(keys ...policy.PolicyKey) {
		t.Helper()
		b.Spec.Verification.Keys = keys
		p.do(p.Update(t.Context(), b))
	}
	runs(h, "Signed", "")
	for _, left := range [][]policy.PolicyKey{{keys[1]}, {{ID: "default", PublicKey: other}}} {
		update(left...)
		runs(h, "", policy.PolicyBundleSignatureRevokedReason)
		next := newHost(t, config, policyhost.WithDirectory(dir)) // it has a copy
		if _, err := next.LoadBundles(t.Context()); err != nil {
			t.Fatal(err)
		}
		runs(next, "", policy.PolicyBundleSignatureRevokedReason)
		update(keys[0])
		runs(h, "Signed", "")
	}
	// Neither another name nor a mistake in another key revokes anything.
	update(policy.PolicyKey{ID: "renamed", PublicKey: p.public})
	runs(h, "Signed", "")
	update(policy.PolicyKey{ID: "renamed", PublicKey: p.public}, keys[1])
	runs(h, "Signed", "")
	update(keys[0], policy.PolicyKey{ID: "damaged", PublicKey: "-----BEGIN PUBLIC KEY-----\nx"})
	runs(h, "Signed", "")

	// A copy on disk counts by the key that it was verified by.
	p.do(p.Delete(t.Context(), &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: a.KeptIn}}))
	for want, left := range map[string]policy.PolicyKey{"Signed": keys[0], "": keys[1]} {
		update(left)
		next := newHost(t, config, policyhost.WithDirectory(copyOf(t, dir)))
		if _, err := next.LoadBundles(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := hosttest.HoldReasons(next.Engine(), "shop"); got != want && (want != "" || !strict(next, "shop", "signed")) {
			t.Errorf("with the key %s the copy holds for %q", left.ID, got)
		}
	}
}

// A bundle with which the process ends is left out by the third start, strictly, and not
// taken from the disk either.
func TestABundleThatEndsTheProcess(t *testing.T) {
	p, config := newPublisher(t)
	dir := t.TempDir()
	bad := &policy.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "bad"}}
	p.create(bad)
	p.publish(bad, p.artifact(bad, hosttest.HoldFiles("bad", "Bad", "true"), false), nil)
	crash := policyhost.WithBefore(func(_ context.Context, next *engine.Snapshot) error {
		if len(next.UserBundles()) > 0 {
			panic("the process ends")
		}
		return nil
	})
	for n := range 3 {
		// A process that ends does not close its Host; the tests of others do, in the end.
		h := newHost(t, config, policyhost.WithDirectory(dir), crash)
		ended := func() (ended bool) {
			defer func() { ended = recover() != nil }()
			_, err := h.LoadBundles(t.Context())
			p.do(err)
			return false
		}()
		if ended != (n < 2) {
			t.Fatalf("start %d: the process ends: %t", n+1, ended)
		}
		if ended {
			continue
		}
		me, err := h.SyncBundle(t.Context(), bad)
		if err != nil || me.Strict != policy.PolicyBundleEndsProcessReason || !strings.Contains(me.Problem, "the process ended 2 times") {
			t.Errorf("it runs %+v, %v", me, err)
		}
		if !strict(h, "shop", "bad") {
			t.Errorf("it holds for %q", hosttest.HoldReasons(h.Engine(), "shop"))
		}
	}
	p.publish(bad, p.artifact(bad, hosttest.HoldFiles("bad", "Mended", "true"), false), nil)
	h := newHost(t, config, policyhost.WithDirectory(dir))
	if _, err := h.LoadBundles(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := hosttest.HoldReasons(h.Engine(), "shop"); got != "Mended" {
		t.Errorf("with another revision it holds for %q", got)
	}
}

// Two revisions that begin with the same digits are two: the whole hash tells which of them
// decides.
func TestRevisionsThatLookTheSame(t *testing.T) {
	p, config := newPublisher(t)
	b := &policy.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "twins"}}
	p.create(b)
	one := p.artifact(b, hosttest.HoldFiles("twins", "One", "true"), false)
	two := p.artifact(b, hosttest.HoldFiles("twins", "Two", "true"), false)
	two.Revision = one.Revision
	h := newHost(t, config)
	for _, a := range []*policy.PolicyArtifact{one, two, one} {
		p.publish(b, a, nil)
		if me, err := h.SyncBundle(t.Context(), b); err != nil || me.Problem != "" {
			t.Fatalf("%+v, %v", me, err)
		}
		want := map[*policy.PolicyArtifact]string{one: "One", two: "Two"}[a]
		if got := hosttest.HoldReasons(h.Engine(), "shop"); got != want {
			t.Errorf("it holds for %q, want %q", got, want)
		}
	}
}
