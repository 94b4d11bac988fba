// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
)

// enforcer is a client that has webhooks leave out namespaces, as that of AKS does.
type enforcer struct {
	api  client.Client
	adds []metav1.LabelSelectorRequirement
}

func newEnforcer(api client.Client) *enforcer {
	return &enforcer{api, []metav1.LabelSelectorRequirement{
		{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist},
		{Key: "kubernetes.azure.com/managedby", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"aks"}},
	}}
}

// enforce adds what is missing, and returns how many objects it wrote.
func (e *enforcer) enforce(t testing.TB) (written int) {
	t.Helper()
	m, v := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	for _, o := range []client.Object{m, v} {
		if err := e.api.Get(t.Context(), client.ObjectKey{Name: ConfigurationName}, o); err != nil {
			t.Fatal(err)
		}
	}
	changed := map[client.Object]bool{}
	for i := range m.Webhooks {
		changed[m] = e.add(m.Webhooks[i].NamespaceSelector) || changed[m]
	}
	for i := range v.Webhooks {
		changed[v] = e.add(v.Webhooks[i].NamespaceSelector) || changed[v]
	}
	for o, so := range changed {
		if !so {
			continue
		}
		written++
		if err := e.api.Update(t.Context(), o, client.FieldOwner("admissionsenforcer")); err != nil {
			t.Fatal(err)
		}
	}
	return written
}

func (e *enforcer) add(to *metav1.LabelSelector) (changed bool) {
	for _, r := range e.adds {
		if !hasRequirement(to, r) {
			to.MatchExpressions, changed = append(to.MatchExpressions, r), true
		}
	}
	return changed
}

func hasRequirement(s *metav1.LabelSelector, r metav1.LabelSelectorRequirement) bool {
	for _, o := range s.MatchExpressions {
		if o.Key == r.Key && o.Operator == r.Operator {
			return true
		}
	}
	return false
}

// An entry that another client has changed is taken out like others. An entry of which a field is left, since the
// other client owns it, is none that the API server takes, and nothing at all would be written any more.
func TestAnEntryThatAnotherClientChangedIsTakenOut(t *testing.T) {
	_, api := apiServer.Serve(t)
	chart(t, api, admissionv1.WebhookClientConfig{URL: ptr.To("https://localhost:9443/validate-apps-kruise-io-cloneset"), CABundle: listen(t).ca()})
	w, _ := newWriter(api, policies(t, allGates(), `{"kinds": [{"group": "", "resource": "services"}], "guards": [{"rule": "gold", "group": "", "resource": "configmaps", "operations": ["DELETE"]}]}`))
	if err := w.SyncConfigurations(t.Context()); err != nil {
		t.Fatal(err)
	}
	if newEnforcer(api).enforce(t) == 0 {
		t.Fatal("there is nothing to change")
	}
	v := &admissionv1.ValidatingWebhookConfiguration{}
	get(t, api, ConfigurationName, v)
	w.Rules = policies(t, allGates(), `{"kinds": [{"group": "", "resource": "services"}], "guards": []}`)
	if err := w.SyncConfigurations(t.Context()); err != nil {
		t.Fatal(err)
	}
	get(t, api, ConfigurationName, v)
	for _, hook := range v.Webhooks {
		if hook.Name == "vguard.kb.io" {
			t.Errorf("%s is still there", hook.Name)
		}
	}
}

// countingClient counts writes of the configurations.
type countingClient struct {
	client.Client
	writes int
}

func (c *countingClient) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	c.writes++
	return c.Client.Apply(ctx, o, opts...)
}

func (c *countingClient) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	c.writes++
	return c.Client.Patch(ctx, o, p, opts...)
}

// contested is an installation with webhooks of both configurations that another client can write, and a clock.
type contested struct {
	*Writer
	api    client.Client
	counts *countingClient
	now    time.Time
	events *record.FakeRecorder
}

func newContested(t *testing.T) *contested {
	t.Helper()
	_, api := apiServer.Serve(t)
	chart(t, api, admissionv1.WebhookClientConfig{URL: ptr.To("https://localhost:9443/validate-apps-kruise-io-cloneset"), CABundle: listen(t).ca()})
	w, _ := newWriter(api, policies(t, allGates(), `{"kinds": [], "guards": [{"rule": "gold", "group": "", "resource": "configmaps", "operations": ["DELETE"]}]}`))
	c := &contested{Writer: w, api: api, counts: &countingClient{Client: api}, now: time.Now(), events: record.NewFakeRecorder(100)}
	w.Client, w.Events, w.Now = c.counts, c.events, func() time.Time { return c.now }
	create(t, api, &policyv1beta1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       policyv1beta1.PodUnavailableBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, MaxUnavailable: ptr.To(intstr.FromInt32(1))},
	})
	c.sync(t)
	return c
}

func (c *contested) sync(t *testing.T) {
	t.Helper()
	if err := c.SyncConfigurations(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// insistFor has another client insist on its change at each look for a time, and returns the longest time between two writes. counts has
// the writes.
func (c *contested) insistFor(t *testing.T, d time.Duration, insist func()) (longest time.Duration) {
	t.Helper()
	c.counts.writes = 0
	begin, last := c.now, c.now
	for c.now.Sub(begin) < d {
		insist()
		before := c.counts.writes
		c.sync(t)
		if c.counts.writes > before {
			longest, last = max(longest, c.now.Sub(last)), c.now
		}
		c.now = c.now.Add(c.requeueAfter())
	}
	return longest
}

func (c *contested) read(t *testing.T) ([]admissionv1.MutatingWebhook, []admissionv1.ValidatingWebhook) {
	t.Helper()
	m, v := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	get(t, c.api, ConfigurationName, m)
	get(t, c.api, ConfigurationName, v)
	if len(m.Webhooks) == 0 || len(v.Webhooks) == 0 {
		t.Fatal("there are no webhooks")
	}
	return m.Webhooks, v.Webhooks
}

// told is the next event; empty if there is none.
func (c *contested) told() string {
	select {
	case text := <-c.events.Events:
		return text
	default:
		return ""
	}
}

// Both clients want what the other takes away, and would write indefinitely.
func TestNamespacesThatAPlatformLeavesOutAreNotFoughtOver(t *testing.T) {
	c := newContested(t)
	e := newEnforcer(c.api)
	begin, foreign := c.now, 0
	c.counts.writes = 0
	for c.now.Sub(begin) < 2*time.Hour {
		foreign += e.enforce(t)
		c.sync(t)
		foreign += e.enforce(t)
		c.now = c.now.Add(c.requeueAfter())
	}
	// At once, and after 1, 2, 4, 8, 16, 32 and 64 minutes.
	if most := 2 * 8; c.counts.writes > most || foreign > most+2 {
		t.Errorf("in two hours, we have written %d times and the other client %d times, want at most %d", c.counts.writes, foreign, most)
	}
	wantLeftOut := func(want bool) {
		t.Helper()
		m, v := c.read(t)
		selectors := map[string]*metav1.LabelSelector{}
		for _, hook := range m {
			selectors[hook.Name] = hook.NamespaceSelector
		}
		for _, hook := range v {
			selectors[hook.Name] = hook.NamespaceSelector
		}
		for name, s := range selectors {
			for _, r := range e.adds {
				if hasRequirement(s, r) != want {
					t.Errorf("%s has %v, want %t", name, s, want)
				}
			}
			for _, r := range (renderFacts{Config: c.Config}).selectAllNamespaces().MatchExpressions {
				if !hasRequirement(s, r) {
					t.Errorf("%s has lost %s", name, r.Key)
				}
			}
		}
	}
	wantLeftOut(true)
	for range 2 {
		if got := c.told(); !strings.HasPrefix(got, "Warning WebhookNarrowed client admissionsenforcer has webhooks leave out namespaces") || !strings.Contains(got, "control-plane DoesNotExist; kubernetes.azure.com/managedby NotIn aks") {
			t.Errorf("the event is %q", got)
		}
	}
	if got := c.told(); got != "" {
		t.Errorf("one more event: %q", got)
	}

	t.Run("what a budget needs is written at once, and begins no fight", func(t *testing.T) {
		c.counts.writes = 0
		if err := c.CoverNamespace(t.Context(), "bank"); err != nil {
			t.Fatal(err)
		}
		if foreign := e.enforce(t); c.counts.writes != 2 || foreign != 0 {
			t.Errorf("we have written %d times, the other client %d times", c.counts.writes, foreign)
		}
		m, _ := c.read(t)
		if got := m[0].NamespaceSelector.MatchExpressions[2].Values; !slices.Equal(got, []string{"bank", "default"}) {
			t.Errorf("namespaces are %v", got)
		}
	})
	t.Run("a claim keeps what is left out", func(t *testing.T) {
		c.Config.Created = append(c.Config.Created, match.Created{Namespaces: match.WithSpreads})
		c.counts.writes = 0
		if err := c.AwaitObject(t.Context(), spreadOf("games", "web")); err != nil {
			t.Fatal(err)
		}
		m, _ := c.read(t)
		if c.counts.writes != 1 || !hasRequirement(m[0].NamespaceSelector, e.adds[0]) {
			t.Errorf("after %d writes it has %v", c.counts.writes, m[0].NamespaceSelector)
		}
	})
	t.Run("what one more client leaves out is put back at once", func(t *testing.T) {
		_, v := c.read(t)
		o := &admissionv1.ValidatingWebhookConfiguration{}
		get(t, c.api, ConfigurationName, o)
		team := metav1.LabelSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOpDoesNotExist}
		o.Webhooks[0].NamespaceSelector.MatchExpressions = append(o.Webhooks[0].NamespaceSelector.MatchExpressions, team)
		if err := c.api.Update(t.Context(), o, client.FieldOwner("mallory")); err != nil {
			t.Fatal(err)
		}
		c.sync(t)
		if _, now := c.read(t); !cmp.Equal(v, now) {
			t.Errorf("it is not as it was: %s", cmp.Diff(v, now))
		}
	})
	t.Run("it is put back when the other client is gone", func(t *testing.T) {
		c.now = c.now.Add(exemptionPace.longest)
		c.sync(t)
		wantLeftOut(false)
	})
}

// Whatever another client changes is put back at the first look.
func TestWhatAnotherClientChangesIsPutBack(t *testing.T) {
	c := newContested(t)
	wantM, wantV := c.read(t)
	first := func(v *admissionv1.ValidatingWebhookConfiguration) *admissionv1.ValidatingWebhook {
		return &v.Webhooks[0]
	}
	require := func(r metav1.LabelSelectorRequirement) func(*admissionv1.ValidatingWebhookConfiguration) {
		return func(v *admissionv1.ValidatingWebhookConfiguration) {
			s := first(v).NamespaceSelector
			s.MatchExpressions = append(s.MatchExpressions, r)
		}
	}
	for name, change := range map[string]func(*admissionv1.ValidatingWebhookConfiguration){
		"failurePolicy": func(v *admissionv1.ValidatingWebhookConfiguration) { first(v).FailurePolicy = ptr.To(admissionv1.Fail) },
		"rules": func(v *admissionv1.ValidatingWebhookConfiguration) {
			first(v).Rules[0].Operations = []admissionv1.OperationType{admissionv1.Connect}
		},
		"clientConfig": func(v *admissionv1.ValidatingWebhookConfiguration) {
			first(v).ClientConfig.URL = ptr.To("https://localhost:1/x")
		},
		"objectSelector": func(v *admissionv1.ValidatingWebhookConfiguration) {
			first(v).ObjectSelector.MatchLabels = map[string]string{"a": "b"}
		},
		"timeoutSeconds":   func(v *admissionv1.ValidatingWebhookConfiguration) { first(v).TimeoutSeconds = ptr.To[int32](1) },
		"our requirements": func(v *admissionv1.ValidatingWebhookConfiguration) { first(v).NamespaceSelector = nil },
		"labels that namespaces must have": func(v *admissionv1.ValidatingWebhookConfiguration) {
			first(v).NamespaceSelector.MatchLabels = map[string]string{"guarded": "yes"}
		},
		"a label that namespaces must have":       require(metav1.LabelSelectorRequirement{Key: "guarded", Operator: metav1.LabelSelectorOpExists}),
		"values that namespaces must have":        require(metav1.LabelSelectorRequirement{Key: "guarded", Operator: metav1.LabelSelectorOpIn, Values: []string{"yes"}}),
		"names of namespaces":                     require(metav1.LabelSelectorRequirement{Key: nameKey, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"shop"}}),
		"a label of Kubernetes":                   require(metav1.LabelSelectorRequirement{Key: "pod-security.kubernetes.io/enforce", Operator: metav1.LabelSelectorOpDoesNotExist}),
		"the switch":                              require(metav1.LabelSelectorRequirement{Key: SwitchKey, Operator: metav1.LabelSelectorOpDoesNotExist}),
		"one that is left out for the first time": require(metav1.LabelSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOpDoesNotExist}),
		"a condition that nothing fulfils": func(v *admissionv1.ValidatingWebhookConfiguration) {
			first(v).MatchConditions = append(first(v).MatchConditions, admissionv1.MatchCondition{Name: "never", Expression: "false"})
		},
		"an entry less": func(v *admissionv1.ValidatingWebhookConfiguration) { v.Webhooks = v.Webhooks[1:] },
		"an entry more": func(v *admissionv1.ValidatingWebhookConfiguration) {
			more := first(v).DeepCopy()
			more.Name = "more.kb.io"
			v.Webhooks = append(v.Webhooks, *more)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.validating, c.mutating = configurationContest{}, configurationContest{} // a leader that is new
			c.sync(t)
			v := &admissionv1.ValidatingWebhookConfiguration{}
			get(t, c.api, ConfigurationName, v)
			change(v)
			if err := c.api.Update(t.Context(), v, client.FieldOwner("mallory")); err != nil {
				t.Fatal(err)
			}
			c.sync(t)
			m, got := c.read(t)
			if diff := cmp.Diff(wantV, got) + cmp.Diff(wantM, m); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An event names a client that changes it again whenever it is put back, and its change stays for minutes at most.
func TestAClientThatInsistsIsPutBackWithinMinutes(t *testing.T) {
	c := newContested(t)
	insist := func() {
		t.Helper()
		v := &admissionv1.ValidatingWebhookConfiguration{}
		get(t, c.api, ConfigurationName, v)
		if *v.Webhooks[0].FailurePolicy == admissionv1.Fail {
			return
		}
		v.Webhooks[0].FailurePolicy = ptr.To(admissionv1.Fail)
		if err := c.api.Update(t.Context(), v, client.FieldOwner("mallory")); err != nil {
			t.Fatal(err)
		}
	}
	longest := c.insistFor(t, 2*time.Hour, insist)
	if c.counts.writes < 20 || c.counts.writes > 40 || longest > changePace.longest+time.Second {
		t.Errorf("in two hours it is put back %d times, %s apart at most", c.counts.writes, longest)
	}
	if got := c.told(); !strings.HasPrefix(got, "Warning WebhookChanged client mallory has changed failurePolicy of vguard.kb.io. It is put back") && !strings.HasPrefix(got, "Warning WebhookChanged client mallory has changed failurePolicy of vpod") {
		t.Errorf("the event is %q", got)
	}
	c.now = c.now.Add(changePace.longest)
	c.sync(t)
	if _, v := c.read(t); *v[0].FailurePolicy != admissionv1.Ignore {
		t.Error("it is not put back in the end")
	}
	insist()
	c.sync(t)
	for _, o := range []client.Object{&admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}} {
		o.SetName(ConfigurationName)
		if err := c.api.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	c.now = c.now.Add(time.Hour)
	if err := c.SyncConfigurations(t.Context()); !errors.As(err, &NotInstalledError{}) {
		t.Fatal(err)
	}
	if after := c.requeueAfter(); after != lookAgain {
		t.Errorf("while it is not there, it is looked for each %s", after)
	}
}
