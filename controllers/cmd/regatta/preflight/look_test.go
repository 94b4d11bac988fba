// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// newLook has a manager with arguments, and the values that users set.
func newLook(values map[string]any, args ...string) *look {
	l := &look{release: release{name: "kruise", namespace: "default", values: values}, manager: appsv1.Deployment{}}
	l.manager.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Args: args}}
	return l
}

// rowsOf are the texts of rows about a field.
func rowsOf(l *look, field string) (out []string) {
	for _, row := range l.rows {
		if row.Field == field {
			out = append(out, strings.Join([]string{string(row.Effect), row.There, row.Here, row.Do}, " | "))
		}
	}
	return out
}

// What preflight says to do is done by a user line by line, so that no line may undo another one.
func TestWhatToDoAboutFlagsAndGatesFitsTogether(t *testing.T) {
	l := newLook(map[string]any{"featureGates": "PodWebhook=true, CloneSetShortHash=1"},
		"--feature-gates=PodWebhook=true,ImagePullJobGate=true,ResourcesDeletionProtection=false", "--crr-workers=10", "--rest-config-qps=30",
		"--namespace=shop", "--expectation-timeout=9m", "--policy-dir=/a", "--unknown-flag=1", "--cloneset-workers=2")
	if err := l.compareFlags(t.Context()); err != nil {
		t.Fatal(err)
	}
	gates := `in featureGates; all of them as there: --set 'featureGates=PodWebhook=true\,CloneSetShortHash=false\,ImagePullJobGate=true\,ResourcesDeletionProtection=false'`
	extra := `--set-json 'manager.extraArgs=["--expectation-timeout=9m","--namespace=shop"]'`
	for field, want := range map[string]string{
		"feature gate ImagePullJobGate":            "Differs | on | off | ImagePullJobGate=true " + gates,
		"feature gate ResourcesDeletionProtection": "Differs | off | on | ResourcesDeletionProtection=false " + gates,
		"--crr-workers":                            "Differs | 10 | default | --set manager.workers.containerRecreateRequest=10",
		"--cloneset-workers":                       "Differs | 2 | default | --set manager.workers.cloneSet=2",
		"--rest-config-qps":                        "Differs | 30 | default | --set manager.kubeAPI.qps=30",
		"--namespace":                              "Differs | shop | default | " + extra,
		"--expectation-timeout":                    "Differs | 9m | default | " + extra,
		"--policy-dir":                             "Differs | /a | given by the chart, which goes by it | ",
		"--unknown-flag":                           "Differs | 1 | there is no such flag | ",
	} {
		if diff := cmp.Diff([]string{want}, rowsOf(l, field)); diff != "" {
			t.Errorf("%s:\n%s", field, diff)
		}
	}
}

// The command keeps what users set, but for what is refused.
func TestTheCommandKeepsWhatItCan(t *testing.T) {
	for _, tc := range []struct {
		name   string
		values map[string]any
		want   string
	}{
		{"nothing is refused", map[string]any{"featureGates": "ImagePullJobGate=true"}, ""},
		{"gates as the chart does not take them", map[string]any{"featureGates": "ImagePullJobGate=True,, PodWebhook=0"}, ` --reset-then-reuse-values --set 'featureGates=ImagePullJobGate=true\,PodWebhook=false'`},
		{"no gate is left", map[string]any{"featureGates": "NoSuchGate=true"}, ` --reset-then-reuse-values --set featureGates=`},
		{"ports that this chart has, too", map[string]any{"manager": map[string]any{"webhook": map[string]any{"port": float64(8443)}, "metrics": map[string]any{"port": "8444"}}},
			" --reset-then-reuse-values --set manager.decisions.port=8445"},
		{"the port of profiles", map[string]any{"manager": map[string]any{"pprofAddr": "localhost:8443"}}, " --reset-then-reuse-values --set manager.decisions.port=8444"},
		{"a port of agents on the network of the nodes", map[string]any{"manager": map[string]any{"hostNetwork": true}, "daemon": map[string]any{"port": float64(8443), "pprofAddr": "localhost:8444", "enablePprof": true}},
			" --reset-then-reuse-values --set manager.decisions.port=8445"},
		{"a port of agents on a network of their own", map[string]any{"daemon": map[string]any{"port": float64(8443)}}, ""},
		{"images with values of null", map[string]any{"manager": map[string]any{"image": map[string]any{"repository": nil, "tag": nil}}, "featureGates": nil}, ""},
		{"an image with its tag", map[string]any{"manager": map[string]any{"image": map[string]any{"repository": "a.example.com/b:v1", "tag": "v1.7.1"}}},
			" --reset-then-reuse-values --set manager.image.repository=null --set manager.image.tag=null"},
		{"a value that is missing", map[string]any{"manager": map[string]any{"metrics": nil, "replicas": 3}}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLook(tc.values)
			if err := l.checkValues("Release default/kruise"); err != nil {
				t.Fatal(err)
			}
			if err := l.compareGates(""); err != nil {
				t.Fatal(err)
			}
			want := "helm upgrade kruise charts/kruise --namespace default" + tc.want
			if got := l.release.formatUpgradeCommand(); got != want {
				t.Errorf("the command is\n%s\nwant\n%s", got, want)
			}
			if got := l.release.formatTrialCommand(); got != want+" --dry-run=server" {
				t.Errorf("the trial is %s", got)
			}
		})
	}
	evil := release{name: "a; rm -rf b", namespace: "$(c)"}
	if got := evil.formatUpgradeCommand(); got != "helm upgrade 'a; rm -rf b' charts/kruise --namespace '$(c)'" {
		t.Errorf("a name that a shell would run: %s", got)
	}
	var out bytes.Buffer
	if err := (Report{Command: "a", Rows: []Row{{There: "a\x1b[2J\tb\nBlocks"}}}).printReport(&out); err != nil || strings.ContainsAny(out.String(), "\x1b\t") || strings.Count(out.String(), "\n") != 4 {
		t.Errorf("%q: %v", out.String(), err)
	}
}

func TestChooseRevision(t *testing.T) {
	for _, tc := range []struct {
		name      string
		revisions []revision
		want      int
		refusal   string
	}{
		{"none", nil, 0, ""},
		{"the newest is not the last by its name", []revision{{10, "deployed"}, {9, "superseded"}}, 10, ""},
		{"two are deployed", []revision{{9, "deployed"}, {10, "deployed"}}, 10, ""},
		{"the last one failed", []revision{{1, "deployed"}, {2, "failed"}}, 1, ""},
		{"the first one failed", []revision{{1, "failed"}}, 1, ""},
		{"Helm was ended", []revision{{1, "deployed"}, {2, "pending-upgrade"}}, 1, "refused: another operation is in progress"},
		{"Helm was ended as it installed", []revision{{1, "pending-install"}}, 0, "refused: another operation is in progress"},
		{"an uninstall was refused", []revision{{1, "superseded"}, {2, "uninstalling"}}, 0, "refused: it has no deployed revision"},
	} {
		chosen, refusal := chooseRevision(tc.revisions)
		got := 0
		if chosen != nil {
			got = chosen.number
		}
		if got != tc.want || refusal != tc.refusal {
			t.Errorf("%s: revision %d, %q, want %d, %q", tc.name, got, refusal, tc.want, tc.refusal)
		}
	}
}

func TestAReleaseThatUnpacksToTooMuchIsNotRead(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	zeros := make([]byte, 1<<20)
	for range mostOfRelease>>20 + 1 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := decodeRelease([]byte(base64.StdEncoding.EncodeToString(packed.Bytes()))); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("got %v", err)
	}
}
