// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api"
	"github.com/regatta-sh/regatta/controllers/certs"
	"github.com/regatta-sh/regatta/controllers/workload/message"
)

// newRefusedWriter is a writer whose writes have an error of the test.
func newRefusedWriter(t *testing.T, now *time.Time, failure func() error) (*Writer, *record.FakeRecorder) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kruise.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: certs.ValidatingConfiguration},
			Webhooks:   []admissionv1.ValidatingWebhook{{Name: "vcloneset.kb.io", ClientConfig: service().WebhookClientConfig}},
		},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName}},
	).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return failure()
		},
	}).Build()
	events := record.NewFakeRecorder(100)
	rules := policies(t, allGates(), `{"kinds": [{"group": "", "resource": "services"}], "guards": []}`)
	return &Writer{
		Client: api, Live: api, Rules: rules, Config: installation(), Events: events, Now: func() time.Time { return *now },
		Undecided: prometheus.NewGauge(prometheus.GaugeOpts{Name: "undecided"}),
	}, events
}

// That nothing can be written is reported once while it lasts, though each try fails with another number or loses a race meanwhile, again
// before the API server forgets it, and again where the reason is another.
func TestThatNothingCanBeWrittenIsReportedOnce(t *testing.T) {
	now, port := time.Unix(1_000_000, 0), 40000
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "x"}, "x", errors.New("it has changed"))
	failure := func() error { port++; return fmt.Errorf("read tcp 10.0.0.1:%d: connection reset by peer", port) }
	w, events := newRefusedWriter(t, &now, func() error { return failure() })
	look := func(times int) {
		t.Helper()
		for range times {
			if err := w.syncOnce(t.Context()); err == nil {
				t.Fatal("it is written")
			}
			now = now.Add(20 * time.Second)
		}
	}
	broken := failure
	look(30)
	failure = func() error { return conflict }
	look(5)
	failure = broken
	look(20)
	if len(events.Events) != 1 {
		t.Errorf("in 18 minutes there are %d events, want 1", len(events.Events))
	}
	look(60)
	if len(events.Events) != 2 {
		t.Errorf("in 38 minutes there are %d events, want 2", len(events.Events))
	}
	failure = func() error { return errors.New("webhook policy.example.com denied it") }
	look(10)
	if len(events.Events) != 3 {
		t.Errorf("with another reason there are %d events, want 3", len(events.Events))
	}
	for range 2 {
		<-events.Events
	}
	if got := <-events.Events; !strings.Contains(got, "policy.example.com denied it") {
		t.Errorf("the last event is %s", got)
	}
}

// The message names each configuration that cannot be written and why, and is not cut off where events are.
func TestAMessageNamesAllThatCannotBeWritten(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	w, events := newRefusedWriter(t, &now, func() error {
		return errors.New("it is too long" + strings.Repeat(" webhooks[0].matchConditions", 1000))
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.syncOnce(ended); err == nil || len(events.Events) > 0 {
		t.Errorf("for a caller that has gone there are %d events, %v", len(events.Events), err)
	}
	if err := w.syncOnce(t.Context()); err == nil {
		t.Fatal("it is written")
	}
	got := <-events.Events
	if len(got) > message.MostBytes {
		t.Errorf("it has %d bytes", len(got))
	}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy"} {
		if !strings.Contains(got, "writing "+kind+" ") {
			t.Errorf("no %s is named in %s", kind, got)
		}
	}
	if strings.Count(got, "it is too long") != 3 {
		t.Errorf("it does not say why: %s", got)
	}
}

// What cannot be made into configurations is reported, too: nothing is written then.
func TestWhatCannotBeReadIsReported(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	w, events := newRefusedWriter(t, &now, func() error { return nil })
	w.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("no list")
		},
	})
	if err := w.syncOnce(t.Context()); err == nil {
		t.Fatal("it is written")
	}
	if len(events.Events) != 1 {
		t.Fatalf("there are %d events", len(events.Events))
	}
	if got := <-events.Events; !strings.Contains(got, "listing budgets: no list") {
		t.Errorf("got %s", got)
	}
}
