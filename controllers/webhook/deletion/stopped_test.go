// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/certs"
	"github.com/regatta-sh/regatta/controllers/webhook/server"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/engine/bundle"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/test/rules"
)

const stoppedProcess = "REGATTA_STOPPED_WEBHOOK"

// slowDenials never end. Of ConfigMaps they must not fail open, of ServiceAccounts they may.
const slowDenials = `package extend.protection.slow

guard contains {"group": "", "resource": "configmaps", "operations": ["DELETE"], "labels": {"kept": "yes"}, "failurePolicy": "Fail"}

guard contains {"group": "", "resource": "serviceaccounts", "operations": ["DELETE"], "labels": {"kept": "yes"}}

deny contains {"rule": "slow", "reason": "Slow", "message": "m"} if {
	r := numbers.range(1, 100000)
	some a in r
	some b in r
	some c in r
	a + b + c == 0
}
`

func slowBundle(t *testing.T) bundle.Set {
	t.Helper()
	b, err := bundle.FromFiles("slow", map[string]string{"slow.rego": slowDenials})
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Set{b}
}

// The process of the webhook is stopped, as a CPU limit stops it, before or after a request has come. Where it is back before the API server gives up, the webhook
// refuses in time, though its decision has time left: the time in which the process was stopped does not count for that. Where it
// is not, a request is refused all the same if a rule says that it must not fail open, and else goes on.
func TestADenialOfAProcessThatIsStopped(t *testing.T) {
	if os.Getenv(stoppedProcess) != "" {
		serveSlowDenials(t)
		return
	}
	c := start(t, points.Gates{Deletion: true})
	if err := c.handler.Engine.ActivateBundles(t.Context(), slowBundle(t)); err != nil {
		t.Fatal(err)
	}
	w := startWebhook(t)
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	if err := c.api.Get(t.Context(), client.ObjectKey{Name: certs.ValidatingConfiguration}, configuration); err != nil {
		t.Fatal(err)
	}
	configuration.Webhooks[0].ClientConfig = w.call
	if err := c.api.Update(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	if err := c.writer.SyncConfigurations(t.Context()); err != nil {
		t.Fatal(err)
	}
	made := func(name string) (objects []client.Object) {
		meta := metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"kept": "yes"}}
		objects = []client.Object{&corev1.ConfigMap{ObjectMeta: meta}, &corev1.ServiceAccount{ObjectMeta: meta}}
		c.create(t, objects...)
		return objects
	}
	probe := made("probe")
	eventually(t, "the API server knows its webhooks", func() bool {
		w.signal(syscall.SIGSTOP) // so that nothing waits for the rule
		defer w.signal(syscall.SIGCONT)
		return !c.deletes(t, probe[0], 300*time.Millisecond)
	})
	w.drain()

	for name, stopped := range map[string]struct {
		before bool
		lasts  time.Duration
	}{
		"kept":    {false, 4300 * time.Millisecond}, // the API server waits for 6 s
		"waiting": {true, 4700 * time.Millisecond},  // more than the webhook would take from then on
	} {
		kept := made(name)
		if stopped.before {
			w.signal(syscall.SIGSTOP)
		}
		answers := c.delete(t, kept, func() {
			if !stopped.before {
				for range kept {
					w.wait()
				}
				w.signal(syscall.SIGSTOP)
			}
			<-time.After(stopped.lasts)
			w.signal(syscall.SIGCONT)
		})
		for i, err := range answers {
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "No policy could decide") {
				t.Errorf("%T %s, with a process that is back in time: %v", kept[i], name, err)
			}
		}
		w.drain()
	}
	late := made("late")
	w.signal(syscall.SIGSTOP)
	answers := c.delete(t, late, func() {})
	w.signal(syscall.SIGCONT)
	if err := answers[0]; !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("a request that must not fail open: %v", err)
	}
	if err := answers[1]; err != nil {
		t.Errorf("a request that may fail open: %v", err)
	}
}

// deletes reports whether an object can be deleted within a time.
func (c *cluster) deletes(t *testing.T, o client.Object, patience time.Duration) bool {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- c.api.Delete(t.Context(), o, client.DryRunAll) }()
	select {
	case err := <-done:
		return err == nil
	case <-time.After(patience):
		return false
	}
}

// delete deletes objects at once, while something else happens, and returns what it was told of each.
func (c *cluster) delete(t *testing.T, objects []client.Object, meanwhile func()) []error {
	t.Helper()
	answers := make([]error, len(objects))
	var all sync.WaitGroup
	for i, o := range objects {
		all.Go(func() { answers[i] = c.api.Delete(t.Context(), o) })
	}
	meanwhile()
	all.Wait()
	return answers
}

// webhookProcess is a process that serves what serveSlowDenials does.
type webhookProcess struct {
	*testing.T
	process *os.Process
	call    admissionv1.WebhookClientConfig
	// asked has a value for each request that came.
	asked chan struct{}
}

func startWebhook(t *testing.T) *webhookProcess {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), stoppedProcess+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := &webhookProcess{T: t, process: cmd.Process, asked: make(chan struct{}, 1000)}
	serves := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch words := strings.Fields(lines.Text()); {
			case len(words) == 3 && words[0] == "serves":
				ca, _ := base64.StdEncoding.DecodeString(words[2])
				w.call = admissionv1.WebhookClientConfig{URL: ptr.To(words[1]), CABundle: ca}
				close(serves)
			case len(words) == 1 && words[0] == "asked":
				w.asked <- struct{}{}
			}
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill() // it has nothing to write
		_ = cmd.Wait()
	})
	select {
	case <-serves:
	case <-time.After(time.Minute):
		t.Fatal("the webhook is not served")
	}
	return w
}

func (w *webhookProcess) signal(s os.Signal) {
	if err := w.process.Signal(s); err != nil {
		w.Error(err)
	}
}

// wait waits for a request.
func (w *webhookProcess) wait() {
	select {
	case <-w.asked:
	case <-time.After(10 * time.Second):
		w.Error("the webhook is not asked")
	}
}

// drain waits until the requests that were sent so far have come, and forgets them.
func (w *webhookProcess) drain() {
	for {
		select {
		case <-w.asked:
		case <-time.After(500 * time.Millisecond):
			return
		}
	}
}

// serveSlowDenials serves the handler as a manager does, until its input ends.
func serveSlowDenials(t *testing.T) {
	h := newHandler(t, refuse)
	e := rules.Engine(t, "")
	if err := e.ActivateBundles(t.Context(), slowBundle(t)); err != nil {
		t.Fatal(err)
	}
	h.Engine, h.Kinds = e, protected{}
	mux := http.NewServeMux()
	server.NewGracefulServer(webhook.NewServer(webhook.Options{WebhookMux: mux})).Register(webhookconfig.ValidateDeletionPath, &webhook.Admission{Handler: admission.HandlerFunc(
		func(ctx context.Context, r admission.Request) admission.Response {
			fmt.Println("asked")
			return h.Handle(ctx, r)
		})})
	s := httptest.NewTLSServer(mux)
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	fmt.Println("serves", s.URL+"/", base64.StdEncoding.EncodeToString(ca))
	_, _ = io.Copy(io.Discard, os.Stdin)
}
