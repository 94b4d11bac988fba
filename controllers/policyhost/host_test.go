// SPDX-License-Identifier: Apache-2.0

package policyhost_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/controllers/policyhost"
	"github.com/regatta-sh/regatta/controllers/policyhost/hosttest"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/shadow"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// publisher plays the leader of the managers: it keeps archives and names them in
// the status of bundles.
type publisher struct {
	*testing.T
	client.Client
	store bundlerevision.Store
	key   string // file of the private key
	keyID string // that signatures name
	// public is the public key, in PEM.
	public string
}

func (p *publisher) do(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// create makes a bundle that nothing is published of yet.
func (p *publisher) create(b policy.AnyPolicyBundle) {
	p.Helper()
	files := map[string]policy.FileText{"a.rego": "package extend.rollout.unpublished\n"}
	switch b := b.(type) {
	case *policy.ClusterPolicyBundle:
		if b.Spec.HTTP == nil {
			b.Spec.Files = files
		}
	case *policy.PolicyBundle:
		b.Spec.Files = files
	}
	p.do(p.Create(p.Context(), b.(client.Object)))
}

// artifact keeps files as the leader does.
func (p *publisher) artifact(b policy.AnyPolicyBundle, files map[string]string, sign bool) *policy.PolicyArtifact {
	p.Helper()
	made, err := bundle.FromFiles(b.GetName(), files)
	p.do(err)
	var archive bytes.Buffer
	p.do(made.BuildArchive(&archive, bundle.Build{}))
	if sign {
		var signed bytes.Buffer
		p.do(bundle.SignArchive(&signed, bytes.NewReader(archive.Bytes()), bundle.Signing{Key: p.key, KeyID: p.keyID}))
		archive = signed
	}
	kept, err := p.store.SaveArchive(p.Context(), b, archive.Bytes(), "files")
	p.do(err)
	return &policy.PolicyArtifact{Revision: bundle.ShortRevision(made.Revision), Content: made.Revision, Digest: bundlerevision.ArchiveDigest(archive.Bytes()), Reference: "files", KeptIn: kept, Generation: b.GetGeneration(), Time: metav1.Now()}
}

// publish names what replicas run from now on.
func (p *publisher) publish(b policy.AnyPolicyBundle, active, candidate *policy.PolicyArtifact) {
	p.Helper()
	o := b.(client.Object)
	p.do(p.Get(p.Context(), client.ObjectKeyFromObject(o), o))
	st := b.GetStatus()
	st.ObservedGeneration, st.Active, st.Candidate = b.GetGeneration(), active, candidate
	p.do(p.Status().Update(p.Context(), o))
}

func newPublisher(t *testing.T) (*publisher, *rest.Config) {
	env, c := apiserver.Serve(t)
	p := &publisher{T: t, Client: c, store: bundlerevision.Store{Client: c, Reader: c, Namespace: "kruise-system"}, key: filepath.Join(t.TempDir(), "key.pem")}
	for _, ns := range []string{"kruise-system", "shop", "bank"} {
		p.do(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	}
	var private []byte
	p.public, private = newKey(t)
	p.do(os.WriteFile(p.key, private, 0o600))
	return p, env.Config
}

// newKey makes a pair of keys, in PEM.
func newKey(t *testing.T) (public string, private []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	open, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: open})), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// copyOf is another directory with what is in one.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(out, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return out
}

func newHost(t *testing.T, config *rest.Config, opts ...policyhost.Option) *policyhost.Host {
	t.Helper()
	// The machine may be busy.
	opts = append(opts, policyhost.WithBuiltin(hosttest.BuiltinPolicies(t)), policyhost.WithEngine(engine.WithPatience(20), engine.WithShare(1000), hosttest.WithCompiled(t)),
		policyhost.WithShadows(shadow.WithBusy(func() bool { return false })))
	h, err := policyhost.New(config, "kruise-system", "node-a", opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// start runs a host until the test ends, or until stop is called.
func start(t *testing.T, h *policyhost.Host) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Start(ctx) }()
	stopped := false
	stop = func() {
		cancel()
		if stopped {
			return
		}
		stopped = true
		if err := <-ended; err != nil {
			t.Errorf("the host ended with %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("it never came to this: %s", what)
}

// metric sums up a metric whose labels are among these.
func metric(t *testing.T, from prometheus.Gatherer, name string, labels map[string]string) float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	next:
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if want, ok := labels[l.GetName()]; ok && want != l.GetValue() {
					continue next
				}
			}
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}

// A process without a leader, a manager and a CloneSet, such as one on a node, runs
// what the managers publish.
func TestAHostOnItsOwn(t *testing.T) {
	p, config := newPublisher(t)
	dir, metrics := t.TempDir(), prometheus.NewRegistry()
	activated := make(chan string, 1000)
	h := newHost(t, config, policyhost.WithDirectory(dir), policyhost.WithMetrics(metrics), policyhost.WithActivated(func(revision string) { activated <- revision }))
	holds := func(namespace string) string { return hosttest.HoldReasons(h.Engine(), namespace) }
	if err := h.CheckReady(nil); err == nil {
		t.Error("it is ready before it has asked for bundles")
	}
	if h.NeedLeaderElection() {
		t.Error("it waits to lead")
	}

	first := &policy.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "first"}}
	p.create(first)
	one := p.artifact(first, hosttest.HoldFiles("first", "One", "true"), false)
	p.publish(first, one, nil)
	stop := start(t, h)
	eventually(t, "ready", func() bool { return h.CheckReady(nil) == nil })
	if got := holds("shop"); got != "One" {
		t.Errorf("as soon as it is ready it holds for %q", got)
	}

	t.Run("it follows what is published", func(t *testing.T) {
		p.publish(first, p.artifact(first, hosttest.HoldFiles("first", "Two", "true"), false), nil)
		eventually(t, "the second revision", func() bool { return holds("shop") == "Two" })
	})
	own := &policy.PolicyBundle{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}}
	t.Run("a bundle of a namespace decides there only", func(t *testing.T) {
		p.create(own)
		p.publish(own, p.artifact(own, hosttest.HoldFiles("own", "Own", "true"), false), nil)
		eventually(t, "the bundle of the namespace", func() bool { return holds("shop") == "Two Own" || holds("shop") == "Own Two" })
		if got := holds("bank"); got != "Two" {
			t.Errorf("in another namespace it holds for %q", got)
		}
	})
	t.Run("it verifies what it loads", func(t *testing.T) {
		b := &policy.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "signed"}}
		b.Spec.HTTP = &policy.HTTPPolicySource{URL: "https://policies.example.com/bundle.tar.gz"}
		b.Spec.Verification = &policy.PolicyVerification{Keys: []policy.PolicyKey{{ID: "release", PublicKey: p.public}}}
		p.create(b)
		p.publish(b, p.artifact(b, hosttest.HoldFiles("signed", "Forged", "true"), false), nil)
		key := client.ObjectKeyFromObject(b)
		me := policy.PolicyReplica{}
		eventually(t, "a problem", func() bool {
			var err error
			me, err = h.SyncBundle(t.Context(), b)
			return err == nil && me.Problem != ""
		})
		if h.EnforcedBundle(key) != nil || me.Name != "node-a" || me.Revision != "" {
			t.Errorf("without a signature it runs %+v", me)
		}
		p.publish(b, p.artifact(b, hosttest.HoldFiles("signed", "Signed", "true"), true), nil)
		eventually(t, "the signed bundle", func() bool { return h.EnforcedBundle(key) != nil })
		p.do(p.Delete(t.Context(), b))
		eventually(t, "a bundle that is deleted is taken out", func() bool { return h.EnforcedBundle(key) == nil })
	})
	t.Run("a bundle in shadow is compared and not acted on", func(t *testing.T) {
		candidate := p.artifact(first, hosttest.HoldFiles("first", "Three", "true"), false)
		candidate.Mode = policy.PolicyModeShadow
		two := first.Status.Active
		p.publish(first, two, candidate)
		eventually(t, "differences", func() bool {
			if got := holds("bank"); got != "Two" {
				t.Fatalf("it holds for %q", got)
			}
			return metric(t, metrics, "regatta_shadow_decisions_total", map[string]string{"result": "changed"}) > 0
		})
		p.publish(first, two, nil)
	})
	t.Run("it records and measures what it decides", func(t *testing.T) {
		if n := metric(t, metrics, "regatta_decisions_total", map[string]string{"point": "rollout/plan", "outcome": "Decided"}); n == 0 {
			t.Error("no decision is counted")
		}
		found := h.DecisionRecords().FindRecords(record.Query{})
		if len(found) == 0 || found[0].Outcome != decision.Decided {
			t.Fatalf("the records are %+v", found)
		}
		line, err := h.RecordEncoder().AppendLine(nil, found[0])
		if err != nil || !bytes.Contains(line, []byte(`"replica":"node-a"`)) {
			t.Errorf("a record is written as %s, %v", line, err)
		}
		if len(activated) < 4 {
			t.Errorf("it told of %d revisions", len(activated))
		}
	})
	t.Run("it writes nothing to the cluster", func(t *testing.T) {
		b := &policy.ClusterPolicyBundle{}
		p.do(p.Get(t.Context(), client.ObjectKeyFromObject(first), b))
		if b.ResourceVersion != first.ResourceVersion || len(b.Status.Replicas) != 0 {
			t.Errorf("the bundle is %+v", b)
		}
	})
	t.Run("without the API server those on disk decide", func(t *testing.T) {
		stop()
		away := rest.CopyConfig(config)
		away.Host, away.Timeout = "127.0.0.1:1", time.Second
		next := newHost(t, away, policyhost.WithDirectory(dir))
		start(t, next)
		eventually(t, "ready", func() bool { return next.CheckReady(nil) == nil })
		if got := hosttest.HoldReasons(next.Engine(), "bank"); got != "Two" {
			t.Errorf("it holds for %q", got)
		}
	})
	t.Run("what was deleted meanwhile does not decide after a start", func(t *testing.T) {
		p.do(p.Delete(t.Context(), own))
		next := newHost(t, config, policyhost.WithDirectory(dir))
		if n, err := next.RestoreFromDisk(t.Context()); err != nil || n != 2 {
			t.Fatalf("%d, %v", n, err)
		}
		if installed, err := next.LoadBundles(t.Context()); err != nil || !installed {
			t.Fatalf("%v, %v", installed, err)
		}
		if got := hosttest.HoldReasons(next.Engine(), "shop"); got != "Two" {
			t.Errorf("it holds for %q", got)
		}
	})
}

// Where the CRDs of bundles come after the Host, the built-in policies decide until
// then.
func TestAHostWaitsForTheCRDsOfBundles(t *testing.T) {
	env := apiserver.Start(t)
	c, err := client.New(env.Config, client.Options{Scheme: apiserver.Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t, env.Config)
	start(t, h)
	eventually(t, "ready", func() bool { return h.CheckReady(nil) == nil })
	if got := hosttest.HoldReasons(h.Engine(), "shop"); got != "" {
		t.Errorf("it holds for %q", got)
	}
	apiserver.Install(t, env, apiserver.CRDs(t, ""))
	b := &policy.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "first"}}
	p := &publisher{T: t, Client: c, store: bundlerevision.Store{Client: c, Reader: c, Namespace: "kruise-system"}}
	p.do(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kruise-system"}}))
	p.create(b)
	p.publish(b, p.artifact(b, hosttest.HoldFiles("first", "One", "true"), false), nil)
	eventually(t, "the bundle decides", func() bool { return hosttest.HoldReasons(h.Engine(), "shop") == "One" })
}

func TestAHostWithoutADirectoryHasNothingToRestore(t *testing.T) {
	for name, opts := range map[string][]policyhost.Option{"no directory": nil, "one that is empty": {policyhost.WithDirectory(t.TempDir())}} {
		h := newHost(t, &rest.Config{Host: "127.0.0.1:1"}, opts...)
		if n, err := h.RestoreFromDisk(t.Context()); n != 0 || !errors.Is(err, policyhost.ErrNothingOnDisk) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if installed, err := h.LoadBundles(ctx); installed || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, %v", name, installed, err)
		}
		if err := h.CheckReady(nil); err == nil {
			t.Errorf("%s: it is ready", name)
		}
	}
}
