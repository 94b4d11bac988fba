// SPDX-License-Identifier: Apache-2.0

package support

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/record"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// plant puts secrets into every place that a user may have one in.
func plant(t *testing.T, s *shop) {
	t.Helper()
	for _, o := range []client.Object{&admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}} {
		name := map[bool]string{true: "kruise-validating-webhook-configuration", false: "kruise-mutating-webhook-configuration"}[fmt.Sprintf("%T", o) == "*v1.ValidatingWebhookConfiguration"]
		o.SetName(name)
		if name == "kruise-validating-webhook-configuration" {
			cert, key := newCertificate(t)
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			v := o.(*admissionv1.ValidatingWebhookConfiguration)
			v.Annotations = map[string]string{"example.com/note": secret(10), lastApplied: secret(11)}
			v.Webhooks = v.Webhooks[:1]
			v.Webhooks[0].ClientConfig.CABundle = append(append(cert, key...), secret(12)...)
			if err := s.Update(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := s.Delete(t.Context(), o); err != nil { // nothing answers it
			t.Fatal(err)
		}
	}
	if err := s.Delete(t.Context(), &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "nothing"}}); err == nil {
		t.Fatal("there is no such configuration")
	}
	for n, text := range []string{
		`{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: other}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: kruise-system, annotations: {` + lastApplied + `: $S}}, stringData: {password: $S}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: db, namespace: kruise-system, labels: {app.kubernetes.io/name: kruise}}, data: {url: $S}}`,
		`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web, namespace: shop, annotations: {example.com/note: $S, ` + lastApplied + `: '{"x": "$S"}'}}, spec: {
			selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}, annotations: {vault.example.com/inject: $S}}, spec: {containers: [{name: main, image: "example.com/web:1",
			env: [{name: PLAIN, value: $E}, {name: OTHER, value: $S}], command: [sh, -c, "run $S"], args: ["--db=$S", "--header=X-A: $S", "--user", $S, "-p$S", $S, "$S=--x"],
			livenessProbe: {httpGet: {path: /, port: 80, httpHeaders: [{name: X-Any, value: $S}]}}, lifecycle: {postStart: {exec: {command: [curl, "-u", "ann:$S"]}}}}]}}}}`,
		`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: api, namespace: other}, spec: {selector: {matchLabels: {app: api}}, template: {metadata: {labels: {app: api}}, spec: {containers: [{name: main, image: "example.com/web:1"}]}}}}`,
		`{apiVersion: apps.kruise.io/v1beta1, kind: ResourceDistribution, metadata: {name: copies}, spec: {resource: {apiVersion: v1, kind: Secret, metadata: {name: copied, annotations: {a: $S}}, stringData: {password: $S}, data: {x: $B}}, targets: {includedNamespaces: {list: [{name: shop}]}}}}`,
		`{apiVersion: apps.kruise.io/v1alpha1, kind: PodProbeMarker, metadata: {name: idle, namespace: shop}, spec: {selector: {matchLabels: {app: web}}, probes: [{name: idle, containerName: main, podConditionType: example.com/idle, probe: {exec: {command: [check, $S]}}}]}}`,
		`{apiVersion: v1, kind: Event, metadata: {name: e1, namespace: shop}, involvedObject: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, namespace: shop, name: web}, reason: Failed, message: "pulling with token: $S, and $E", type: Warning}`,
		`{apiVersion: v1, kind: Event, metadata: {name: e2, namespace: shop}, involvedObject: {apiVersion: v1, kind: Pod, namespace: shop, name: x}, reason: Failed, message: "not ours $S", type: Warning}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: manager-1, namespace: kruise-system, labels: {control-plane: controller-manager}, annotations: {example.com/x: $S}}, spec: {nodeName: n1,
			securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, containers: [{name: manager, image: x, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}, ports: [{name: metrics, containerPort: 8080}], env: [{name: A, value: $S}]}]}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: agent-1, namespace: kruise-agents, labels: {control-plane: daemon}}, spec: {nodeName: n1, containers: [{name: daemon, image: x, env: [{name: A, value: $S}]}]}}`,
		`{apiVersion: v1, kind: Event, metadata: {name: e3, namespace: kruise-agents}, involvedObject: {apiVersion: apps/v1, kind: DaemonSet, namespace: kruise-agents, name: kruise-daemon}, reason: FailedCreate, message: "exceeded quota", type: Warning}`,
		`{apiVersion: policy.kruise.io/v1alpha1, kind: ClusterPolicyBundle, metadata: {name: freeze}, spec: {files: {freeze.rego: "package extend.rollout.freeze # $S", data.json: '{"k": "$S"}'}}}`,
	} {
		text = strings.NewReplacer("$S", secret(20+n), "$E", secret(2), "$B", base64.StdEncoding.EncodeToString([]byte(secret(20+n))), "\n", " ", "\t", " ").Replace(text)
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if err := s.Create(t.Context(), o); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	bundle := &policyv1alpha1.ClusterPolicyBundle{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: "freeze"}, bundle); err != nil {
		t.Fatal(err)
	}
	bundle.Status.Errors = []string{"data.json:1:1 password=" + secret(40), "x.rego: got " + secret(2)}
	bundle.Status.Conditions = []metav1.Condition{{Type: policyv1alpha1.PolicyBundleReady, Status: metav1.ConditionFalse, Reason: "FetchFailed", LastTransitionTime: metav1.Now(),
		Message: "Get https://ann:" + secret(41) + "@registry.example.com/: Authorization: Bearer " + secret(42)}}
	if err := s.Status().Update(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "kruise-system", Name: "manager-1"}, pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", RestartCount: 2, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "panic: secret=" + secret(43)}}}}
	if err := s.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// logOf is a log with secrets in the forms that programs print them in.
func logOf(t *testing.T) string {
	t.Helper()
	_, key := newCertificate(t)
	quoted, err := json.Marshal(map[string]any{"msg": "x", "token": secret(50), "env": []any{map[string]any{"name": "A", "value": secret(51)}}, "err": "password: " + secret(52)})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join([]string{
		`I1127 07:22:45.1 1 run.go:1] "Starting" version="v1" namespace="shop"`,
		`E1127 07:22:45.1 1 run.go:2] "Failed" err="dial https://ann:` + secret(53) + `@db/: refused" password="` + secret(54) + `"`,
		"Authorization: Basic " + secret(55) + " and more " + secret(55), "X-Auth-Token: " + secret(56), "curl --token " + secret(57) + " -H 'Cookie: a=" + secret(58) + "'",
		string(quoted), "as it is " + secret(2) + ", in base64 " + base64.StdEncoding.EncodeToString([]byte(secret(2))) + fmt.Sprintf(", in hex %x, quoted %q", secret(2), secret(2)),
		strings.ReplaceAll(string(key), "\n", "\n"+""), "eyJhbGciOi.eyJzdWIi" + planted + ".c2ln", "key ghp_" + planted + "0123456789abcdef in a line", "the last line",
	}, "\n") + "\n"
}

// decisionsOf are records with secrets, as managers send them.
func decisionsOf(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	err := record.Write(&out, []decision.Record{{ID: 1, Time: time.Unix(1, 0), Point: rollout.PlanPoint().Name, Outcome: decision.Decided, Output: map[string]any{"holds": []any{map[string]any{"message": "it says " + secret(2)}}},
		Input: map[string]any{"annotations": map[string]any{"example.com/note": secret(60)}, "env": map[string]any{"A": secret(61)}, "text": "password=" + secret(62)}}})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestNoSecretComesOut(t *testing.T) {
	s := newShop(t)
	plant(t, s)
	config := rest.CopyConfig(s.env.Config)
	logs := logOf(t)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return &running{rt, logs, "before the restart, password=" + secret(70) + "\n", "# HELP x\nx{token=\"" + secret(71) + "\",kind=\"Pod\"} 1\n", decisionsOf(t)}
	})
	files, _ := s.writes(t, config, options())
	findPlanted(t, files)
	for name, text := range files {
		if strings.Contains(text, "PRIVATE KEY") {
			t.Errorf("%s has a private key", name)
		}
	}
	for name, want := range map[string][]string{
		"manifest.txt": {"regatta v0.0.1", "IN THE ARCHIVE", "check.json", "LEFT OUT"},
		"version.json": {`"kubernetes": "v1.`, `"regatta": "v0.0.1"`},
		"check.json":   {"regatta.sh/check/v1", `"phase": "After"`},
		"chart/deployment/kruise-controller-manager.json":                                   {"--webhook-timeout-seconds=3", "HTTPS_PROXY", "--decision-log-url=[masked]"},
		"chart/validatingwebhookconfiguration/kruise-validating-webhook-configuration.json": {"[certificate of ", "[left out: no certificate]", `"example.com/note": "[left out: 18 bytes]"`},
		"chart/customresourcedefinition/clonesets.apps.kruise.io.json":                      {"Established"},
		"bundles/clusterpolicybundle/freeze.json":                                           {"sha256:", "FetchFailed", "data.json:1:1"},
		"objects/cloneset/shop/web.json":                                                    {`"--db=[masked]"`, `"name": "PLAIN"`, `"image": "example.com/web:1"`},
		"objects/cloneset/other/api.json":                                                   {`"name": "api"`},
		"objects/resourcedistribution/copies.json":                                          {`"kind": "Secret"`},
		"events/objects.json":                                                               {"CloneSet web", "pulling with token: [masked]"},
		"chart/daemonset/kruise-agents/kruise-daemon.json":                                  {`"namespace": "kruise-agents"`},
		"pods/agent-1.json":                                                                 {`"namespace": "kruise-agents"`},
		"logs/agent-1/daemon.log":                                                           {"the last line"},
		"events/manager.json":                                                               {"DaemonSet kruise-daemon", `"namespace": "kruise-agents"`},
		"logs/manager-1/manager.log":                                                        {`"Starting" version="v1" namespace="shop"`, "the last line", `"Failed" err="dial https://[masked]@db/`},
		"logs/manager-1/manager.previous.log":                                               {"before the restart"},
		"metrics/manager-1.txt":                                                             {`kind="Pod"} 1`},
		"decisions.jsonl":                                                                   {`"decision_id"`, `"rollout/plan`},
		"secrets.txt":                                                                       {"kruise-webhook-certs  ", "db  Opaque"},
	} {
		for _, w := range want {
			if !strings.Contains(files[name], w) {
				t.Errorf("%s lacks %q: %.2000s", name, w, files[name])
			}
		}
	}
	if strings.Contains(files["events/objects.json"], "not ours") {
		t.Error("events of others are in it")
	}
	t.Run("of one namespace", func(t *testing.T) {
		o := options()
		o.Only = "other"
		files, _ := s.writes(t, config, o)
		if files["objects/cloneset/shop/web.json"] != "" || files["objects/cloneset/other/api.json"] == "" || strings.Contains(files["events/objects.json"], "CloneSet web") {
			t.Error("objects of another namespace are in it")
		}
		findPlanted(t, files)
	})
	t.Run("no larger than asked", func(t *testing.T) { testSize(t, s, config) })
	t.Run("of one who may read little", func(t *testing.T) {
		user, err := s.env.AddUser(envtest.User{Name: "jane"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		config := user.Config()
		config.QPS, config.Burst = 50, 100
		files, _ := s.writes(t, config, options())
		for _, want := range []string{"secrets.txt: denied: ", "objects/CloneSet: denied: ", "chart/Deployment: denied: ", "decisions.jsonl: "} {
			if !strings.Contains(files["manifest.txt"], want) {
				t.Errorf("the manifest lacks %q:\n%s", want, files["manifest.txt"])
			}
		}
		findPlanted(t, files)
	})
}

// testSize has what does not compress, and more than fits.
func testSize(t *testing.T, s *shop, config *rest.Config) {
	noise := rest.CopyConfig(config)
	var text strings.Builder
	for n := uint64(1); text.Len() < 3<<20; n = n*6364136223846793005 + 1442695040888963407 {
		fmt.Fprintf(&text, "%x\n", n)
	}
	noise.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return &running{rt, text.String(), text.String(), text.String(), ""}
	})
	o := options()
	o.MaxSize, o.LogBytes, o.Objects = leastSize, 600<<10, 1
	files, size := s.writes(t, noise, o)
	if size > leastSize {
		t.Errorf("it has %d bytes, and %d were asked for", size, leastSize)
	}
	for _, want := range []string{"there is no room left", "all but the last 614400 bytes", "objects/CloneSet: there are more than 1", "metrics/manager-1.txt: it has "} {
		if !strings.Contains(files["manifest.txt"], want) {
			t.Errorf("the manifest lacks %q:\n%s", want, files["manifest.txt"])
		}
	}
	if _, err := WriteArchive(context.Background(), &rest.Config{Host: "http://127.0.0.1:1"}, o, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "asking the API server") {
		t.Errorf("without an API server: %v", err)
	}
}
