// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/policies"
)

const (
	webPod = `{apiVersion: v1, kind: Pod, metadata: {name: web-0, labels: {app: web}}, spec: {containers: [{name: main, image: "web:1"}]}}`
	logSet = `{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {name: log}, spec: {
  selector: {matchLabels: {app: web}}, containers: [{name: log, image: "log:1"}]}}`
	pausedSet = `{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: old}, spec: {
  selector: {matchLabels: {app: web}}, injectionStrategy: {paused: true}, containers: [{name: old, image: "old:1"}]}}`
	goldSet = `{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: gold}, spec: {
  selector: {matchLabels: {app: web}}, namespaceSelector: {matchLabels: {tier: gold}}, containers: [{name: gold, image: "gold:1"}]}}`
	goldNamespace = `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {tier: gold}}}`
	skipRule      = `package extend.injection.jobs

skip contains {"set": "log", "reason": "Jobs", "message": "jobs have no log agent"} if input.pod.labels.app == "web"
`
	refuseRule = `package override.injection

sidecars := {"inject": [], "left": [], "wanted": [], "refuse": [{"rule": "override.injection.closed", "reason": "Closed", "message": "no pods today"}]}
`
)

// files writes texts to files and returns their paths.
func files(t *testing.T, name string, texts ...string) []string {
	t.Helper()
	var out []string
	for i, text := range texts {
		path := filepath.Join(t.TempDir(), strings.Repeat("x", i)+name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out = append(out, path)
	}
	return out
}

// run runs the command without a cluster.
func run(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	cmd := NewCommand(policies.Builtin)
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetIn(strings.NewReader(in))
	cmd.SetArgs(append([]string{"preview"}, args...))
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

var (
	stamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`)
	hash  = regexp.MustCompile(`"hash":"[^"]*"`)
)

func TestPreview(t *testing.T) {
	const log = `--- applied
+++ created
@@ -1,10 +1,23 @@
 apiVersion: v1
 kind: Pod
 metadata:
+  annotations:
+    kruise.io/sidecarset-hash: '{"log":{"updateTimestamp":"TIME","hash":"HASH","sidecarSetName":"log","sidecarList":["log"]}}'
+    kruise.io/sidecarset-hash-without-image: '{"log":{"updateTimestamp":"TIME","hash":"HASH","sidecarSetName":"log","sidecarList":["log"]}}'
+    kruise.io/sidecarset-injected-list: log
   labels:
     app: web
   name: web-0
 spec:
   containers:
+  - env:
+    - name: IS_INJECTED
+      value: "true"
+    image: log:1
+    imagePullPolicy: IfNotPresent
+    name: log
+    terminationMessagePath: /dev/termination-log
+    terminationMessagePolicy: File
   - image: web:1
     name: main
+    resources: {}

SIDECARSET  INJECTED  RULE                       WHY
log         Latest    injection.sidecars.latest  The injectionStrategy names no revision, so the pod gets the latest.
`
	tests := map[string]struct {
		pod    string
		sets   []string
		rule   string
		args   []string
		want   string // in the output; all of it if it begins with ---
		not    string
		err    string
		refuse bool
	}{
		"what is added and by which rule": {sets: []string{logSet}, want: log},
		"a paused set is left out":        {sets: []string{logSet, pausedSet}, want: "old         no        injection.sidecars.paused  The injectionStrategy of SidecarSet old is paused."},
		"no set":                          {sets: []string{goldNamespace}, want: "No SidecarSet selects the pod, and no rule adds one."},
		"another namespace":               {sets: []string{goldSet, goldNamespace}, args: []string{"-n", "other"}, want: "No SidecarSet selects the pod"},
		"by the labels of a namespace":    {sets: []string{goldSet, goldNamespace}, args: []string{"-n", "shop"}, want: "+    image: gold:1"},
		"a rule leaves a set out":         {sets: []string{logSet}, rule: skipRule, want: "jobs have no log agent", not: "image: log:1"},
		"a rule refuses the pod":          {sets: []string{logSet}, rule: refuseRule, err: "no pods today", refuse: true},
		"the pod alone":                   {sets: []string{logSet}, args: []string{"-o", "yaml"}, want: "    image: log:1\n", not: "SIDECARSET"},
		"lists of objects":                {sets: []string{"{apiVersion: v1, kind: List, items: [" + logSet + "]}"}, want: "+    image: log:1"},
		"no pod":                          {pod: logSet, sets: []string{logSet}, err: `apiVersion "apps.kruise.io/v1alpha1" and kind "SidecarSet", want v1 and Pod`},
		"a pod with a wrong field":        {pod: strings.Replace(webPod, `"web:1"`, "7", 1), sets: []string{logSet}, err: "spec.containers.image"},
		"another kind among the sets":     {sets: []string{webPod}, err: `there is a "Pod"; want SidecarSets, their ControllerRevisions and Namespaces`},
		"a set with a wrong field":        {sets: []string{strings.Replace(logSet, `"log:1"`, "[]", 1)}, err: "SidecarSet log: "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.pod == "" {
				tc.pod = webPod
			}
			args := append([]string{"-", "--from", strings.Join(files(t, "set.yaml", tc.sets...), ",")}, tc.args...)
			if tc.rule != "" {
				args = append(args, "--bundle", files(t, "rule.rego", tc.rule)[0])
			}
			got, err := run(t, tc.pod, args...)
			got = hash.ReplaceAllString(stamp.ReplaceAllString(got, "TIME"), `"hash":"HASH"`)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("the error is %v, want %q", err, tc.err)
				}
				var code exit.Error
				if tc.refuse && (!errors.As(err, &code) || code.Code != exit.Refused) {
					t.Errorf("the error %v does not say that a policy refuses", err)
				}
				return
			}
			switch {
			case err != nil:
				t.Fatal(err)
			case strings.HasPrefix(tc.want, "---") && got != tc.want:
				t.Errorf("got:\n%s\nwant:\n%s", got, tc.want)
			case !strings.Contains(got, tc.want) || tc.not != "" && strings.Contains(got, tc.not):
				t.Errorf("got:\n%s", got)
			}
		})
	}
}

func TestAClusterIsNeededWithoutFiles(t *testing.T) {
	if _, err := run(t, webPod, "-"); err == nil || !strings.Contains(err.Error(), "there is no kubeconfig") {
		t.Errorf("the error is %v", err)
	}
}
