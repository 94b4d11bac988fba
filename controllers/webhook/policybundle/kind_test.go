// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle"
	"github.com/regatta-sh/regatta/controllers/policyhost"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/policies"
)

// newJudge is what judges in the manager, with stages that a runner runs.
func newJudge(t testing.TB, runner gate.Runner) *policybundle.Publisher {
	t.Helper()
	host, err := policyhost.New(&rest.Config{Host: "https://127.0.0.1:1"}, "kruise-system", "judge", policyhost.WithBuiltin(policies.Builtin))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(host.Close)
	return &policybundle.Publisher{Gate: gate.New(host.Engine().BuiltinBundle(), gate.WithRunner(runner)), Host: host}
}

const (
	hold     = "package extend.rollout.a\n\nhold contains {\"reason\": \"R\", \"message\": \"m\"} if "
	fine     = hold + "input.update > 5\n"
	unparsed = "package extend.rollout.a\n\nhold contains {\"reason\": \"R\" \"message\": 1}\n"
	misspelt = hold + "input.strategy.maxUnavaliable > 1\n"
	settings = "package extend.protection.a\n\nsettings := {}\n"
	unknown  = "package elsewhere\n\nx := 1\n"
	failing  = "package extend.rollout.a_test\n\ntest_it if false\n"
)

func inline(files ...string) map[string]any {
	out := map[string]any{}
	for i := 0; i < len(files); i += 2 {
		out[files[i]] = files[i+1]
	}
	return map[string]any{"files": out, "mode": "Enforce"}
}

// with is a spec with one more field.
func with(spec map[string]any, field string, value any) map[string]any {
	out := map[string]any{field: value}
	for k, v := range spec {
		if k != field {
			out[k] = v
		}
	}
	return out
}

// ask asks the webhook about a write. Without an old spec it is a creation.
func ask(ctx context.Context, t testing.TB, judge Judge, namespace string, metadata, spec, old map[string]any) admission.Response {
	t.Helper()
	encode := func(metadata, spec map[string]any) runtime.RawExtension {
		all := map[string]any{"name": "own"}
		if namespace != "" {
			all["namespace"] = namespace
		}
		for k, v := range metadata {
			all[k] = v
		}
		raw, err := json.Marshal(map[string]any{"metadata": all, "spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: raw}
	}
	kind, handler := "ClusterPolicyBundle", NewPlatform(judge).ValidatingHandler()
	if namespace != "" {
		kind, handler = "PolicyBundle", NewTenant(judge).ValidatingHandler()
	}
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Name: "own", Namespace: namespace, Operation: admissionv1.Create, Object: encode(metadata, spec),
		Kind: metav1.GroupVersionKind{Group: policy.GroupVersion.Group, Version: policy.GroupVersion.Version, Kind: kind},
	}}
	if old != nil {
		r.Operation, r.OldObject = admissionv1.Update, encode(nil, old)
	}
	return handler.Handle(ctx, r)
}

// causes are the fields of a refusal with what is wrong with them.
func causes(r admission.Response) (out []string) {
	if r.Allowed {
		return nil
	}
	if r.Result.Details == nil || len(r.Result.Details.Causes) == 0 {
		return []string{r.Result.Message}
	}
	for _, c := range r.Result.Details.Causes {
		out = append(out, c.Field+": "+c.Message)
	}
	return out
}

func TestBundlesAreJudgedBeforeTheyAreStored(t *testing.T) {
	judge := newJudge(t, gate.InProcess{})
	canary := func(namespaces ...any) map[string]any { return map[string]any{"namespaces": namespaces} }
	http := func(url string) map[string]any { return map[string]any{"http": map[string]any{"url": url}} }
	key := map[string]any{"keys": []any{map[string]any{"id": "one", "publicKey": "-----BEGIN PUBLIC KEY-----\nYWJj\n-----END PUBLIC KEY-----\n"}}}
	for name, tc := range map[string]struct {
		namespace           string
		metadata, spec, old map[string]any
		want, warnings      []string
	}{
		"policies that pass":                      {spec: inline("a.rego", fine)},
		"policies of a namespace that pass":       {namespace: "shop", spec: inline("a.rego", fine)},
		"a file that does not parse":              {spec: inline("a.rego", unparsed, "b.rego", fine), want: []string{"spec.files[a.rego]: Invalid value: a.rego:3:30 rego_parse_error ", "spec.files[a.rego]: Invalid value: a.rego:3:30 rego_parse_error "}},
		"a fact that does not exist":              {spec: inline("a.rego", misspelt), want: []string{"spec.files[a.rego]: Invalid value: a.rego:3:50 rego_type_error undefined ref: input.strategy.maxUnavaliable"}},
		"a function that does not exist":          {spec: inline("a.rego", hold+"nope(1)\n"), want: []string{"spec.files[a.rego]: Invalid value: a.rego:3:50 rego_type_error undefined function nope"}},
		"an answer of another type":               {spec: inline("a.rego", "package extend.rollout.a\n\nhold contains \"stop\" if true\n"), want: []string{"spec.files[a.rego]: Invalid value: a.rego:3:1 output_error "}},
		"a package that no bundle may have":       {spec: inline("a.rego", unknown), want: []string{"spec.files[a.rego]: Invalid value: a.rego:1:1 contract_error package elsewhere"}},
		"settings of the platform":                {spec: inline("a.rego", settings)},
		"settings of a namespace":                 {namespace: "shop", spec: inline("a.rego", settings), want: []string{"spec.files[a.rego]: Invalid value: a.rego:3:1 contract_error settings"}},
		"data that is not JSON":                   {spec: inline("a.rego", fine, "data.json", "{\n\"a\": }"), want: []string{"spec.files[data.json]: Invalid value: data.json:2:"}},
		"problems in two files":                   {spec: inline("a.rego", unparsed, "b.rego", unparsed), want: []string{"spec.files[a.rego]: ", "spec.files[a.rego]: ", "spec.files[b.rego]: ", "spec.files[b.rego]: "}},
		"a file that is too large":                {spec: inline("a.rego", strings.Repeat("# nothing\n", 200_000)), want: []string{"spec.files: Invalid value: reading bundle own: a.rego is too large"}},
		"a test that would fail":                  {spec: inline("a.rego", fine, "a_test.rego", failing), warnings: []string{"spec.files: the tests are run after this; the files take effect only if they pass (condition TestsPassed): kubectl get clusterpolicybundle own -o wide"}},
		"an update that breaks it":                {old: inline("a.rego", fine), spec: inline("a.rego", unparsed), want: []string{"spec.files[a.rego]: ", "spec.files[a.rego]: "}},
		"an update that mends it":                 {old: inline("a.rego", unparsed), spec: inline("a.rego", fine)},
		"another label of what is broken":         {metadata: map[string]any{"labels": map[string]any{"a": "b"}}, old: inline("a.rego", unparsed), spec: inline("a.rego", unparsed)},
		"another mode of what is broken":          {old: inline("a.rego", unparsed), spec: with(inline("a.rego", unparsed), "mode", "Shadow")},
		"a rollback of what is broken":            {old: inline("a.rego", unparsed), spec: with(inline("a.rego", unparsed), "rollbackTo", "123456")},
		"broken files while it is rolled back":    {old: inline("a.rego", fine), spec: with(inline("a.rego", unparsed), "rollbackTo", "123456"), warnings: []string{"spec.files: they have problems, and are not enforced while spec.rollbackTo is set: a.rego:3:"}},
		"broken files of what is being deleted":   {metadata: map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}, old: inline("a.rego", fine), spec: inline("a.rego", unparsed)},
		"a reference that names nothing":          {spec: map[string]any{"oci": map[string]any{"reference": "registry.example/A B"}}, want: []string{"spec.oci.reference: Invalid value: could not parse reference"}},
		"a reference":                             {spec: map[string]any{"oci": map[string]any{"reference": "registry.example/shop/freeze:v1"}}},
		"a ConfigMap":                             {spec: map[string]any{"configMap": map[string]any{"name": "policies"}}},
		"a URL with credentials":                  {spec: http("https://ann:secret@example.com/bundle.tar.gz"), want: []string{"spec.http.url: Invalid value: it must not hold credentials"}},
		"a CA that is none":                       {spec: map[string]any{"http": map[string]any{"url": "https://example.com/b", "caBundle": "YQ=="}}, want: []string{"spec.http.caBundle: Invalid value: there is no certificate in it"}},
		"a key that is none":                      {spec: with(http("https://example.com/b"), "verification", key), want: []string{"spec.verification.keys: Invalid value: key \"one\": "}},
		"a key that is none, of a bundle with it": {old: with(http("https://example.com/b"), "verification", key), spec: with(http("https://example.com/c"), "verification", key)},
		"a canary in another mode":                {spec: with(inline("a.rego", fine), "canary", canary("shop")), warnings: []string{"spec.canary: has no effect unless spec.mode is Canary"}},
		"a canary that is promoted":               {old: with(with(inline("a.rego", fine), "canary", canary("shop")), "mode", "Canary"), spec: with(inline("a.rego", fine), "canary", canary("shop"))},
		"a canary where no namespace can be":      {spec: with(with(inline("a.rego", fine), "canary", canary("shop", "Bank")), "mode", "Canary"), warnings: []string{`spec.canary.namespaces: no namespace can have the name "Bank"`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ask(t.Context(), t, judge, tc.namespace, tc.metadata, tc.spec, tc.old)
			found := causes(got)
			if got.Allowed != (len(tc.want) == 0) || len(found) != len(tc.want) || len(got.Warnings) != len(tc.warnings) {
				t.Fatalf("allowed is %t for %q with warnings %q; want %q, %q", got.Allowed, found, got.Warnings, tc.want, tc.warnings)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(found[i], want) || strings.Contains(found[i], "\n") {
					t.Errorf("got  %s\nwant %s", found[i], want)
				}
			}
			for i, want := range tc.warnings {
				if !strings.HasPrefix(got.Warnings[i], want) {
					t.Errorf("got  %s\nwant %s", got.Warnings[i], want)
				}
			}
		})
	}
}

// However many problems there are, and however long, a response is bounded.
func TestARefusalIsBounded(t *testing.T) {
	files := []string{}
	for i := range 1000 {
		files = append(files, fmt.Sprintf("f%d.rego", i), "package extend.rollout.a\n\nhold contains x if y == "+strings.Repeat("z", 1<<10)+" \"\n")
	}
	got := ask(t.Context(), t, newJudge(t, gate.InProcess{}), "", nil, inline(files...), nil)
	found := causes(got)
	if got.Allowed || len(found) != 21 || !strings.HasPrefix(found[20], "spec.files: Invalid value: and ") {
		t.Errorf("allowed is %t, with %d causes", got.Allowed, len(found))
	}
	if n := len(got.Result.Message); n > 16<<10 {
		t.Errorf("the message has %d bytes", n)
	}
}

// runner is a gate that ends as its function does.
type runner func(ctx context.Context, job gate.Job) (gate.Report, error)

func (r runner) RunJob(ctx context.Context, job gate.Job) (gate.Report, error) { return r(ctx, job) }

// admitted checks that a bundle is admitted with a warning, since it could not be checked.
func admitted(t *testing.T, got admission.Response, why string) {
	t.Helper()
	if !got.Allowed || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "not checked yet, as "+why) || !strings.HasSuffix(got.Warnings[0], ": kubectl get clusterpolicybundle own -o wide") {
		t.Errorf("allowed is %t with %q: %v", got.Allowed, got.Warnings, got.Result)
	}
}

func TestBundlesThatCannotBeCheckedAreAdmitted(t *testing.T) {
	for name, tc := range map[string]struct {
		run runner
		why string
	}{
		"a check that panics": {func(context.Context, gate.Job) (gate.Report, error) { panic("x") }, "the check failed"},
		"a check that fails":  {func(context.Context, gate.Job) (gate.Report, error) { return gate.Report{}, context.Canceled }, "the check failed"},
		"a container without memory": {func(context.Context, gate.Job) (gate.Report, error) {
			return gate.Report{}, &gate.NoMemoryError{Left: 1 << 20}
		}, "the container of the manager has 1 MiB of memory left"},
		"what takes more time than it may": {func(context.Context, gate.Job) (gate.Report, error) { return gate.Report{Refused: gate.Limits}, nil }, "the check takes more time or memory"},
	} {
		t.Run(name, func(t *testing.T) {
			judge := newJudge(t, tc.run)
			for range 2 { // the turn is given back
				admitted(t, ask(t.Context(), t, judge, "", nil, inline("a.rego", fine), nil), tc.why)
			}
		})
	}
	if got := ask(t.Context(), t, nil, "", nil, inline("a.rego", unparsed), nil); !got.Allowed {
		t.Errorf("it is refused without a judge: %v", got.Result)
	}
}

// A compilation that does not end delays no request for longer than the API server waits, and no other is begun beside it.
func TestACheckThatDoesNotEndHangsNoRequest(t *testing.T) {
	begun, end := make(chan gate.Job, 2), make(chan struct{})
	judge := newJudge(t, runner(func(_ context.Context, job gate.Job) (gate.Report, error) {
		begun <- job
		<-end
		return gate.Report{}, nil
	}))
	request, giveUp := context.WithCancel(t.Context())
	answer := make(chan admission.Response)
	go func() { answer <- ask(request, t, judge, "", nil, inline("a.rego", fine), nil) }()
	if job := <-begun; job.Last != gate.Types || len(job.Active) != 0 || len(job.Records) != 0 {
		t.Errorf("it is checked up to %q, with %d bundles and %d records", job.Last, len(job.Active), len(job.Records))
	}
	giveUp()
	admitted(t, <-answer, "the check takes longer than a request may")
	admitted(t, ask(request, t, judge, "", nil, inline("a.rego", fine), nil), "another bundle is being checked")
	if len(begun) != 0 {
		t.Error("two checks are under way")
	}
	close(end)
	if got := ask(t.Context(), t, judge, "", nil, inline("a.rego", fine), nil); !got.Allowed || len(got.Warnings) != 0 {
		t.Errorf("after the end of the check allowed is %t, with %q", got.Allowed, got.Warnings)
	}
}
