// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/install"
	"github.com/regatta-sh/regatta/test/openkruise"
)

// shop is a cluster with a release of OpenKruise, and a user who types the command.
type shop struct {
	*testing.T
	client.Client
	kubeconfig, chart string
}

// types runs the command, and returns its report and how it ended.
func (s *shop) types(args ...string) (Report, string, int) {
	s.Helper()
	root := &cobra.Command{Use: "regatta", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(NewCommand())
	var text bytes.Buffer
	root.SetOut(&text)
	root.SetArgs(append([]string{"preflight", "--kubeconfig", s.kubeconfig}, args...))
	code := exit.Code(exit.WithExitCodes(root).ExecuteContext(s.Context()))
	var r Report
	if strings.HasPrefix(text.String(), "{") {
		if err := json.Unmarshal(text.Bytes(), &r); err != nil {
			s.Fatal(err)
		}
	}
	return r, text.String(), code
}

// wants checks that the report has rows that begin with what is wanted, of the effect, the
// object and the field.
func (s *shop) wants(r Report, want ...string) {
	s.Helper()
	var have []string
	for _, row := range r.Rows {
		have = append(have, strings.Join([]string{string(row.Effect), row.Object, row.Field, row.There, row.Here, row.Do}, " | "))
	}
	for _, w := range want {
		found := false
		for _, h := range have {
			found = found || strings.HasPrefix(h, w)
		}
		if !found {
			s.Errorf("no row %q in\n%s", w, strings.Join(have, "\n"))
		}
	}
}

func (s *shop) helm(command string, args ...string) {
	s.Helper()
	if out, err := install.Helm(s, "", command, append(args, "--kubeconfig", s.kubeconfig)...); err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
}

func (s *shop) patch(o client.Object, name, patch string) {
	s.Helper()
	o.SetName(name)
	if err := s.Patch(s.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		s.Fatal(err)
	}
}

// newShop is a cluster with a release of OpenKruise whose webhooks are not installed, since no manager answers them.
func newShop(t *testing.T) *shop {
	t.Helper()
	env := apiserver.Start(t)
	s := &shop{T: t, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), chart: openkruise.Chart(t)}
	if err := os.WriteFile(s.kubeconfig, env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if s.Client, err = client.New(env.Config, client.Options{Scheme: known}); err != nil {
		t.Fatal(err)
	}
	if _, text, code := s.types(); code != exit.Fine || !strings.Contains(text, "There is nothing to change over from") {
		t.Errorf("without OpenKruise it ends with %d: %s", code, text)
	}
	s.helm("install", "kruise", s.chart, "--set", "webhookConfiguration.installed=false")
	return s
}

// A cluster in which OpenKruise is installed, from its defaults to all that can be in the way.
func TestPreflight(t *testing.T) {
	s := newShop(t)
	known := s.Scheme()
	if err := s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	openkruise.Put(t, s.Client, openkruise.Objects(t, known, filepath.Join("..", "..", "..", "cloneset", "testdata", "openkruise", "during.yaml")))
	s.helm("upgrade", "kruise", s.chart, "--set", "webhookConfiguration.timeoutSeconds=30")

	t.Run("defaults", func(t *testing.T) {
		s := &shop{t, s.Client, s.kubeconfig, s.chart}
		r, text, code := s.types("-o", "json")
		if code != exit.Fine || r.Command != "helm upgrade kruise charts/kruise --namespace default" {
			t.Errorf("it ends with %d: %s", code, text)
		}
		s.wants(r,
			"Differs | MutatingWebhookConfiguration kruise-mutating-webhook-configuration | mpod.kb.io failurePolicy | Fail | Ignore | --set webhookConfiguration.failurePolicy.pods=Fail",
			`Differs | Deployment kruise-controller-manager | feature gate ImagePullJobGate | on | off | ImagePullJobGate=true in featureGates; all of them as there: --set 'featureGates=ImagePullJobGate=true\,ResourcesDeletionProtection=false'`,
			"Differs | Deployment kruise-controller-manager | feature gate ResourcesDeletionProtection | off | on",
			"Note | CloneSet shop/cart | status | 1 of 3 pods updated | goes on from there",
		)
		if _, text, code := s.types("--fail-on", "differs"); code != exit.Refused || !strings.Contains(text, "EFFECT") {
			t.Errorf("it ends with %d: %s", code, text)
		}
		if _, text, code := s.types("--fail-on", "notes"); code != exit.Usage {
			t.Errorf("it ends with %d: %s", code, text)
		}
	})

	t.Run("a manager in another namespace", func(t *testing.T) {
		s := &shop{t, s.Client, s.kubeconfig, s.chart}
		r, text, code := s.types("-o", "json", "--manager-namespace", "elsewhere")
		if code != exit.Refused || r.Nothing {
			t.Errorf("it ends with %d: %s", code, text)
		}
		s.wants(r, "Blocks | Deployment kruise-system/kruise-controller-manager | metadata.namespace | kruise-system | looked for in elsewhere | regatta preflight --manager-namespace kruise-system")
	})

	t.Run("values that both charts have are kept", func(t *testing.T) {
		s := &shop{t, s.Client, s.kubeconfig, s.chart}
		s.helm("upgrade", "kruise", s.chart, "--set", `webhookConfiguration.timeoutSeconds=10,webhookConfiguration.failurePolicy.pods=Fail,featureGates=ImagePullJobGate=true\,ResourcesDeletionProtection=true`)
		r, text, code := s.types("-o", "json", "--fail-on", "differs")
		for _, row := range r.Rows {
			if row.Effect != Note {
				t.Errorf("it ends with %d: %s", code, text)
			}
		}
	})

	t.Run("everything that is in the way", func(t *testing.T) {
		s := &shop{t, s.Client, s.kubeconfig, s.chart}
		s.helm("upgrade", "kruise", s.chart, "--set", "manager.unknown=1,featureGates=NoSuchGate=true,installation.roleListGroups={*}")
		s.patch(&apiextensionsv1.CustomResourceDefinition{}, "sidecarsets.apps.kruise.io", `{"metadata":{"annotations":{"meta.helm.sh/release-name":null}}}`)
		s.patch(&apiextensionsv1.CustomResourceDefinition{}, "clonesets.apps.kruise.io", `{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}`)
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-controller-manager"}}
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
			t.Fatal(err)
		}
		c := &deployment.Spec.Template.Spec.Containers[0]
		c.Args = append(c.Args, "--cloneset-workers=10")
		c.Env = append(c.Env, corev1.EnvVar{Name: "CUSTOM_RESOURCE_ENABLE", Value: "CloneSet"})
		if err := s.Update(t.Context(), deployment); err != nil {
			t.Fatal(err)
		}
		r, text, code := s.types("-o", "json")
		if code != exit.Refused {
			t.Errorf("it ends with %d: %s", code, text)
		}
		s.wants(r,
			"Blocks | CRD clonesets.apps.kruise.io | metadata.annotations | of release default/other",
			"Blocks | CRD sidecarsets.apps.kruise.io | metadata.annotations | of no release",
			"Blocks | Release default/kruise | manager | set | refused: additional properties 'unknown' not allowed",
			"Blocks | Release default/kruise | featureGates | NoSuchGate=true | there is no feature gate NoSuchGate",
			`Differs | Release default/kruise | installation.roleListGroups | "*" | no effect`,
			"Differs | Deployment kruise-controller-manager | --cloneset-workers | 10 | default | --set manager.workers.cloneSet=10",
			"Differs | Deployment kruise-controller-manager | env CUSTOM_RESOURCE_ENABLE | CloneSet | not set: all kinds | --set 'manager.extraEnv[0].name=CUSTOM_RESOURCE_ENABLE' --set 'manager.extraEnv[0].value=CloneSet'",
		)
		if err := s.Delete(t.Context(), deployment); err != nil {
			t.Fatal(err)
		}
		r, text, code = s.types("-o", "json")
		if code != exit.Fine || r.Nothing {
			t.Errorf("without its Deployment it ends with %d: %s", code, text)
		}
		s.wants(r, "Note | CRD clonesets.apps.kruise.io | metadata | kept without a manager | taken over")
	})
}

// What documents of OpenKruise tell users to set, and what upgrades with that do before and after preflight was asked.
func TestImagesOfOpenKruise(t *testing.T) {
	s := newShop(t)
	own := filepath.Join("..", "..", "..", "..", "charts", "kruise")
	rendered := ""
	upgrade := func(flags ...string) error {
		out, err := install.Helm(s, "", "upgrade", append([]string{"kruise", own, "--namespace", "default", "--dry-run=server", "--kubeconfig", s.kubeconfig}, flags...)...)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		rendered = string(out)
		return nil
	}
	const mirror = "openkruise-registry.cn-shanghai.cr.aliyuncs.com/openkruise/kruise-manager"
	for _, tc := range []struct {
		name string
		set  string
		// refusal is what Helm says to the upgrade without preflight's flags; empty if it works.
		refusal string
		row     string
		command string
		// image is what preflight's command installs, without its tag.
		image string
	}{
		{"a mirror of OpenKruise's image", "manager.image.repository=" + mirror + ",manager.image.tag=v1.7.1", "manager.image.repository: " + mirror + " is an image of OpenKruise",
			"Blocks | Release default/kruise | manager.image.repository | " + mirror + " | refused",
			" --reset-then-reuse-values --set manager.image.repository=null --set manager.image.tag=null", "ghcr.io/regatta-sh/regatta"},
		{"a version of OpenKruise", "manager.image.tag=v1.7.1,manager.replicas=3", "", "Blocks | Release default/kruise | manager.image.tag | v1.7.1 | a version of OpenKruise",
			" --reset-then-reuse-values --set manager.image.tag=null", "ghcr.io/regatta-sh/regatta"},
		{"a mirror of a name of its own", "manager.image.repository=private-registry.com/kruise-manager", "",
			"Differs | Release default/kruise | manager.image.repository | private-registry.com/kruise-manager | kept, and has to be an image of Regatta", "", "private-registry.com/kruise-manager"},
		{"values that only the other chart has", "manager.unknown=1,manager.mo\\.re.a=2", "additional properties",
			"Blocks | Release default/kruise | manager | set | refused: additional properties 'mo.re', 'unknown' not allowed", ` --reset-then-reuse-values --set 'manager.mo\.re=null' --set manager.unknown=null`, "ghcr.io/regatta-sh/regatta"},
		{"a port of a listener that only this chart has", "manager.webhook.port=8443", "manager.webhook.port and manager.decisions.port are both 8443",
			"Blocks | Release default/kruise | manager.webhook.port | 8443 | refused: manager.decisions.port is the same", " --reset-then-reuse-values --set manager.decisions.port=8444", "ghcr.io/regatta-sh/regatta"},
		{"gates, one of which is none, and a level in words", `featureGates=ImagePullJobGate=True\,NoSuchGate=true,manager.log.level=debug`, "featureGates",
			"Blocks | Release default/kruise | featureGates | NoSuchGate=true | there is no feature gate NoSuchGate",
			" --reset-then-reuse-values --set featureGates=ImagePullJobGate=true --set manager.log.level=null", "ghcr.io/regatta-sh/regatta"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &shop{t, s.Client, s.kubeconfig, s.chart}
			s.helm("upgrade", "kruise", s.chart, "--reset-values", "--set", tc.set)
			if err := upgrade("--reuse-values"); err == nil {
				t.Error("the defaults of the other chart are kept, and nothing is refused")
			}
			if err := upgrade(); tc.refusal == "" && err != nil || tc.refusal != "" && (err == nil || !strings.Contains(err.Error(), tc.refusal)) {
				t.Errorf("without flags: %v, want %q", err, tc.refusal)
			}
			r, text, _ := s.types("-o", "json")
			s.wants(r, tc.row)
			flags, ok := strings.CutPrefix(r.Command, "helm upgrade kruise charts/kruise --namespace default")
			if !ok || flags != tc.command {
				t.Fatalf("the command is %q, want %q behind its name: %s", r.Command, tc.command, text)
			}
			typed, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n'`+flags).Output() // a shell has to read it as it is meant
			if err != nil {
				t.Fatal(err)
			}
			if err := upgrade(strings.Fields(string(typed))...); err != nil {
				t.Errorf("preflight's command: %v", err)
			}
			// The upgrade would run what is in the other project's registry otherwise.
			for _, image := range regexp.MustCompile(`image: "?([^"\n]+)`).FindAllStringSubmatch(rendered, -1) {
				if repository, _, _ := strings.Cut(image[1], ":"); repository != tc.image || strings.Contains(image[1], "v1.7.1") {
					t.Errorf("preflight's command installs %s, want %s", image[1], tc.image)
				}
			}
		})
	}
}

// What no API server that tests have can be is checked by itself.
func TestWhatAnOldClusterHas(t *testing.T) {
	l := &look{version: &version.Info{Major: "1", Minor: "28+", GitVersion: "v1.28.4"}}
	l.checkKubernetes()
	if len(l.rows) != 1 || l.rows[0].Effect != Blocks || l.rows[0].There != "v1.28.4" {
		t.Errorf("of Kubernetes 1.28 it says %v", l.rows)
	}
	known := ServedVersions()
	if len(known) != 20 || strings.Join(known["apps.kruise.io/CloneSet"], " ") != "v1alpha1 v1beta1" || strings.Join(known["apps.kruise.io/EphemeralJob"], " ") != "v1alpha1" {
		t.Errorf("it knows %v", known)
	}
}
