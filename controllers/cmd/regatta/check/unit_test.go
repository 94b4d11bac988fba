// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

func newUnit(t *testing.T) *inspector {
	t.Helper()
	i, err := newInspector(&rest.Config{Host: "http://127.0.0.1:1"}, Options{Namespace: "kruise-system", Release: "kruise", Timeout: DefaultTimeout})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// What webhooks make of objects, in clusters with meshes and enforcers.
func TestObjectsThatWebhooksChange(t *testing.T) {
	pod := func(containers ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "x"}, "spec": map[string]any{"containers": containers}}}
	}
	container := func(name, image string) any { return map[string]any{"name": name, "image": image} }
	hooks := func(selector map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"webhooks": []any{map[string]any{"name": "x", "namespaceSelector": selector}}}}
	}
	excluded := map[string]any{"matchExpressions": []any{map[string]any{"key": "control-plane", "operator": "DoesNotExist"}}}
	for name, tc := range map[string]struct {
		kind          string
		before, after *unstructured.Unstructured
		want          string
	}{
		"a pod as it was":      {"Pod", pod(container("a", "a:1")), pod(container("a", "a:1")), ""},
		"a sidecar":            {"Pod", pod(container("a", "a:1")), pod(container("a", "a:1"), container("proxy", "mesh:1")), "Warns | admission | Pod x | spec.containers proxy | a webhook adds this container, of mesh:1"},
		"another image":        {"Pod", pod(container("a", "a:1")), pod(container("a", "mirror/a:1")), "Warns | admission | Pod x | spec.containers a image | a webhook replaces a:1 by mirror/a:1"},
		"webhooks as they are": {"MutatingWebhookConfiguration", hooks(nil), hooks(nil), ""},
		"an enforcer":          {"MutatingWebhookConfiguration", hooks(nil), hooks(excluded), "Warns | admission | MutatingWebhookConfiguration x | webhooks.namespaceSelector"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newUnit(t)
			tc.before.SetName("x")
			i.addChanged(plannedObject{tc.before, &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Kind: tc.kind}, Scope: meta.RESTScopeRoot}}, tc.after)
			if tc.want == "" && len(i.report.Findings) > 0 {
				t.Errorf("it says %v", i.report.Findings)
			}
			if tc.want != "" {
				wants(t, i.report, tc.want)
			}
		})
	}
}

func TestCompareKubelet(t *testing.T) {
	for _, tc := range []struct {
		version string
		server  int
		want    string
	}{
		{"v1.36.1", 36, ""}, {"v1.33.0-eks-1", 36, ""}, {"v1.32.9", 36, "supports 1.33 or newer"}, {"v1.37.0", 36, "newer than the API server"}, {"", 36, ""}, {"v1", 36, ""}, {"v1.x", 36, ""}, {"v1.20.0", 0, ""},
	} {
		if got := compareKubelet(tc.version, tc.server); (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
			t.Errorf("of %s at 1.%d it says %q, want %q", tc.version, tc.server, got, tc.want)
		}
	}
}

func TestVerdict(t *testing.T) {
	for status, want := range map[Status][2]int{Blocks: {exit.Refused, exit.Refused}, Warns: {exit.Fine, exit.Refused}, Unknown: {exit.Fine, exit.Refused}, Fine: {exit.Fine, exit.Fine}} {
		r := Report{Findings: []Finding{{Status: Fine}, {Status: status}}}
		r.sortFindings()
		if r.Result != status || exit.Code(r.exitError(false)) != want[0] || exit.Code(r.exitError(true)) != want[1] {
			t.Errorf("%s: the result is %s, and it ends with %v or, with --strict, %v", status, r.Result, r.exitError(false), r.exitError(true))
		}
	}
}

// What webhooks and users write cannot break the table, nor make it endless.
func TestPrint(t *testing.T) {
	r := Report{Phase: Before, Namespace: "kruise-system"}
	for n := range 8 {
		r.Findings = append(r.Findings, Finding{Blocks, "there", fmt.Sprint("CRD ", n), "metadata", "a\n\tb\x1b[31m\u2028c" + strings.Repeat("x", 5000), ""})
	}
	var out bytes.Buffer
	if err := r.printTable(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 5 || !strings.Contains(lines[1], "CRD 0, CRD 1, CRD 2, CRD 3, CRD 4 and 3 more") || !strings.Contains(lines[1], "a b [31m c") || len(lines[1]) > 2000 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%d lines: %s", len(lines), out.String())
	}
}

// Each webhook and plugin words its refusal in its own way; the fix depends on which one refuses.
func TestRefusals(t *testing.T) {
	for text, want := range map[string]string{
		`admission webhook "validate.kyverno.svc-fail" denied the request: no`:                        "webhook validate.kyverno.svc-fail | make a PolicyException",
		`admission webhook "webhook.openpolicyagent.org" denied the request: no`:                      "webhook webhook.openpolicyagent.org | kubectl label namespace kruise-system openpolicyagent.org/webhook=ignore",
		`admission webhook "x.example.com" denied the request: no`:                                    "webhook x.example.com | leave namespace kruise-system out",
		`Internal error occurred: failed calling webhook "y.example.com": failed to call`:             "webhook y.example.com | have it answer",
		`pods "x" is forbidden: violates PodSecurity "restricted:latest": host namespaces`:            "Pod Security of namespace kruise-system | kubectl label namespace kruise-system",
		`pods "agent" is forbidden: violates PodSecurity "restricted:latest": host namespaces`:        "Pod Security of namespace agents | kubectl label namespace agents",
		`pods "agent" is forbidden: exceeded quota: q, requested: pods=1`:                             "ResourceQuota | kubectl describe resourcequota -n agents",
		`pods "x" is forbidden: exceeded quota: q, requested: pods=1`:                                 "ResourceQuota | kubectl describe resourcequota",
		`roles "x" is forbidden: user "u" is attempting to grant RBAC permissions not currently held`: "rules | have a cluster administrator",
		`something else`: "create | kubectl create --dry-run=server",
	} {
		i := newUnit(t)
		o := &unstructured.Unstructured{}
		o.SetName("x")
		if strings.Contains(text, `"agent"`) {
			o.SetNamespace("agents")
		}
		i.addRefusal(plannedObject{o, &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Kind: "Pod"}, Scope: meta.RESTScopeRoot}}, errors.New(text))
		f := i.report.Findings[0]
		if got := f.Field + " | " + f.Fix; f.Status != Blocks || !strings.HasPrefix(got, want) || !strings.Contains(f.Message, text) {
			t.Errorf("%s: %v, want %s", text, f, want)
		}
	}
}
