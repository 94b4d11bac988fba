// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// Answers to a probe.
const (
	byUs     = "refused by the manager"
	byPolicy = "refused by the API server's own policy"
	undone   = "refused without a decision"
	noAnswer = "refused, no manager answers"
	letGo    = "let go"
	noServer = "no API server"
	other    = "another error"
)

// probe asks for one thing again and again, always as a dry run, so that nothing
// changes.
type probe struct {
	ask     func(context.Context) error
	mu      sync.Mutex
	answers []string // each once, in order
	last    string
	since   time.Time // of the last answer
	slowest time.Duration
	detail  string
}

func (p *probe) once(ctx context.Context) {
	start := time.Now()
	err := p.ask(ctx)
	took := time.Since(start)
	if ctx.Err() != nil {
		return
	}
	a := answerOf(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if a != noServer {
		p.slowest = max(p.slowest, took)
	}
	if a == other {
		p.detail = err.Error()
	}
	if a != p.last {
		p.last, p.since = a, start
		for _, known := range p.answers {
			if known == a {
				return
			}
		}
		p.answers = append(p.answers, a)
	}
}

func answerOf(err error) string {
	switch {
	case err == nil:
		return letGo
	case strings.Contains(err.Error(), "ValidatingAdmissionPolicy"):
		return byPolicy
	case strings.Contains(err.Error(), "failed calling webhook"):
		return noAnswer
	case strings.Contains(err.Error(), "No policy could decide"):
		return undone
	case strings.Contains(err.Error(), "denied the request"):
		return byUs
	case net.IsConnectionRefused(err), net.IsConnectionReset(err), net.IsProbableEOF(err), strings.Contains(err.Error(), "EOF"),
		strings.Contains(err.Error(), "http2: client connection"), strings.Contains(err.Error(), "apiserver not ready"):
		return noServer
	}
	return other
}

// settled says whether the last answer is the one that is right, for a while.
func (p *probe) settled(want string, since time.Time) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.since
	if at.Before(since) {
		at = since
	}
	return at.Sub(since), p.last == want && time.Since(at) > 4*time.Second
}

func (p *probe) lastAnswer() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

func (p *probe) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers, p.last, p.slowest, p.detail = nil, "", 0, ""
}

func (p *probe) told() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.answers, ", then ")
}

// probes are what is asked while something is broken.
type probes struct {
	protected, always, unrelated, created *probe
	stop                                  context.CancelFunc
	all                                   sync.WaitGroup
}

func (u *user) probes(pod string) *probes {
	GinkgoHelper()
	elsewhere := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-free-"}}
	Expect(shared.k8s.Create(u.ctx, elsewhere)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(shared.k8s.Delete(ctx, elsewhere)).To(Succeed()) })
	plain := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere.Name, Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:1.20"}}},
		}
	}
	Eventually(func() error { return shared.k8s.Create(u.ctx, plain("free")) }).Should(Succeed()) // once there is a service account
	remove := func(o client.Object) func(context.Context) error {
		return func(ctx context.Context) error { return shared.k8s.Delete(ctx, o, client.DryRunAll) }
	}
	p := &probes{
		protected: &probe{ask: remove(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: pod}})},
		always:    &probe{ask: remove(u.object("apps/v1", "Deployment", "web"))},
		unrelated: &probe{ask: remove(plain("free"))},
		created:   &probe{ask: func(ctx context.Context) error { return shared.k8s.Create(ctx, plain("new"), client.DryRunAll) }},
	}
	var ctx context.Context
	ctx, p.stop = context.WithCancel(u.ctx)
	for _, one := range []*probe{p.protected, p.always, p.unrelated, p.created} {
		p.all.Go(func() {
			for ctx.Err() == nil {
				one.once(ctx)
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	DeferCleanup(func() {
		p.stop()
		p.all.Wait()
	})
	return p
}

// fault is something that breaks, and comes right again by itself, or when who
// broke it mends it.
type fault struct {
	name         string
	break_, mend func()
	// server is true for a fault of the API server itself, which holds up every request while it starts.
	server bool
	// with is the failure policy that the fault is tried with. E2E_ALL_FAULTS=1 tries each fault with both, which takes two minutes more.
	with string
}

// Serial, since a manager stops, and since it measures how long other requests take.
var _ = Describe("without the manager", Serial, func() {
	DescribeTable("the cluster goes on",
		func(ctx SpecContext, failure string) {
			if !shared.real || shared.cluster == nil {
				Skip("there are no replicas to be broken")
			}
			u := newUser(ctx)
			u.failurePolicy(failure)
			u.apply(deployment("web", 2))
			u.apply(budget("v1beta1", "web", "selector: {matchLabels: {app: web}}", "maxUnavailable: 0"))
			Eventually(u.budget).WithArguments("web").Should(Equal("0 2 2 2"))
			Eventually(u.failurePolicies).Should(Equal("Fail " + failure))
			u.kubectl("label", "deployment", "web", protect+"=Always")
			DeferCleanup(func(ctx context.Context) {
				u.ctx = ctx
				u.kubectl("label", "deployment", "web", protect+"-")
			})
			p := u.probes(u.names("web")[0])
			var table strings.Builder
			w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "BROKEN\tPROTECTED POD\tLABELLED Always\tUNRELATED PODS\tSLOWEST OF THEM\tWELL AGAIN AFTER")
			for _, f := range u.faults() {
				Expect(f.with).To(BeElementOf("Ignore", "Fail"), f.name)
				if f.with != failure && os.Getenv("E2E_ALL_FAULTS") == "" {
					continue
				}
				By(f.name)
				Eventually(p.protected.lastAnswer).Should(Equal(byUs), "it is not well before: %s", p.protected.told())
				for _, one := range []*probe{p.protected, p.always, p.unrelated, p.created} {
					one.reset()
				}
				f.break_()
				start := time.Now()
				if f.mend != nil {
					time.Sleep(10 * time.Second)
					start = time.Now()
					f.mend()
				}
				var took [2]time.Duration
				Eventually(func() bool {
					var ok, also bool
					took[0], ok = p.protected.settled(byUs, start)
					took[1], also = p.always.settled(byUs, start)
					return ok && also
				}).WithTimeout(2*time.Minute).Should(BeTrue(), "%s: %s; %s %s %s", f.name, p.protected.told(), p.always.told(), p.protected.detail, p.always.detail)
				Expect(max(took[0], took[1])).To(BeNumerically("<", 45*time.Second), "%s: it takes too long to get well", f.name)
				slowest := max(p.unrelated.slowest, p.created.slowest)
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d ms\t%.1f s\n", f.name, p.protected.told(), p.always.told(),
					p.unrelated.told(), slowest.Milliseconds(), max(took[0], took[1]).Seconds())
				Expect(p.always.told()).NotTo(Or(ContainSubstring(letGo), ContainSubstring(other)), "%s: %s", f.name, p.always.detail)
				for _, free := range []*probe{p.unrelated, p.created} {
					Expect(free.told()).To(MatchRegexp("^(no API server, then )?"+letGo+"(, then no API server)?$"), "%s: %s", f.name, free.detail)
				}
				if !f.server {
					Expect(slowest).To(BeNumerically("<", 3*time.Second), "%s held up who has nothing to do with it", f.name)
				}
				if failure == "Fail" {
					Expect(p.protected.told()).NotTo(Or(ContainSubstring(letGo), ContainSubstring(other)), "%s: %s", f.name, p.protected.detail)
				}
			}
			w.Flush()
			show("outages, with failurePolicy "+failure+" for pods", table.String())
		},
		Entry("and pods that no manager can decide about go, as by default", "Ignore", SpecTimeout(15*time.Minute)),
		Entry("and pods that no manager can decide about stay, if that is asked for", "Fail", SpecTimeout(15*time.Minute)),
	)
})

// failurePolicy upgrades the release for as long as the spec takes.
func (u *user) failurePolicy(value string) {
	GinkgoHelper()
	set := func(value string) {
		u.helm("upgrade", "kruise", "charts/kruise", "--reuse-values", "--set", "webhookConfiguration.failurePolicy.pods="+value, "--wait", "--timeout", "3m")
		// Helm does not wait for managers of before that are still ending. One of them may lead, and
		// write its own failure policy once more.
		Eventually(func() string {
			return u.kubectl("-n", "kruise-system", "get", "pods", "-l", "control-plane=controller-manager", "-o", `jsonpath={range .items[*]}{.metadata.deletionTimestamp}{range .spec.containers[*]}{.args}{end}{"\n"}{end}`)
		}).Should(MatchRegexp(`^(\[.*"--pod-failure-policy=` + value + `".*(\n|$))+$`))
	}
	set(value)
	DeferCleanup(func(ctx context.Context) {
		u.ctx = ctx
		if value != "Ignore" {
			set("Ignore")
		}
	})
}

// failurePolicies are what the API server does without a manager: with objects that are
// labelled Always, and with pods.
func (u *user) failurePolicies() string {
	GinkgoHelper()
	return u.kubectl("get", "validatingwebhookconfiguration", "kruise-protection-webhook-configuration", "-o", `jsonpath={.webhooks[?(@.name=="vdeletion-always.kb.io")].failurePolicy} {.webhooks[?(@.name=="vpod.kb.io")].failurePolicy}`)
}

func (u *user) faults() []fault {
	managers := func() []string {
		return strings.Fields(u.kubectl("-n", "kruise-system", "get", "pods", "-l", "control-plane=controller-manager", "-o", "name"))
	}
	kill := func(names ...string) {
		u.kubectl(append([]string{"-n", "kruise-system", "delete", "--force", "--grace-period=0"}, names...)...)
	}
	selector := func(value string) {
		u.kubectl("-n", "kruise-system", "patch", "service", "kruise-webhook-service", "--type=merge", "-p", `{"spec":{"selector":{"control-plane":"`+value+`"}}}`)
	}
	return []fault{
		{name: "one replica killed", with: "Ignore", break_: func() { kill(managers()[0]) }},
		{name: "all replicas killed", with: "Fail", break_: func() { kill(managers()...) }},
		// The API server goes on with connections that are open, so those are ended too.
		{name: "Service without endpoints", with: "Ignore", break_: func() {
			selector("nobody")
			kill(managers()...)
		}, mend: func() { selector("controller-manager") }},
		{name: "certificate expired", with: "Fail", break_: func() {
			u.expire()
			kill(managers()...)
		}},
		{name: "wrong CA", with: "Fail", break_: u.distrust},
		{name: "API server restarted", with: "Fail", break_: func() {
			Expect(shared.cluster.Kill(u.ctx, "kube-apiserver")).To(Succeed())
			restartUntilItStays(u.ctx, "kube-apiserver")
		}, server: true},
		// It is rolled back, and what it takes part in is refused until it is deleted.
		{name: "a policy that takes 30 s", with: "Fail", break_: u.dawdle, mend: func() { u.kubectl("delete", "clusterpolicybundle", "dawdle-"+u.namespace) }},
	}
}

// restartUntilItStays starts a process, and again whenever it ends, until the spec ends, as a kubelet does with a static pod: an API
// server on a busy machine ends itself if one of its own first writes takes more than 30 s.
func restartUntilItStays(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(shared.cluster.Start(name)).To(Succeed())
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		defer GinkgoRecover()
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
			restartEnded(name)
		}
	})
	DeferCleanup(func() {
		stop()
		all.Wait()
	})
}

// expire puts a certificate of the same CA into the secret that ended yesterday.
func (u *user) expire() {
	secret := &corev1.Secret{}
	Expect(shared.k8s.Get(u.ctx, client.ObjectKey{Namespace: "kruise-system", Name: "kruise-webhook-certs"}, secret)).To(Succeed())
	caBlock, _ := pem.Decode(secret.Data["ca.crt"])
	Expect(caBlock).NotTo(BeNil())
	ca, err := x509.ParseCertificate(caBlock.Bytes)
	Expect(err).NotTo(HaveOccurred())
	keyBlock, _ := pem.Decode(secret.Data["ca.key"])
	Expect(keyBlock).NotTo(BeNil())
	caKey, err := x509.ParsePKCS1PrivateKey(keyBlock.Bytes)
	Expect(err).NotTo(HaveOccurred())
	cert, key := certificate(&x509.Certificate{
		DNSNames: []string{"kruise-webhook-service.kruise-system.svc"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour),
	}, ca, caKey)
	secret.Data["tls.crt"], secret.Data["tls.key"] = cert, key
	Expect(shared.k8s.Update(u.ctx, secret)).To(Succeed())
}

// distrust lets the API server trust a CA that is none of ours.
func (u *user) distrust() {
	ca, _ := certificate(&x509.Certificate{IsCA: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}, nil, nil)
	bundle := base64.StdEncoding.EncodeToString(ca)
	for _, name := range []string{"kruise-validating-webhook-configuration", "kruise-protection-webhook-configuration"} {
		n := len(strings.Fields(u.kubectl("get", "validatingwebhookconfiguration", name, "-o", "jsonpath={.webhooks[*].name}")))
		var patch []string
		for i := range n {
			patch = append(patch, fmt.Sprintf(`{"op":"add","path":"/webhooks/%d/clientConfig/caBundle","value":%q}`, i, bundle))
		}
		u.kubectl("patch", "validatingwebhookconfiguration", name, "--type=json", "-p", "["+strings.Join(patch, ",")+"]")
	}
}

// certificate issues one, or makes a CA where there is none.
func certificate(template, ca *x509.Certificate, caKey any) (cert, key []byte) {
	GinkgoHelper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template.SerialNumber, template.Subject, template.BasicConstraintsValid = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "e2e"}, true
	if ca == nil {
		ca, caKey = template, own
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, ca, own.Public(), caKey)
	Expect(err).NotTo(HaveOccurred())
	rawKey, err := x509.MarshalECPrivateKey(own)
	Expect(err).NotTo(HaveOccurred())
	var certs, keys bytes.Buffer
	Expect(pem.Encode(&certs, &pem.Block{Type: "CERTIFICATE", Bytes: raw})).To(Succeed())
	Expect(pem.Encode(&keys, &pem.Block{Type: "EC PRIVATE KEY", Bytes: rawKey})).To(Succeed())
	return certs.Bytes(), keys.Bytes()
}

// dawdle makes decisions about the pods and the Deployment of this namespace take longer than
// the webhook's timeout. The policy is about a label that they get once it is enforced: the
// gate tries a new policy on recent decisions, and would not let one in that is slow at once.
func (u *user) dawdle() {
	b := u.bundle("dawdle-"+u.namespace, map[string]string{"dawdle.rego": `package extend.protection.dawdle
deny contains {"reason": "Dawdle", "message": "This is never reached."} if {
	input.object.namespace == "` + u.namespace + `"
	input.object.labels.pace == "slow"` + endless})
	Expect(meta.IsStatusConditionTrue(b.Status.Conditions, policyv1alpha1.PolicyBundleReady)).To(BeTrue(), "%v", b.Status)
	u.kubectl("label", "pods,deployments", "--all", "pace=slow")
}
