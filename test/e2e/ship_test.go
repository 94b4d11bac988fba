// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// author writes and ships policies. Everything that is typed is printed, with
// what came of it.
type author struct {
	*user
	dir string
}

func newAuthor(ctx SpecContext) *author {
	return &author{newUser(ctx), GinkgoT().TempDir()}
}

// types runs a command as an author types it, and returns what it prints.
func (a *author) types(name string, args ...string) string {
	GinkgoHelper()
	out, err := a.attempts(name, args...)
	Expect(err).NotTo(HaveOccurred(), "%s %s\n%s", name, strings.Join(args, " "), out)
	return out
}

func (a *author) attempts(name string, args ...string) (string, error) {
	line := append([]string{name}, args...)
	if name == "kubectl" {
		args = append([]string{"-n", a.namespace}, args...)
	}
	if e := shared.installed.Endpoint; e != "" && name == "regatta" && (args[0] == "why" || args[1] == "replay") {
		args = append(args, "--endpoint", e, "--insecure-skip-tls-verify")
	}
	out, err := a.try(name, args...)
	GinkgoWriter.Printf("$ %s\n%s\n", strings.ReplaceAll(strings.Join(line, " "), a.dir+"/", ""), strings.ReplaceAll(out, a.dir+"/", ""))
	return out, err
}

func (a *author) writes(file, text string) string {
	GinkgoHelper()
	path := filepath.Join(a.dir, file)
	Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
	return path
}

// key makes a pair of keys, as files.
func (a *author) key(name string) (private, public string) {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	secret, err := x509.MarshalECPrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	open, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	Expect(err).NotTo(HaveOccurred())
	return a.writes(name+".key", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}))),
		string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: open}))
}

// freezes is a policy that holds what is annotated in the author's namespace.
func (a *author) freezes(reason string) string {
	pkg := "extend.rollout.freeze_" + strings.ReplaceAll(a.namespace, "-", "_")
	a.writes("freeze/freeze.rego", `package `+pkg+`

import future.keywords.not

# METADATA
# title: Freeze
# description: What is annotated with shop.example/freeze is not disrupted.
# labels:
#   id: freeze.annotated
hold contains {
	"rule": "freeze.annotated",
	"reason": "`+reason+`",
	"message": sprintf("%s is frozen by its annotation shop.example/freeze.", [input.workload.name]),
} if {
	input.workload.namespace == "`+a.namespace+`"
	input.workload.annotations["shop.example/freeze"] == "true"
}
`)
	a.writes("freeze/freeze_test.rego", `package `+pkg+`_test

import data.`+pkg+` as freeze

frozen := {"name": "web", "namespace": "`+a.namespace+`", "annotations": {"shop.example/freeze": "true"}}

test_an_annotation_holds if count(freeze.hold) == 1 with input.workload as frozen

test_others_go_on if freeze.hold == set() with input.workload as {"name": "web", "namespace": "`+a.namespace+`"}
`)
	return filepath.Join(a.dir, "freeze")
}

// indent makes text the value of a YAML block.
func indent(text string, by int) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+strings.Repeat(" ", by))
}

// platform is a ClusterPolicyBundle that goes with the spec.
func (a *author) platform(name, spec string) {
	GinkgoHelper()
	a.apply("apiVersion: policy.kruise.io/v1alpha1\nkind: ClusterPolicyBundle\nmetadata: {name: " + name + "}\nspec:\n" + spec)
	DeferCleanup(func(ctx SpecContext) {
		b := &policy.ClusterPolicyBundle{}
		b.Name = name
		Expect(client.IgnoreNotFound(shared.k8s.Delete(ctx, b))).To(Succeed())
	})
}

func (a *author) condition(name, condition string) string {
	b := &policy.ClusterPolicyBundle{}
	if err := shared.k8s.Get(a.ctx, client.ObjectKey{Name: name}, b); err != nil {
		return err.Error()
	}
	c := meta.FindStatusCondition(b.Status.Conditions, condition)
	if c == nil || c.ObservedGeneration != b.Generation {
		return "not yet"
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

func (a *author) active(name string) string {
	b := &policy.ClusterPolicyBundle{}
	if err := shared.k8s.Get(a.ctx, client.ObjectKey{Name: name}, b); err != nil {
		return err.Error()
	}
	return b.Status.ActiveRevision
}

var _ = Describe("policies as people ship them", Serial, func() {
	It("are written, signed, pushed, shadowed, replayed, promoted, explained and taken back", func(ctx SpecContext) {
		if shared.installed.Registry == "" {
			Skip("the cluster is not ours and has no registry that we know of")
		}
		a := newAuthor(ctx)
		name := "freeze-" + a.namespace
		tag := shared.installed.Registry + "/policies/" + name + ":stable"
		archive := filepath.Join(a.dir, "freeze.tar.gz")
		private, public := a.key("release")

		By("writing")
		a.types("regatta", "policy", "new", "start", "--dir", a.dir, "--domain", "rollout", "--rule", "hold")
		a.types("regatta", "policy", "test", filepath.Join(a.dir, "start"), "--min", "100")
		dir := a.freezes("Frozen")
		a.types("regatta", "policy", "fmt", "-w", dir)
		a.types("regatta", "policy", "test", dir, "--min", "100")
		a.types("regatta", "policy", "lint", dir)
		Expect(a.types("regatta", "policy", "verify", dir)).To(ContainSubstring("may become active"))
		ship := func(sequence string) {
			GinkgoHelper()
			a.types("regatta", "policy", "build", dir, "-o", archive, "--sequence", sequence)
			a.types("regatta", "policy", "sign", archive, "--signing-key", private)
			Expect(a.types("regatta", "policy", "push", "--insecure", archive, tag)).To(ContainSubstring("@sha256:"))
		}
		ship("1")

		By("shadowing")
		spec := func(mode string) string {
			return "  mode: " + mode + "\n  oci: {reference: \"" + tag + "\", interval: 10s, insecure: true}\n" +
				"  verification:\n    keys:\n    - id: release\n      publicKey: |\n        " + indent(public, 8) + "\n"
		}
		a.platform(name, spec("Shadow"))
		a.types("kubectl", "wait", "--for=condition=Ready", "clusterpolicybundle/"+name, "--timeout=60s")
		Expect(a.condition(name, policy.PolicyBundleVerified)).To(Equal("True Passed"))
		Expect(a.condition(name, policy.PolicyBundleActive)).To(Equal("False InShadow"))
		a.apply(web("web", 3, "nginx:1.20"))
		Eventually(a.user.status).WithArguments("web").Should(Equal(settled(3)))
		a.kubectl("annotate", "clone", "web", "shop.example/freeze=true")
		a.apply(web("web", 3, "nginx:1.21"))
		Eventually(a.user.status).WithArguments("web").Should(Equal(settled(3)), "a shadow held a rollout")
		Eventually(func() string { return a.types("regatta", "policy", "status", name) }).WithPolling(5 * time.Second).
			Should(MatchRegexp(`[1-9]\d* stricter(?s:.*)Frozen`))

		By("replaying")
		Expect(a.types("regatta", "policy", "replay", "--from", "cluster", "--since", "1h", "--bundle", dir, "--as", name, "--fail-on", "looser,error")).
			To(ContainSubstring("stricter"))

		By("promoting")
		a.types("regatta", "policy", "promote", name)
		Expect(a.condition(name, policy.PolicyBundleActive)).To(Equal("True Activated"))
		first := a.active(name)
		a.apply(web("web", 3, "nginx:1.20"))
		Eventually(func() string {
			return a.kubectl("get", "clone", "web", "-o", `jsonpath={.status.conditions[?(@.type=="UpdateHeld")].reason}`)
		}).Should(Equal("Frozen"))
		for pod := range a.pods("web") {
			why := a.types("regatta", "why", "-n", a.namespace, "pod/"+pod)
			Expect(why).To(And(ContainSubstring("Frozen"), ContainSubstring("freeze.annotated"), ContainSubstring(name), ContainSubstring("nearest")))
			break
		}

		By("refusing an unsigned bundle, or an older one")
		a.types("regatta", "policy", "build", dir, "-o", archive, "--sequence", "3")
		a.types("regatta", "policy", "push", "--insecure", archive, tag)
		Eventually(a.condition).WithArguments(name, policy.PolicyBundleVerified).Should(Equal("False SignatureInvalid"))
		Expect(a.active(name)).To(Equal(first))
		a.freezes("StillFrozen")
		ship("2")
		Eventually(a.condition).WithArguments(name, policy.PolicyBundleReady).Should(Equal("True Activated"))
		second := a.active(name)
		Expect(second).NotTo(Equal(first))
		a.freezes("Older")
		ship("1")
		Eventually(a.condition).WithArguments(name, policy.PolicyBundleVerified).Should(Equal("False OlderSequence"))
		Expect(a.active(name)).To(Equal(second))

		By("going back")
		Expect(a.types("regatta", "policy", "diff", name, "--from", second, "--to", first)).To(ContainSubstring(`+	"reason": "Frozen"`))
		a.types("regatta", "policy", "rollback", name)
		Expect(a.active(name)).To(Equal(first))
		Eventually(func() string {
			return a.kubectl("get", "clone", "web", "-o", `jsonpath={.status.conditions[?(@.type=="UpdateHeld")].reason}`)
		}).Should(Equal("Frozen"))
		a.kubectl("annotate", "clone", "web", "shop.example/freeze-")
		Eventually(a.user.status).WithArguments("web").Should(Equal(settled(3)))
	}, SpecTimeout(10*time.Minute))

	It("are what opa builds and signs, from an HTTP server", func(ctx SpecContext) {
		if shared.cluster == nil {
			Skip("the cluster is not ours, and may not reach this machine")
		}
		a := newAuthor(ctx)
		name := "opa-" + a.namespace
		private, public := a.key("opa")
		dir := a.freezes("BuiltByOPA")
		archive := filepath.Join(a.dir, "bundle.tar.gz")
		a.types("opa", "build", "--bundle", dir, "--ignore", "*_test.rego", "-o", archive, "--signing-alg", "ES256", "--signing-key", private)
		a.types("opa", "sign", "--signing-alg", "ES256", "--signing-key", private, "--bundle", dir, "-o", a.dir)
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", shared.cluster.State.APIServerHost()+":0")
		Expect(err).NotTo(HaveOccurred())
		server := &http.Server{Handler: http.FileServer(http.Dir(a.dir))}
		go func() { _ = server.Serve(listener) }()
		DeferCleanup(server.Close)
		a.platform(name, "  http: {url: \"http://"+listener.Addr().String()+"/bundle.tar.gz\", interval: 10s}\n"+
			"  verification:\n    keys:\n    - id: release\n      publicKey: |\n        "+indent(public, 8)+"\n")
		Eventually(a.condition).WithArguments(name, policy.PolicyBundleReady).Should(Equal("True Activated"))

		By("signing it with an unknown key")
		other, _ := a.key("other")
		a.freezes("Forged")
		a.types("opa", "build", "--bundle", dir, "-o", archive, "--signing-alg", "ES256", "--signing-key", other)
		Eventually(a.condition).WithArguments(name, policy.PolicyBundleReady).Should(Equal("False SignatureInvalid"))
		Expect(a.active(name)).NotTo(BeEmpty())
	}, SpecTimeout(10*time.Minute))

	It("of a namespace hold there and nowhere else, and may only be stricter", func(ctx SpecContext) {
		a, other := newAuthor(ctx), newUser(ctx)
		for _, u := range []*user{a.user, other} {
			u.apply(web("web", 2, "nginx:1.20"))
		}
		for _, u := range []*user{a.user, other} {
			Eventually(u.status).WithArguments("web").Should(Equal(settled(2)))
		}
		a.apply(`apiVersion: v1
kind: ConfigMap
metadata: {name: policies}
data:
  closed.rego: |
    package extend.rollout.closed

    hold contains {"reason": "Closed", "message": "Nothing moves here."}
---
apiVersion: policy.kruise.io/v1alpha1
kind: PolicyBundle
metadata: {name: closed}
spec:
  configMap: {name: policies}
`)
		a.types("kubectl", "wait", "--for=condition=Ready", "policybundle/closed", "--timeout=60s")
		a.types("regatta", "policy", "status", "-n", a.namespace)
		for _, u := range []*user{a.user, other} {
			u.apply(web("web", 2, "nginx:1.21"))
		}
		Eventually(other.status).WithArguments("web").Should(Equal(settled(2)))
		Eventually(func() string {
			return a.kubectl("get", "clone", "web", "-o", `jsonpath={.status.conditions[?(@.type=="UpdateHeld")].reason}`)
		}).Should(Equal("Closed"))

		By("being looser, which is refused when it is applied")
		Expect(a.refused(`apiVersion: policy.kruise.io/v1alpha1
kind: PolicyBundle
metadata: {name: closed}
spec:
  configMap: null
  files:
    open.rego: |
      package extend.protection.open

      exempt contains {"reason": "Mine", "message": "It is mine."}
`)).To(ContainSubstring("spec.files[open.rego]: Invalid value: open.rego:3:1 "))

		By("being looser where the source has it, which only the status can say")
		a.apply(`apiVersion: v1
kind: ConfigMap
metadata: {name: policies}
data:
  open.rego: |
    package extend.protection.open

    exempt contains {"reason": "Mine", "message": "It is mine."}
`)
		Eventually(func() string {
			return a.kubectl("get", "policybundle", "closed", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}`)
		}).Should(Equal("Unsupported"))
		Expect(a.kubectl("get", "clone", "web", "-o", `jsonpath={.status.updatedReplicas}`)).To(Or(BeEmpty(), Equal("0")), "the last good policies stay")
		a.kubectl("delete", "policybundle", "closed")
		Eventually(a.user.status).WithArguments("web").Should(Equal(settled(2)))
	}, SpecTimeout(10*time.Minute))
})
