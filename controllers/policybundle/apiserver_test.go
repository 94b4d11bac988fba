package policybundle

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
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
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// stage is an API server with bundles and nobody who looks at them but the test.
type stage struct {
	*testing.T
	client.Client
}

func newStage(t *testing.T) *stage {
	t.Helper()
	_, c := apiserver.Serve(t)
	st := &stage{T: t, Client: c}
	for _, ns := range []string{"kruise-system", "shop"} {
		st.do(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	}
	return st
}

// on is the stage for a part of the test.
func (s *stage) on(t *testing.T) *stage { return &stage{T: t, Client: s.Client} }

func (s *stage) do(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// apply makes a bundle, or changes its spec.
func (s *stage) apply(key Key, change func(policy.AnyPolicyBundle)) {
	s.Helper()
	b := empty(key)
	if err := s.Get(s.Context(), key, object(b)); err != nil {
		b.SetName(key.Name)
		b.SetNamespace(key.Namespace)
		change(b)
		s.do(s.Create(s.Context(), object(b)))
		return
	}
	change(b)
	s.do(s.Update(s.Context(), object(b)))
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
	b := empty(key)
	s.do(s.Get(s.Context(), key, object(b)))
	return b
}

// says is what people see: what is enforced, what is tried, and why.
func (s *stage) says(key Key, want string) {
	s.Helper()
	b := s.bundle(key)
	st, ready := b.Standing(), condition(b, policy.PolicyBundleReady)
	if ready == nil {
		s.Fatalf("%s has no condition", key)
	}
	if ready.ObservedGeneration != b.GetGeneration() || st.ObservedGeneration != b.GetGeneration() || (st.ActiveRevision == "") != (st.LastActivationTime == nil) {
		s.Errorf("the status contradicts itself: %+v", st)
	}
	got := fmt.Sprintf("%s %s", ready.Status, ready.Reason)
	for _, stage := range policy.PolicyBundleStages() {
		if c := condition(b, stage); c.Status == metav1.ConditionFalse && stage != policy.PolicyBundleActive {
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
	library *Library
	watch   watcher
	events  *record.FakeRecorder
	now     time.Time
	runs    *counting
}

// counting counts how often the gate was gone through.
type counting struct {
	n    int
	fail error
	now  gate.Report
}

func (c *counting) Run(ctx context.Context, job gate.Job) (gate.Report, error) {
	c.n++
	if c.fail != nil || c.now.Refused != "" {
		return c.now, c.fail
	}
	return gate.InProcess{}.Run(ctx, job)
}

func (s *stage) replica(name string, leads bool) *replica {
	s.Helper()
	w := watcher{make(chan engine.Rollback, 10)}
	l := newLibrary(s.T, engine.WithObserver(w), engine.WithGrace(20*time.Millisecond))
	elected := make(chan struct{})
	if leads {
		close(elected)
	}
	r := &replica{stage: s, library: l, watch: w, events: record.NewFakeRecorder(100), now: time.Now(), runs: &counting{}}
	store := Store{Client: s, Reader: s, Namespace: "kruise-system"}
	r.Reconciler = &Reconciler{
		Client: s, Reader: s, Events: r.events, Leads: elected,
		Follower: &Follower{Store: store, Library: l, Name: name},
		Publisher: &Publisher{
			Platform: fetch.New(s), Tenants: fetch.New(s, fetch.WithHosts(fetch.Hosts{})),
			Gate: gate.New(l.engine.Builtin(), gate.WithRunner(r.runs)), Store: store, Library: l,
			Records: func() []decision.Record { return nil }, Clock: func() time.Time { return r.now },
		},
	}
	return r
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
	all, err := r.Reconciler.List(r.Context())
	r.do(err)
	r.do(r.Enforce(r.Context(), all))
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

func TestBundles(t *testing.T) {
	s := newStage(t)
	for name, test := range map[string]func(*stage){
		"from the first day on":                     firstDay,
		"shadow, canary and promotion by one field": promotion,
		"a canary with kinds to protect":            kindsOfACanary,
		"going back on request":                     goingBack,
		"what is signed":                            signed,
		"a bundle of a namespace":                   ofNamespace,
		"a rollback is for all replicas":            rollback,
		"a canary that is given up":                 givenUp,
		"an archive that somebody changed":          tampered,
		"a gate that fails":                         failing,
		"replicas that are gone":                    buried,
		"what the API server refuses":               refused,
		"a tenant gives way to the platform":        displaced,
	} {
		t.Run(name, func(t *testing.T) { test(s.on(t)) })
	}
}

func firstDay(s *stage) {
	key := platform("first")
	leader, other := s.replica("leader", true), s.replica("other", false)
	s.apply(key, inline(hold("first", "One", "true")))
	other.look(key)
	want(s.T, other.library, "")
	leader.look(key, key)
	other.look(key)
	s.says(key, "True Activated, active")
	if told := leader.told(); len(told) != 1 || !strings.HasPrefix(told[0], "Normal Activated Revision ") || leader.runs.n != 1 || other.runs.n != 0 {
		s.Errorf("the events are %q, after %d and %d gates", told, leader.runs.n, other.runs.n)
	}
	for _, r := range []*replica{leader, other} {
		want(s.T, r.library, "One")
	}
	leader.look(key)
	st := s.bundle(key).Standing()
	if len(st.Replicas) != 2 || len(st.Revisions) != 1 || st.Revisions[0].Replicas != 2 || st.Revisions[0].Revision != st.ActiveRevision {
		s.Errorf("the replicas are %+v, %+v", st.Replicas, st.Revisions)
	}

	s.apply(key, inline(broken))
	leader.look(key, key)
	other.look(key)
	s.says(key, "False CompileFailed Compiled, active")
	b := s.bundle(key)
	if e := b.Standing().Errors; len(e) == 0 || !strings.HasPrefix(e[0], "a.rego:2:") || !strings.Contains(e[0], " rego_parse_error ") {
		s.Errorf("the errors are %q", e)
	}
	if c := condition(b, policy.PolicyBundleTestsPassed); c.Status != metav1.ConditionUnknown || c.Reason != policy.PolicyBundleNotReachedReason {
		s.Errorf("tests: %+v", c)
	}
	if told := leader.told(); len(told) != 1 || !strings.HasPrefix(told[0], "Warning CompileFailed The newest files are not enforced: a.rego:2:") || !strings.Contains(told[0], " stays active.") {
		s.Errorf("the events are %q", told)
	}
	// A restart keeps what was good, without the gate.
	again := s.replica("again", false)
	again.start()
	for _, r := range []*replica{leader, other, again} {
		want(s.T, r.library, "One")
	}

	s.apply(key, inline(with(hold("first", "Two", "true"), "first/a_test.rego", "package extend.rollout.first_test\n\ntest_x if false\n")))
	leader.look(key, key)
	s.says(key, "False TestsFailed TestsPassed, active")
	runs := leader.runs.n
	leader.look(key)
	if leader.runs.n != runs {
		s.Error("the same was checked twice")
	}
	s.apply(key, inline(hold("first", "Two", "true")))
	leader.look(key)
	other.look(key)
	s.says(key, "True Activated, active")
	for _, r := range []*replica{leader, other} {
		want(s.T, r.library, "Two")
	}
	if kept := s.kept(key); len(kept) != 2 || kept[0].Namespace != "kruise-system" {
		s.Errorf("%d are kept", len(kept))
	}
	s.do(s.Delete(s.Context(), object(s.bundle(key))))
	leader.look(key)
	other.look(key)
	want(s.T, other.library, "")
}

func promotion(s *stage) {
	key := platform("promoted")
	leader, other := s.replica("leader", true), s.replica("other", false)
	look := func() { s.Helper(); leader.look(key, key); other.look(key) }
	holds := func(shop, bank string) {
		s.Helper()
		for _, r := range []*replica{leader, other} {
			wantIn(s.T, r.library, "shop", shop)
			wantIn(s.T, r.library, "bank", bank)
		}
	}
	s.apply(key, inline(hold("promoted", "One", "true")))
	look()
	s.apply(key, both(inline(hold("promoted", "Two", "true")), mode(policy.PolicyModeShadow)))
	look()
	s.says(key, "True InShadow, active, candidate")
	holds("One", "One")
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		holds("One", "One")
		if t, ok := other.library.Tally(key); ok && t.Compared > 3 {
			break
		}
	}
	look()
	i := slices.IndexFunc(s.bundle(key).Standing().Replicas, func(r policy.PolicyReplica) bool { return r.Name == "other" })
	if sh := s.bundle(key).Standing().Replicas[i].Shadow; sh == nil || sh.Compared == 0 || len(sh.Differences) != 1 || sh.Differences[0].Point != "rollout/plan" {
		s.Errorf("the shadow is %+v", sh)
	}
	s.apply(key, mode(policy.PolicyModeCanary, "shop"))
	look()
	s.says(key, "True InCanary, active, candidate")
	holds("Two", "One")
	again := s.replica("again", false)
	again.start()
	wantIn(s.T, again.library, "shop", "Two")
	wantIn(s.T, again.library, "bank", "One")
	s.apply(key, mode(policy.PolicyModeEnforce))
	look()
	s.says(key, "True Activated, active")
	holds("Two", "Two")
	// What is only tried is not enforced any more.
	s.apply(key, mode(policy.PolicyModeShadow))
	look()
	s.says(key, "True InShadow, candidate")
	holds("", "")
	s.do(s.Delete(s.Context(), object(s.bundle(key))))
}

func kindsOfACanary(s *stage) {
	key := platform("kinds")
	leader := s.replica("leader", true)
	protects := func(kinds string) map[string]string {
		return map[string]string{"a.rego": "package extend.protection.kinds\n\nsettings := {" + kinds + "}\n"}
	}
	const breakGlass = `"breakGlass": {"users": ["ann"]}`
	for _, tc := range []struct {
		about string
		files map[string]string
		mode  policy.PolicyMode
		names string // of kinds that wait
	}{
		{"no settings of kinds", protects(breakGlass), policy.PolicyModeCanary, ""},
		{"a kind", protects(`"kinds": {"cronjobs.batch": {"cascading": ""}}`), policy.PolicyModeCanary, "cronjobs.batch"},
		{"kinds that are computed", protects(`"kinds": {k: {"cascading": ""} | some k in ["jobs.batch", "secrets"]}`), policy.PolicyModeCanary, "jobs.batch, secrets"},
		{"the same in shadow", protects(`"kinds": {"secrets": {"cascading": ""}}`), policy.PolicyModeShadow, ""},
		{"the same enforced", protects(`"kinds": {"secrets": {"cascading": ""}}`), policy.PolicyModeEnforce, ""},
		{"the same and another one, of which one is protected", protects(`"kinds": {"secrets": {"cascading": ""}, "jobs.batch": {"cascading": ""}}`), policy.PolicyModeCanary, "jobs.batch"},
		{"only what is protected", protects(breakGlass + `, "kinds": {"secrets": {"cascading": ""}}`), policy.PolicyModeCanary, ""},
		{"no protection at all", hold("kinds", "One", "true"), policy.PolicyModeCanary, ""},
	} {
		s.apply(key, both(inline(tc.files), mode(tc.mode, "shop")))
		leader.look(key, key)
		b := s.bundle(key)
		for _, name := range []string{policy.PolicyBundleActive, policy.PolicyBundleReady} {
			c := condition(b, name)
			want := ""
			if tc.names != "" {
				want = fmt.Sprintf(policy.PolicyBundleCanaryKindsMessage, tc.names)
			}
			if _, waits, _ := strings.Cut(c.Message, " Kinds to protect"); c.ObservedGeneration != b.GetGeneration() || waits != strings.TrimPrefix(want, "Kinds to protect") {
				s.Errorf("%s: %s is %s, %q; want %q at its end", tc.about, name, c.Reason, c.Message, want)
			}
		}
		if ready := condition(b, policy.PolicyBundleReady); ready.Status != metav1.ConditionTrue {
			s.Errorf("%s: %s", tc.about, ready.Message)
		}
	}
	s.do(s.Delete(s.Context(), object(s.bundle(key))))
}

func back(to string) func(policy.AnyPolicyBundle) {
	return func(b policy.AnyPolicyBundle) { b.(*policy.ClusterPolicyBundle).Spec.RollbackTo = to }
}

func goingBack(s *stage) {
	key := platform("back")
	leader := s.replica("leader", true)
	var first string
	for i := range keptRevisions + 2 {
		s.apply(key, inline(hold("back", fmt.Sprintf("R%d", i), "true")))
		leader.look(key)
		if i == 1 {
			first = s.bundle(key).Standing().ActiveRevision
		}
	}
	if kept := s.kept(key); len(kept) != keptRevisions+1 {
		s.Errorf("%d are kept", len(kept))
	}
	s.apply(key, back(first[:8]))
	leader.look(key, key)
	s.says(key, "True RolledBackOnRequest, active")
	want(s.T, leader.library, "R1")
	s.apply(key, inline(hold("back", "Newer", "true")))
	leader.look(key)
	want(s.T, leader.library, "R1")
	s.apply(key, back("abcdef012345"))
	leader.look(key)
	s.says(key, "False RevisionUnknown, active")
	want(s.T, leader.library, "R1")
	s.apply(key, back(""))
	leader.look(key)
	s.says(key, "True Activated, active")
	want(s.T, leader.library, "Newer")
	s.do(s.Delete(s.Context(), object(s.bundle(key))))
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
	s.do(b.Build(&out, bundle.Build{Sequence: &sequence, Tests: true}))
	return out.Bytes()
}

func (s signer) sign(archive []byte) []byte {
	s.Helper()
	var out bytes.Buffer
	s.do(bundle.Sign(&out, bytes.NewReader(archive), bundle.Signing{Key: s.file}))
	return out.Bytes()
}

func signed(s *stage) {
	key := platform("signed")
	leader, other := s.replica("leader", true), s.replica("other", false)
	v, ours, theirs := s.server(), s.signer(), s.signer()
	s.apply(key, func(b policy.AnyPolicyBundle) {
		spec := &b.(*policy.ClusterPolicyBundle).Spec
		spec.HTTP = &policy.HTTPPolicySource{URL: v.URL + "/bundle.tar.gz?token=hidden"}
		spec.Verification = &policy.PolicyVerification{Keys: []policy.PolicyKey{{ID: "release", PublicKey: ours.public}}}
	})
	next := func(archive []byte, wantStatus, holds string) {
		s.Helper()
		v.have(archive)
		leader.now = leader.now.Add(time.Hour)
		leader.look(key)
		other.look(key)
		s.says(key, wantStatus)
		want(s.T, leader.library, holds)
		want(s.T, other.library, holds)
	}
	next(nil, "False FetchFailed Fetched", "")
	if m := condition(s.bundle(key), policy.PolicyBundleReady).Message; strings.Contains(m, "secret") || strings.Contains(m, "hidden") {
		s.Errorf("the message tells too much: %s", m)
	}
	two := s.archive(hold("signed", "Two", "true"), 2)
	next(two, "False SignatureInvalid Verified", "")
	next(theirs.sign(two), "False SignatureInvalid Verified", "")
	next(ours.sign(two), "True Activated, active", "Two")
	next(ours.sign(s.archive(hold("signed", "One", "true"), 1)), "False OlderSequence Verified, active", "Two")
	message := condition(s.bundle(key), policy.PolicyBundleReady).Message
	_, older, ok := strings.Cut(message, "spec.rollbackTo: ")
	if !ok {
		s.Fatalf("the message does not say how: %s", message)
	}
	s.apply(key, back(strings.Fields(older)[0][:12]))
	next(ours.sign(s.archive(hold("signed", "One", "true"), 1)), "True RolledBackOnRequest, active", "One")
	s.apply(key, back(""))
	next(nil, "False FetchFailed Fetched, active", "One")
	next(ours.sign(s.archive(hold("signed", "Three", "true"), 3)), "True Activated, active", "Three")

	// With other keys, what was let in by the old ones stays, after a restart too.
	s.apply(key, func(b policy.AnyPolicyBundle) {
		b.(*policy.ClusterPolicyBundle).Spec.Verification.Keys[0].PublicKey = theirs.public
	})
	leader.look(key)
	s.says(key, "False SignatureInvalid Verified, active")
	again := s.replica("again", false)
	again.start()
	want(s.T, again.library, "Three")
	s.do(s.Delete(s.Context(), object(s.bundle(key))))
}

func ofNamespace(s *stage) {
	key := tenant("shop", "own")
	leader, other := s.replica("leader", true), s.replica("other", false)
	s.apply(key, inline(hold("own", "Own", "true")))
	leader.look(key, key)
	other.look(key)
	s.says(key, "True Activated, active")
	for _, r := range []*replica{leader, other} {
		wantIn(s.T, r.library, "shop", "Own")
		wantIn(s.T, r.library, "bank", "")
	}
	if kept := s.kept(key); len(kept) != 1 || kept[0].Namespace != "shop" {
		s.Errorf("%d are kept", len(kept))
	}
	for _, tc := range []struct {
		files      map[string]string
		want, text string
	}{
		{map[string]string{"a.rego": "package override.rollout\nplan := {}"}, "False Unsupported ContractOK, active", "only platform engineers may replace a decision"},
		{map[string]string{"a.rego": "package extend.rollout.own\nhold contains h if some h in data.extend.rollout.other.hold"}, "False Unsupported ContractOK, active", "data.extend.rollout.other"},
		// The whole line is quoted, and no condition has room for it.
		{map[string]string{"a.rego": "package extend.rollout.own\nhold contains [" + strings.Repeat("1, ", 20_000)}, "False CompileFailed Compiled, active", "a.rego:2:"},
	} {
		s.apply(key, inline(tc.files))
		leader.look(key)
		s.says(key, tc.want)
		if e := s.bundle(key).Standing().Errors; len(e) == 0 || !strings.Contains(e[0], tc.text) {
			s.Errorf("the errors are %q", e)
		}
	}
	// A tenant may not have the manager ask servers that the platform does not list.
	s.apply(key, func(b policy.AnyPolicyBundle) {
		b.(*policy.PolicyBundle).Spec.PolicySource = policy.PolicySource{HTTP: &policy.HTTPPolicySource{URL: s.server().URL}}
	})
	leader.look(key)
	s.says(key, "False SourceInvalid Fetched, active")
	s.apply(key, func(b policy.AnyPolicyBundle) {
		b.(*policy.PolicyBundle).Spec.PolicySource = policy.PolicySource{ConfigMap: &policy.ConfigMapPolicySource{Name: "policies"}}
	})
	leader.look(key)
	if e := s.bundle(key).Standing().Errors; len(e) != 1 || !strings.Contains(e[0], "shop/policies") {
		s.Errorf("the errors are %q", e)
	}
	s.do(s.Create(s.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "policies"}, Data: map[string]string{"own.rego": hold("own", "Mapped", "true")["own/a.rego"]}}))
	leader.look(key)
	s.says(key, "True Activated, active")
	wantIn(s.T, leader.library, "shop", "Mapped")
	s.do(s.Delete(s.Context(), object(s.bundle(key))))
}

func displaced(s *stage) {
	mine, theirs := tenant("shop", "displaced"), platform("displacing")
	leader := s.replica("leader", true)
	s.apply(mine, inline(hold("freeze", "Mine", "true")))
	leader.look(mine)
	want(s.T, leader.library, "Mine")
	s.apply(theirs, inline(hold("freeze", "Platform", "true")))
	leader.look(theirs, mine)
	want(s.T, leader.library, "Platform")
	s.says(theirs, "True Activated, active")
	s.says(mine, "False Conflict ContractOK")
	s.do(s.Delete(s.Context(), object(s.bundle(theirs))))
	leader.look(theirs, mine)
	s.says(mine, "True Activated, active")
	want(s.T, leader.library, "Mine")
	s.do(s.Delete(s.Context(), object(s.bundle(mine))))
}

func rollback(s *stage) {
	for name, before := range map[string]map[string]string{"quick": hold("slow", "Quick", "true"), "none": nil} {
		key := platform("slow-" + name)
		leader, other := s.replica("leader", true), s.replica("other", false)
		holds := ""
		if before != nil {
			s.apply(key, inline(before))
			leader.look(key)
			other.look(key)
			holds = "Quick"
		}
		s.apply(key, inline(slow))
		leader.look(key)
		other.look(key)
		exhaust(s.T, other.library, other.watch)
		other.look(key)
		leader.told()
		leader.look(key, key)
		other.look(key)
		next := s.replica("next", true)
		next.start()
		next.look(key)
		status := "False RolledBack"
		if before != nil {
			status += ", active"
		}
		s.says(key, status)
		for _, r := range []*replica{leader, other, next} {
			want(s.T, r.library, holds)
		}
		if told := leader.told(); len(told) != 1 || !strings.HasPrefix(told[0], "Warning RolledBack ") || !strings.Contains(told[0], "other rolled revision ") {
			s.Errorf("the events are %q", told)
		}
		s.apply(key, inline(hold("slow", "Fixed", "true")))
		next.look(key)
		s.says(key, "True Activated, active")
		s.do(s.Delete(s.Context(), object(s.bundle(key))))
	}
}

func givenUp(s *stage) {
	key := platform("canary-slow")
	leader, other := s.replica("leader", true), s.replica("other", false)
	s.apply(key, inline(hold("slow", "Quick", "true")))
	leader.look(key)
	s.apply(key, both(inline(slow), mode(policy.PolicyModeCanary, "shop")))
	leader.look(key)
	other.look(key)
	s.says(key, "True InCanary, active, candidate")
	exhaust(s.T, other.library, other.watch)
	other.look(key)
	leader.look(key)
	other.look(key)
	s.says(key, "False RolledBack, active")
	for _, r := range []*replica{leader, other} {
		wantIn(s.T, r.library, "shop", "Quick")
		wantIn(s.T, r.library, "bank", "Quick")
	}
	s.do(s.Delete(s.Context(), object(s.bundle(key))))
}

func tampered(s *stage) {
	key := tenant("shop", "tampered")
	leader := s.replica("leader", true)
	s.apply(key, inline(hold("tampered", "Good", "true")))
	leader.look(key)
	rev := s.kept(key)[0]
	s.do(s.Delete(s.Context(), &rev))
	other := s.replica("other", false)
	other.look(key)
	says := func(want string) {
		s.Helper()
		st := s.bundle(key).Standing()
		i := slices.IndexFunc(st.Replicas, func(r policy.PolicyReplica) bool { return r.Name == "other" })
		if i < 0 || !strings.Contains(st.Replicas[i].Problem, want) {
			s.Errorf("the replicas are %+v, want %q", st.Replicas, want)
		}
	}
	says("is gone")
	forged := appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: rev.Name, Namespace: "shop", OwnerReferences: rev.OwnerReferences}, Revision: 1}
	forged.Data.Raw = []byte(`{"archive":"aGFja2Vk"}`)
	s.do(s.Create(s.Context(), &forged))
	other.look(key)
	other.start() // nobody else is kept waiting
	says("was changed")
	want(s.T, other.library, "")
	want(s.T, leader.library, "Good")
	leader.look(key) // the leader has it still, and puts it back
	other.look(key)
	want(s.T, other.library, "Good")
	s.do(s.Delete(s.Context(), object(s.bundle(key))))
}

func failing(s *stage) {
	key := platform("failing")
	leader := s.replica("leader", true)
	s.apply(key, inline(hold("failing", "One", "true")))
	leader.runs.fail = errors.New("fork: no memory")
	if _, err := leader.Reconcile(s.Context(), key); err == nil || !strings.Contains(err.Error(), "fork: no memory") {
		s.Errorf("got %v: it is not tried again", err)
	}
	leader.runs.fail = nil
	leader.runs.now = gate.Report{Refused: gate.Limits}
	leader.look(key)
	s.says(key, "False TestsFailed TestsPassed")
	leader.runs.now = gate.Report{}
	leader.look(key) // a minute each time would be too much
	s.says(key, "False TestsFailed TestsPassed")
	leader.now = leader.now.Add(limitsHold + time.Second)
	leader.look(key)
	s.says(key, "True Activated, active")
	s.do(s.Delete(s.Context(), object(s.bundle(key))))
}

func buried(s *stage) {
	key := platform("buried")
	leader, other := s.replica("leader", true), s.replica("other", false)
	s.apply(key, inline(hold("buried", "One", "true")))
	leader.look(key)
	other.look(key)
	leader.Alive = func(context.Context) ([]string, error) { return []string{"leader"}, nil }
	leader.look(key)
	if st := s.bundle(key).Standing(); len(st.Replicas) != 1 || st.Replicas[0].Name != "leader" || len(st.Revisions) != 1 || st.Revisions[0].Replicas != 1 {
		s.Errorf("%+v", st)
	}
	s.do(s.Delete(s.Context(), object(s.bundle(key))))
}

func refused(s *stage) {
	files := inline(hold("a", "One", "true"))
	for name, tc := range map[string]struct {
		key    Key
		change func(policy.AnyPolicyBundle)
		want   string
	}{
		"no source": {platform("x"), func(policy.AnyPolicyBundle) {}, "Exactly one of files, configMap, oci and http"},
		"two sources": {platform("x"), both(files, func(b policy.AnyPolicyBundle) {
			b.(*policy.ClusterPolicyBundle).Spec.ConfigMap = &policy.ConfigMapPolicySource{Name: "x"}
		}), "Exactly one of files, configMap, oci and http"},
		"signed files": {platform("x"), both(files, func(b policy.AnyPolicyBundle) {
			b.(*policy.ClusterPolicyBundle).Spec.Verification = &policy.PolicyVerification{Keys: []policy.PolicyKey{{ID: "a", PublicKey: "-----BEGIN PUBLIC KEY-----"}}}
		}), "cannot be signed"},
		"a canary nowhere":     {platform("x"), both(files, mode(policy.PolicyModeCanary)), "The mode Canary needs canary.namespaces"},
		"a canary of a tenant": {tenant("shop", "x"), both(files, func(b policy.AnyPolicyBundle) { b.(*policy.PolicyBundle).Spec.Mode = policy.PolicyModeCanary }), `supported values: "Enforce", "Shadow"`},
		"a revision misspelt":  {platform("x"), both(files, back("v1")), "spec.rollbackTo"},
		"an address of no kind": {platform("x"), func(b policy.AnyPolicyBundle) {
			b.(*policy.ClusterPolicyBundle).Spec.HTTP = &policy.HTTPPolicySource{URL: "ftp://x"}
		}, "spec.http.url"},
		"an interval too short": {platform("x"), func(b policy.AnyPolicyBundle) {
			b.(*policy.ClusterPolicyBundle).Spec.OCI = &policy.OCIPolicySource{Reference: "x", Interval: &metav1.Duration{Duration: time.Second}}
		}, "An interval is 10s at least"},
		"a private key": {platform("x"), func(b policy.AnyPolicyBundle) {
			spec := &b.(*policy.ClusterPolicyBundle).Spec
			spec.ConfigMap = &policy.ConfigMapPolicySource{Name: "x"}
			spec.Verification = &policy.PolicyVerification{Keys: []policy.PolicyKey{{ID: "a", PublicKey: "-----BEGIN EC PRIVATE KEY-----"}}}
		}, "a private key stays with who signs"},
	} {
		b := empty(tc.key)
		b.SetName(tc.key.Name)
		b.SetNamespace(tc.key.Namespace)
		tc.change(b)
		if err := s.Create(s.Context(), object(b)); err == nil || !strings.Contains(err.Error(), tc.want) {
			s.Errorf("%s: got %v", name, err)
		}
	}
}
