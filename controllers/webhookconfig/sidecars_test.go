// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	podwebhook "github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/steps"
	"github.com/regatta-sh/regatta/controllers/webhook/server"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/test/rules"
)

// late is a cache that is behind: it has the objects of each list as they were a while ago.
type late struct {
	client.Client
	by time.Duration

	mu   sync.Mutex
	seen map[string]*seen
}

type seen struct {
	at   time.Time
	list client.ObjectList
}

func (l *late) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := fmt.Sprintf("%T of %s", into, (&client.ListOptions{}).ApplyOptions(opts).Namespace)
	if s := l.seen[key]; s == nil || time.Since(s.at) > l.by {
		if err := l.Client.List(ctx, into, opts...); err != nil {
			return err
		}
		if l.seen == nil {
			l.seen = map[string]*seen{}
		}
		l.seen[key] = &seen{time.Now(), into.DeepCopyObject().(client.ObjectList)}
		return nil
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(l.seen[key].list.DeepCopyObject()).Elem())
	return nil
}

// replica is a manager as far as this goes.
type replica struct {
	*Writer
	engine *engine.Engine
	paths  *http.ServeMux
}

// awaitedKinds are the kinds of which pods may be created right behind an object.
var awaitedKinds = []string{"sidecarset", "workloadspread", "persistentpodstate"}

// faster is how much faster the clock of these replicas goes.
const faster = 20

func newReplica(t *testing.T, api client.Client, behind time.Duration) *replica {
	t.Helper()
	e := rules.Engine(t, "")
	cached := &late{Client: api, by: behind}
	awaited := &PendingObjects{Live: api}
	targets := spread.NewTargets(podscope.Reader{Reader: cached, Live: api, Claims: awaited.ReadClaims}, api, scale.NewFinder(api, nil), "kruise-system", time.Now)
	enabled, err := steps.ListEnabled(func(gate featuregate.Feature) bool { return gate == features.WorkloadSpread }, steps.Needs{
		Cached: cached, Live: api, Engine: e, Namespace: "kruise-system", Awaited: awaited.ReadClaims,
		Targets: targets, Book: spread.NewRecorder(api, api, e, targets, spread.Versions{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	w, _ := newWriter(api, NewRules(e, protection.Gates{}))
	start := time.Now()
	w.Client, w.Now = cached, func() time.Time { return start.Add(faster * time.Since(start)) }
	w.Config = Config{Namespace: "kruise-system", Pods: true, Created: enabled.CreatedMatches(), PodFailurePolicy: admissionv1.Fail, TimeoutSeconds: 10}
	r := &replica{Writer: w, engine: e, paths: http.NewServeMux()}
	handlers, err := server.HandlersByPath(api.Scheme(), api, server.Options{AwaitSidecarSet: w.AwaitSidecarSet, AwaitObject: w.AwaitObject})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range awaitedKinds {
		r.paths.Handle("/validate-apps-kruise-io-"+kind, handlers["/validate-apps-kruise-io-"+kind])
	}
	mutator, _ := podwebhook.New(api, enabled, 8*time.Second)
	pods := &webhook.Admission{Handler: mutator, WithContextFunc: podscope.WithToken}
	r.paths.Handle(MutatePodPath, pods)
	r.paths.Handle(podscope.PathPrefix(MutatePodPath), pods)
	return r
}

// pair is an API server that calls two replicas, whichever.
type pair struct {
	api      client.Client
	replicas []*replica
	mu       sync.Mutex
	pods     int
}

func newPair(t *testing.T) *pair {
	t.Helper()
	env, api := apiServer.Serve(t)
	p := &pair{api: api, replicas: []*replica{newReplica(t, api, 0), newReplica(t, api, 500*time.Millisecond)}}
	for _, r := range p.replicas {
		r.setWatchedReader(configurations(t, env.Config, api))
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, MutatePodPath) {
			p.mu.Lock()
			p.pods++
			p.mu.Unlock()
		}
		p.replicas[rand.IntN(2)].paths.ServeHTTP(w, r)
	}))
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	at := func(path string) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{URL: ptr.To(s.URL + path), CABundle: ca}
	}
	for _, ns := range []string{"shop", "plain", "kruise-system"} {
		create(t, api, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns, Labels: map[string]string{"is": ns}}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "default"}})
	}
	chart(t, api, at("/validate-apps-kruise-io-cloneset"))
	kinds := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kinds"}}
	for _, kind := range awaitedKinds {
		kinds.Webhooks = append(kinds.Webhooks, admissionv1.ValidatingWebhook{
			Name: "v" + kind + ".kb.io", ClientConfig: at("/validate-apps-kruise-io-" + kind), FailurePolicy: ptr.To(admissionv1.Fail),
			Rules:       []admissionv1.RuleWithOperations{newRule("apps.kruise.io", kind+"s", admissionv1.Create, admissionv1.Update)},
			SideEffects: ptr.To(admissionv1.SideEffectClassNoneOnDryRun), AdmissionReviewVersions: []string{"v1"},
		})
	}
	create(t, api, kinds)
	if err := p.replicas[0].SyncConfigurations(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the webhook of SidecarSets is called", func() bool {
		s := sidecarSet("probe", "probe")
		s.Spec.Selector = nil
		return api.Create(t.Context(), s, client.DryRunAll) != nil
	})
	return p
}

// configurations are those that a watch shows.
func configurations(t *testing.T, config *rest.Config, api client.Client) client.Reader {
	t.Helper()
	c, err := cache.New(config, cache.Options{Scheme: api.Scheme(), Mapper: api.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetInformer(t.Context(), &admissionv1.MutatingWebhookConfiguration{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	var g sync.WaitGroup
	t.Cleanup(g.Wait) // after the end of the context
	g.Go(func() {
		if err := c.Start(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("the configurations cannot be watched")
	}
	return c
}

// lead has one replica lead until the test ends, or until it is called.
func (p *pair) lead(t *testing.T, r *replica) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := r.SyncConfigurations(ctx); err != nil && ctx.Err() == nil {
				t.Log("the leader will try again: ", err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// sentSince is how many pods were sent since it was asked last.
func (p *pair) sentSince() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.pods
	p.pods = 0
	return n
}

// configuration is that of new pods, its conditions as one text.
func (p *pair) configuration(t *testing.T) (m *admissionv1.MutatingWebhookConfiguration, conditions string) {
	t.Helper()
	m = &admissionv1.MutatingWebhookConfiguration{}
	get(t, p.api, ConfigurationName, m)
	for _, w := range m.Webhooks {
		for _, c := range w.MatchConditions {
			conditions += c.Expression + "\n"
		}
	}
	return m, conditions
}

func sidecarSet(name, app string) *v1beta1.SidecarSet {
	s := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	s.Spec.UpdateStrategy.Type = v1beta1.NotUpdateSidecarSetStrategyType
	s.Spec.Containers = []v1beta1.SidecarContainer{{
		Container:       corev1.Container{Name: "log", Image: "log:1", ImagePullPolicy: corev1.PullAlways, TerminationMessagePath: "/log", TerminationMessagePolicy: corev1.TerminationMessageReadFile},
		UpgradeStrategy: v1beta1.SidecarContainerUpgradeStrategy{UpgradeType: v1beta1.SidecarContainerColdUpgrade}, PodInjectPolicy: v1beta1.BeforeAppContainerType,
		ShareVolumePolicy: v1beta1.ShareVolumePolicy{Type: v1beta1.ShareVolumePolicyDisabled},
	}}
	return s
}

// injected creates a pod without a name, and reports whether it has a sidecar.
func (p *pair) injected(t *testing.T, namespace string, labels map[string]string) bool {
	t.Helper()
	created := pod(namespace, "", nil)
	created.GenerateName, created.Labels = "p-", labels
	create(t, p.api, created)
	return len(created.Spec.Containers) == 2
}

// Two replicas answer in turn, one of which sees SidecarSets half a second late, while the leader keeps the configuration narrow: each
// pod that is created as soon as its SidecarSet is has the sidecar, and so has each that an update selects from then on.
func TestNoPodComesBeforeItsSidecarSet(t *testing.T) {
	p := newPair(t)
	stop := p.lead(t, p.replicas[1])
	const sets = 33
	var late []string
	for i := range sets {
		if i == sets/2 {
			stop() // the other takes over
			p.lead(t, p.replicas[0])
		}
		name := fmt.Sprintf("set-%d", i)
		set := sidecarSet(name, name)
		if i%4 == 0 {
			set.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"is": "shop"}}
		}
		create(t, p.api, set)
		if !p.injected(t, "shop", map[string]string{"app": name}) {
			late = append(late, name)
		}
		set.Spec.Selector.MatchLabels["app"] = name + "-next"
		if err := p.api.Update(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		if !p.injected(t, "shop", map[string]string{"app": name + "-next"}) {
			late = append(late, name+"-next")
		}
		if i%3 == 0 {
			if err := p.api.Delete(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(late) > 0 {
		t.Errorf("%d of %d pods have no sidecar: %v", len(late), 2*sets, late)
	}
	eventually(t, "the configuration is narrow again", func() bool {
		m, conditions := p.configuration(t)
		return m.Annotations[podscope.Annotation] == "" && *m.Webhooks[0].ClientConfig.URL != "" && strings.HasSuffix(*m.Webhooks[0].ClientConfig.URL, MutatePodPath) &&
			!strings.Contains(conditions, "'set-3-next'") && strings.Contains(conditions, "'set-32-next'")
	})
	eventually(t, "the API server goes by it", func() bool {
		p.sentSince()
		p.injected(t, "shop", map[string]string{"app": "set-3-next"})
		return p.sentSince() == 0
	})
	for what, send := range map[string]func() bool{
		"a pod without labels":                  func() bool { return p.injected(t, "shop", nil) },
		"a pod that an update has let go":       func() bool { return p.injected(t, "shop", map[string]string{"app": "set-1"}) },
		"a pod whose SidecarSet is gone":        func() bool { return p.injected(t, "shop", map[string]string{"app": "set-0-next"}) },
		"a pod of the namespace of the manager": func() bool { return p.injected(t, "kruise-system", map[string]string{"app": "set-1-next"}) },
	} {
		if has := send(); has || p.sentSince() != 0 {
			t.Errorf("%s is sent", what)
		}
	}
	if !p.injected(t, "plain", map[string]string{"app": "set-1-next"}) || p.sentSince() != 1 {
		t.Error("a pod that is selected is not sent once")
	}
}

// Pods are sent from the namespaces alone that SidecarSets name. Where a SidecarSet that selects all is gone, they are again.
func TestNamespacesThatSidecarSetsName(t *testing.T) {
	p := newPair(t)
	p.lead(t, p.replicas[0])
	set := sidecarSet("named", "web")
	set.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "shop"}}
	create(t, p.api, set)
	web := map[string]string{"app": "web"}
	if !p.injected(t, "shop", web) || p.sentSince() != 1 {
		t.Error("the pod of the namespace is not sent once")
	}
	if p.injected(t, "plain", web) || p.sentSince() != 0 {
		t.Error("a pod of another namespace is sent")
	}
	other := sidecarSet("all", "web")
	other.Spec.Containers[0].Name = "other"
	other.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"web"}}}}
	create(t, p.api, other)
	if !p.injected(t, "plain", nil) || p.sentSince() != 1 {
		t.Error("a pod without labels is not sent for NotIn")
	}
	if err := p.api.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pods of other namespaces are not sent any longer", func() bool {
		p.sentSince()
		return !p.injected(t, "plain", nil) && p.sentSince() == 0
	})
}

// A rule that adds SidecarSets has all pods sent before it is active; one that leaves some out does not.
func TestRulesThatAddSidecarSets(t *testing.T) {
	p := newPair(t)
	p.lead(t, p.replicas[0])
	create(t, p.api, sidecarSet("logs", "web"))
	eventually(t, "the leader has seen the SidecarSet", func() bool { m, _ := p.configuration(t); return m.Annotations[podscope.Annotation] == "" })
	activate := func(r *replica, file string) error {
		b, err := bundle.FromFiles("rules", map[string]string{"r.rego": file})
		if err != nil {
			t.Fatal(err)
		}
		next, err := r.engine.CompileBundles(t.Context(), bundle.Set{b})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.AwaitRules(t.Context(), next); err != nil {
			return err
		}
		return r.engine.Swap(next)
	}
	const skip = "package extend.injection.skips\nskip contains {\"set\": \"logs\", \"reason\": \"Canary\", \"message\": \"no\"} if input.pod.labels.skip"
	const add = "package extend.injection.adds\nadd contains {\"set\": \"logs\", \"reason\": \"All\", \"message\": \"all pods\"} if input.pod.labels.app"
	db := map[string]string{"app": "db"}
	for _, r := range p.replicas {
		if err := activate(r, skip); err != nil {
			t.Fatal(err)
		}
	}
	p.sentSince()
	if p.injected(t, "shop", db) || p.sentSince() != 0 {
		t.Error("a rule that leaves pods out has all sent")
	}
	for n, r := range []*replica{p.replicas[1], p.replicas[0]} { // the leader comes second
		if err := activate(r, add); err != nil {
			t.Fatal(err)
		}
		if m, _ := p.configuration(t); len(m.Webhooks) != 1 || len(m.Webhooks[0].MatchConditions) != 0 {
			t.Errorf("the configuration is not wide when the rule is active in replica %d: %+v", n, m.Webhooks)
		}
	}
	if !p.injected(t, "shop", db) {
		t.Error("the rule adds nothing")
	}
	eventually(t, "the claim of the rule is over", func() bool { m, _ := p.configuration(t); return m.Annotations[podscope.Annotation] == "" })
	if !p.injected(t, "shop", db) {
		t.Error("the rule adds nothing after its claim is over")
	}
	for _, r := range p.replicas {
		if err := activate(r, skip); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "fewer pods are sent without the rule", func() bool {
		p.sentSince()
		return !p.injected(t, "shop", db) && p.sentSince() == 0
	})
}

// stuck is a client that can write nothing.
type stuck struct{ client.Client }

var errStuck = errors.New("nothing is written today")

func (stuck) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errStuck
}

// A SidecarSet whose pods would not be sent is refused; a dry run writes nothing.
func TestASidecarSetIsRefusedWhosePodsWouldNotBeSent(t *testing.T) {
	p := newPair(t)
	before, _ := p.configuration(t)
	if err := p.api.Create(t.Context(), sidecarSet("dry", "dry"), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if after, _ := p.configuration(t); after.ResourceVersion != before.ResourceVersion {
		t.Error("a dry run has written the configuration")
	}
	for _, r := range p.replicas {
		r.Client = stuck{r.Client}
	}
	err := p.api.Create(t.Context(), sidecarSet("web", "web"))
	if err == nil || !strings.Contains(err.Error(), "having the API server send the pods of SidecarSet web") || !strings.Contains(err.Error(), errStuck.Error()) {
		t.Errorf("got %v", err)
	}
}

// Whatever reviews a client forges, the claims of a configuration stay within their bounds and describe every pod that any of the
// SidecarSets may select.
func TestClaimsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var kept, all []podscope.PendingSelector
		now := time.Unix(1_000_000, 0)
		long := strings.Repeat("x", rapid.IntRange(0, 60).Draw(t, "long"))
		for range rapid.IntRange(1, 3*mostClaims).Draw(t, "reviews") {
			now = now.Add(time.Millisecond)
			set := sidecarSet(fmt.Sprint("set-", rapid.IntRange(0, 200).Draw(t, "set")), fmt.Sprint("app-", rapid.IntRange(0, 200).Draw(t, "app"), long))
			added := []podscope.PendingSelector{{Set: set.Name, Reach: podscope.DescribePods(set), At: now}}
			all, kept = append(all, added...), boundClaims(kept, added)
			if size := len(podscope.EncodeClaims(kept)); len(kept) > mostClaims || size > claimedBytes {
				t.Fatalf("%d claims of %d bytes are kept", len(kept), size)
			}
		}
		for _, c := range all {
			if !slices.ContainsFunc(kept, func(k podscope.PendingSelector) bool {
				return k.Reach.MatchesAllPods() || k.Set == c.Set && k.Reach.Key() == c.Reach.Key()
			}) {
				t.Fatalf("the pods of %+v are not sent", c)
			}
		}
	})
}

// Reviews that come faster than the configuration may be written wait, and are refused when their request is over.
func TestAFloodOfSidecarSetsIsRefused(t *testing.T) {
	p := newPair(t)
	w := p.replicas[0].Writer
	w.writes = rate.NewLimiter(0.001, 1)
	if err := w.AwaitSidecarSet(t.Context(), sidecarSet("first", "first")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	before, _ := p.configuration(t)
	if err := w.AwaitSidecarSet(ctx, sidecarSet("second", "second")); err == nil || !strings.Contains(err.Error(), "waiting while other objects are written that pods are sent for; try again") {
		t.Errorf("got %v", err)
	}
	if after, _ := p.configuration(t); after.ResourceVersion != before.ResourceVersion {
		t.Error("the configuration was written")
	}
}

// A burst of objects of one kind keeps no object of another kind waiting for longer than its request may take.
func TestABurstOfOneKindDelaysNoOther(t *testing.T) {
	p := newPair(t)
	w := p.replicas[0].Writer
	w.writes = rate.NewLimiter(1, 1)
	before := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var all sync.WaitGroup
	failed := make(chan error, 400)
	for i := range 200 {
		all.Go(func() { failed <- w.AwaitObject(ctx, spreadOf(fmt.Sprint("shop-", i), "web")) })
	}
	for i := range 200 {
		all.Go(func() { failed <- w.AwaitSidecarSet(ctx, sidecarSet(fmt.Sprint("set-", i), "web")) })
	}
	all.Wait()
	for range 400 {
		if err := <-failed; err != nil {
			t.Fatalf("after %s: %v", time.Since(before), err)
		}
	}
	m, _ := p.configuration(t)
	claims, err := podscope.ReadClaims(m)
	if err != nil || !slices.ContainsFunc(claims, func(c podscope.PendingSelector) bool { return c.Reach.MatchesAllPods() }) { // they are beyond the bounds
		t.Errorf("there are %d claims: %v", len(claims), err)
	}
}

// There is an end to requests that wait, and those that are over take no turn of others.
func TestRequestsThatWaitForClaimsAreBounded(t *testing.T) {
	p := newPair(t)
	w := p.replicas[0].Writer
	w.queued.Store(mostClaimers)
	if err := w.AwaitObject(t.Context(), spreadOf("shop", "web")); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("one more is let in: %v", err)
	}
	w.queued.Store(0)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	w.writes = rate.NewLimiter(rate.Every(time.Hour), 1)
	for range 300 {
		if err := w.AwaitObject(over, spreadOf("shop", "web")); err == nil {
			t.Error("a request that is over is answered")
		}
	}
	if err := w.AwaitObject(t.Context(), spreadOf("bank", "web")); err != nil {
		t.Errorf("the only write is used up: %v", err)
	}
	for w.queued.Load() != 0 {
		time.Sleep(time.Millisecond)
	}
}

// The API server takes the conditions of 1,000 SidecarSets, and sends by them.
func TestAThousandSidecarSets(t *testing.T) {
	p := newPair(t)
	f := renderFacts{Config: p.replicas[0].Config}
	at, err := p.replicas[0].readConfigurations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.call = at.call
	for title, tc := range map[string]struct {
		selector  func(i int) *metav1.LabelSelector
		precision podscope.Precision
		yes, no   map[string]string
	}{
		"an application each": {func(i int) *metav1.LabelSelector {
			return &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("app-", i)}}
		}, podscope.Exact, map[string]string{"app": "app-999"}, map[string]string{"app": "db"}},
		"two labels each": {func(i int) *metav1.LabelSelector {
			return &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("app-", i), "tier": "web"}}
		}, podscope.Keys, map[string]string{"app": "app-999", "tier": "web"}, map[string]string{"tier": "web"}},
		"a label of its own each": {func(i int) *metav1.LabelSelector {
			return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: fmt.Sprintf("inject-%d.example.com/sidecar", i), Operator: metav1.LabelSelectorOpExists}}}
		}, podscope.Any, map[string]string{"x": "y"}, nil},
	} {
		t.Run(title, func(t *testing.T) {
			known := pendingObjectLister{sets: map[string]podscope.Selector{}}
			for i := range 1000 {
				set := sidecarSet(fmt.Sprint("set-", i), "")
				set.Spec.Selector = tc.selector(i)
				known.sets[set.Name] = podscope.DescribePods(set)
			}
			want, err := renderWebhooks(f.withAwaited(known))
			if err != nil || want.precision != tc.precision {
				t.Fatalf("the precision is %s, want %s, %v", want.precision, tc.precision, err)
			}
			m, _ := p.configuration(t)
			if err := p.replicas[0].applyMutating(t.Context(), m, want.mutating, nil); err != nil {
				t.Fatal(err)
			}
			sent := func(labels map[string]string) bool {
				p.sentSince()
				p.injected(t, "shop", labels)
				return p.sentSince() == 1
			}
			eventually(t, "a pod that one selects is sent", func() bool { return sent(tc.yes) })
			if tc.no != nil {
				eventually(t, "a pod that none selects is not", func() bool { return !sent(tc.no) })
			}
		})
	}
}

// What a replica adds to entries keeps what is sent already.
func TestWidened(t *testing.T) {
	web := podscope.Selector{Labels: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web"}}}}
	condition, _ := podscope.CELCondition([]podscope.Selector{web})
	f := renderFacts{Config: installation(), gates: allGates(), call: service(), awaited: "t0"}
	var err error
	if f.configs, err = f.pathConfigs(); err != nil {
		t.Fatal(err)
	}
	names := func(all []admissionv1.MutatingWebhook) (out []string) {
		for _, w := range all {
			if *w.ClientConfig.Service.Path != "/mutate-pod/awaiting/t0" {
				t.Errorf("%s is called at %s", w.Name, *w.ClientConfig.Service.Path)
			}
			out = append(out, fmt.Sprintf("%s %d", w.Name, len(w.MatchConditions)))
		}
		return out
	}
	for name, tc := range map[string]struct {
		budgets   []string
		sidecars  []podscope.Selector
		steps     int
		condition string
		want      []string
	}{
		"nothing is sent":           {condition: condition, want: []string{"mpod-some.kb.io 1"}},
		"budgets alone":             {budgets: []string{"shop"}, condition: condition, want: []string{"mpod.kb.io 0", "mpod-some.kb.io 1"}},
		"steps":                     {steps: 100, condition: condition, want: []string{"mpod-some.kb.io 1"}},
		"steps and budgets":         {steps: 100, budgets: []string{"shop"}, condition: condition, want: []string{"mpod.kb.io 0", "mpod-some.kb.io 1"}},
		"all pods":                  {steps: 100, sidecars: []podscope.Selector{{}}, condition: condition, want: []string{"mpod.kb.io 0"}},
		"to all pods":               {steps: 100, budgets: []string{"shop"}, condition: "true", want: []string{"mpod.kb.io 0"}},
		"what is too long together": {steps: 100, condition: strings.Repeat("x", widestEntry), want: []string{"mpod.kb.io 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := f
			before.budgets, before.sidecars, before.awaited = tc.budgets, tc.sidecars, ""
			before.Created = slices.Clone(before.Created)
			if tc.steps == 0 {
				before.Created = nil
				for _, c := range f.Created {
					if len(c.Conditions) == 0 {
						before.Created = append(before.Created, c)
					}
				}
			}
			r, err := renderWebhooks(before)
			if err != nil {
				t.Fatal(err)
			}
			got := f.widenedWebhooks(r.mutating, tc.condition)
			if !slices.Equal(names(got), tc.want) {
				t.Errorf("got %v, want %v", names(got), tc.want)
			}
			for _, old := range r.mutating {
				for _, c := range old.MatchConditions {
					last := got[len(got)-1]
					if len(last.MatchConditions) > 0 && !strings.Contains(last.MatchConditions[0].Expression, c.Expression) {
						t.Errorf("%q is lost", c.Expression)
					}
				}
			}
		})
	}
}
