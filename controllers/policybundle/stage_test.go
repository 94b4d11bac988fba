// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
	"github.com/regatta-sh/regatta/controllers/policyhost"
	"github.com/regatta-sh/regatta/controllers/policyhost/hosttest"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/shadow"
	"github.com/regatta-sh/regatta/test/apiserver"
)

var (
	hold   = hosttest.HoldFiles
	broken = map[string]string{"a.rego": "package extend.rollout.a\nhold contains"}
	slow   = hosttest.SlowFiles()
)

func with(files map[string]string, path, text string) map[string]string {
	out := maps.Clone(files)
	out[path] = text
	return out
}

func platform(name string) Key          { return Key{Name: name} }
func tenant(namespace, name string) Key { return Key{Namespace: namespace, Name: name} }

// stage is an API server with bundles. Only the test reconciles them.
type stage struct {
	*testing.T
	client.Client
	config *rest.Config
}

func newStage(t *testing.T) *stage {
	t.Helper()
	env, c := apiserver.Serve(t)
	st := &stage{T: t, Client: c, config: env.Config}
	for _, ns := range []string{"kruise-system", "shop"} {
		st.do(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	}
	return st
}

// on is the stage for a part of the test.
func (s *stage) on(t *testing.T) *stage { return &stage{T: t, Client: s.Client, config: s.config} }

func (s *stage) do(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// apply makes a bundle, or changes its spec.
func (s *stage) apply(key Key, change func(policy.AnyPolicyBundle)) {
	s.Helper()
	b := emptyBundle(key)
	if err := s.Get(s.Context(), key, asObject(b)); err != nil {
		b.SetName(key.Name)
		b.SetNamespace(key.Namespace)
		change(b)
		s.do(s.Create(s.Context(), asObject(b)))
		return
	}
	change(b)
	s.do(s.Update(s.Context(), asObject(b)))
}

func inline(files map[string]string) func(policy.AnyPolicyBundle) {
	texts := map[string]policy.FileText{}
	for path, text := range files {
		texts[path] = policy.FileText(text)
	}
	return func(b policy.AnyPolicyBundle) {
		switch b := b.(type) {
		case *policy.ClusterPolicyBundle:
			b.Spec.PolicySource = policy.PolicySource{Files: texts}
		case *policy.PolicyBundle:
			b.Spec.PolicySource = policy.PolicySource{Files: texts}
		}
	}
}

func mode(m policy.PolicyMode, namespaces ...string) func(policy.AnyPolicyBundle) {
	return func(b policy.AnyPolicyBundle) {
		spec := &b.(*policy.ClusterPolicyBundle).Spec
		if spec.Mode = m; len(namespaces) > 0 {
			spec.Canary = &policy.PolicyCanary{Namespaces: namespaces}
		}
	}
}

func both(changes ...func(policy.AnyPolicyBundle)) func(policy.AnyPolicyBundle) {
	return func(b policy.AnyPolicyBundle) {
		for _, change := range changes {
			change(b)
		}
	}
}

func (s *stage) bundle(key Key) policy.AnyPolicyBundle {
	s.Helper()
	b := emptyBundle(key)
	s.do(s.Get(s.Context(), key, asObject(b)))
	return b
}

// says is what people see: what is enforced, what is tried, and why.
func (s *stage) says(key Key, want string) {
	s.Helper()
	b := s.bundle(key)
	st, ready := b.GetStatus(), findCondition(b, policy.PolicyBundleReady)
	if ready == nil {
		s.Fatalf("%s has no condition", key)
	}
	if ready.ObservedGeneration != b.GetGeneration() || st.ObservedGeneration != b.GetGeneration() || (st.ActiveRevision == "") != (st.LastActivationTime == nil) {
		s.Errorf("the status contradicts itself: %+v", st)
	}
	got := fmt.Sprintf("%s %s", ready.Status, ready.Reason)
	for _, stage := range policy.PolicyBundleStages() {
		if c := findCondition(b, stage); c.Status == metav1.ConditionFalse && stage != policy.PolicyBundleActive {
			got += " " + stage
		}
	}
	if st.ActiveRevision != "" {
		got += ", active"
	}
	if st.Candidate != nil {
		got += ", candidate"
	}
	if got != want {
		s.Errorf("the status is %q, want %q: %s", got, want, ready.Message)
	}
}

// replica is one process of the manager.
type replica struct {
	*stage
	*Reconciler
	watch  hosttest.Watcher
	events *record.FakeRecorder
	now    time.Time
	runs   *counting
}

// counting counts how often the gate was gone through.
type counting struct {
	n     int
	fail  error
	now   gate.Report
	crash bool
}

func (c *counting) RunJob(ctx context.Context, job gate.Job) (gate.Report, error) {
	c.n++
	if c.crash {
		panic("the process ends")
	}
	if c.fail != nil || c.now.Refused != "" {
		return c.now, c.fail
	}
	return gate.InProcess{}.RunJob(ctx, job)
}

func (s *stage) replica(name string, leads bool) *replica {
	s.Helper()
	w := hosttest.NewWatcher()
	// A machine that is busy is no news here: neither that a decision takes long, nor
	// that those of a namespace do together.
	host, err := policyhost.New(s.config, "kruise-system", name, policyhost.WithBuiltin(hosttest.BuiltinPolicies(s)),
		policyhost.WithEngine(append(w.EngineOptions(), engine.WithPatience(20), engine.WithShare(1000), hosttest.WithCompiled(s))...),
		policyhost.WithShadows(shadow.WithBusy(func() bool { return false })))
	s.do(err)
	s.Cleanup(host.Close)
	elected := make(chan struct{})
	if leads {
		close(elected)
	}
	r := &replica{stage: s, watch: w, events: record.NewFakeRecorder(100), now: time.Now(), runs: &counting{}}
	store := bundlerevision.Store{Client: s, Reader: s, Namespace: "kruise-system"}
	r.Reconciler = &Reconciler{
		Client: s, Reader: s, Events: r.events, Leads: elected, Host: host,
		Publisher: &Publisher{
			Platform: fetch.New(s), Tenants: fetch.New(s, fetch.WithHosts(fetch.Hosts{})),
			Gate: gate.New(host.Engine().BuiltinBundle(), gate.WithRunner(r.runs)), Store: store, Host: host,
			Records: func() []decision.Record { return nil }, Clock: func() time.Time { return r.now },
		},
	}
	r.Publisher.WriteStatus = r.writeCheck
	return r
}

// holds checks for which reasons a replica holds in the namespace shop.
func (r *replica) holds(reasons string) {
	r.Helper()
	r.holdsIn("shop", reasons)
}

func (r *replica) holdsIn(namespace, reasons string) {
	r.Helper()
	if got := hosttest.HoldReasons(r.Host.Engine(), namespace); got != reasons {
		r.Errorf("the holds in %s are %q, want %q", namespace, got, reasons)
	}
}

// strict checks that a replica answers by the strict fallback in a namespace.
func (r *replica) strict(namespace, bundle string) {
	r.Helper()
	if got := hosttest.HoldReasons(r.Host.Engine(), namespace); !strings.HasPrefix(got, "Error bundle "+bundle+" takes part in this decision and is missing") {
		r.Errorf("in %s it is decided by %q, want the strict fallback for %s", namespace, got, bundle)
	}
}

func (r *replica) look(keys ...Key) {
	r.Helper()
	for _, key := range keys {
		if _, err := r.Reconcile(r.Context(), key); err != nil {
			r.Fatal(err)
		}
	}
}

func (r *replica) start() {
	r.Helper()
	_, err := r.Host.LoadBundles(r.Context())
	r.do(err)
}

func (r *replica) told() (out []string) {
	for {
		select {
		case e := <-r.events.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

// kept are the archives of a bundle.
func (s *stage) kept(key Key) []appsv1.ControllerRevision {
	s.Helper()
	list := &appsv1.ControllerRevisionList{}
	s.do(s.List(s.Context(), list))
	b := s.bundle(key)
	return slices.DeleteFunc(list.Items, func(r appsv1.ControllerRevision) bool { return !metav1.IsControlledBy(&r, b) })
}

// server has one archive.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	archive []byte
}

func (s *stage) server() *server {
	v := &server{}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.archive == nil {
			http.Error(w, "secret", http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(v.archive)
	}))
	s.Cleanup(v.Close)
	return v
}

func (v *server) have(archive []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.archive = archive
}

// signer signs archives.
type signer struct {
	*stage
	file, public string
}

func (s *stage) signer() signer {
	s.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.do(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	s.do(err)
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	s.do(err)
	file := filepath.Join(s.TempDir(), "key.pem")
	s.do(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return signer{s, file, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))}
}

func (s *stage) archive(files map[string]string, sequence int64) []byte {
	s.Helper()
	b, err := bundle.FromFiles("x", files)
	s.do(err)
	var out bytes.Buffer
	s.do(b.BuildArchive(&out, bundle.Build{Sequence: &sequence, Tests: true}))
	return out.Bytes()
}

func (s signer) sign(archive []byte) []byte {
	s.Helper()
	var out bytes.Buffer
	s.do(bundle.SignArchive(&out, bytes.NewReader(archive), bundle.Signing{Key: s.file}))
	return out.Bytes()
}
