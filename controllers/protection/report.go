// SPDX-License-Identifier: Apache-2.0

package protection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/whatif"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/nearest"
	records "github.com/regatta-sh/regatta/engine/record"
)

// Reasons of events.
const (
	// PreventedReason is the reason of the event on a pod that a budget protects (PUB-11).
	PreventedReason = "PubPreventPodDeletion"
	// BreakGlassReason is the reason of the event on an object whose deletion was allowed although a rule refused
	// it.
	BreakGlassReason = "BreakGlass"
)

// Reporter answers requests, and reports those that were refused or allowed as an exception: in
// metrics, in the protection log, by events, and to users who ask why.
type Reporter struct {
	engine  *engine.Engine
	answers *explain.Store
	events  record.EventRecorder
	metrics *Metrics
	log     *Log
}

// Option adds a way of reporting to a Reporter.
type Option func(*Reporter)

// WithEvents adds reports by events.
func WithEvents(events record.EventRecorder) Option { return func(r *Reporter) { r.events = events } }

// WithMetrics adds counts in metrics.
func WithMetrics(m *Metrics) Option { return func(r *Reporter) { r.metrics = m } }

// WithLog adds lines in a protection log.
func WithLog(l *Log) Option { return func(r *Reporter) { r.log = l } }

// NewReporter makes a Reporter that puts its answers into a store.
func NewReporter(e *engine.Engine, answers *explain.Store, options ...Option) *Reporter {
	r := &Reporter{engine: e, answers: answers}
	for _, o := range options {
		o(r)
	}
	return r
}

// AllowRequest allows a request.
func (r *Reporter) AllowRequest(rec decision.Record, reasons []decision.Hold) admission.Response {
	answer := admission.Allowed("")
	answer.AuditAnnotations = auditAnnotations(rec, reasons)
	return answer
}

// ExemptRequest allows a request that would have been refused, and reports it.
func (r *Reporter) ExemptRequest(a *Asked, rec decision.Record, reasons []decision.Hold) admission.Response {
	message := joinMessages(reasons)
	r.storeAnswer(a, rec, reasons, explain.Exempted, message)
	if a.Request.DryRun {
		return r.AllowRequest(rec, reasons)
	}
	r.metrics.countExemption(a)
	r.log.writeEntry(a, "BreakGlass", message)
	if r.events != nil {
		r.events.Event(objectReference(a.Object), corev1.EventTypeWarning, BreakGlassReason, message)
	}
	answer := r.AllowRequest(rec, reasons)
	answer.Warnings = []string{message}
	return answer
}

// RefuseRequest refuses a request with 403, or an eviction with 429: clients know 429 from
// PodDisruptionBudgets, and retry.
func (r *Reporter) RefuseRequest(a *Asked, rec decision.Record, reasons []decision.Hold) admission.Response {
	message := joinMessages(reasons)
	r.storeAnswer(a, rec, reasons, explain.Refused, message)
	if !a.Request.DryRun {
		r.metrics.countRefusal(a, rec.Point)
		r.log.writeEntry(a, eventName(rec.Point), "")
		if r.events != nil && rec.Point == points.BudgetPoint().Name {
			r.events.Event(objectReference(a.Object), corev1.EventTypeWarning, PreventedReason, "openkruise pub prevents pod deletion")
		}
	}
	status := &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: message + "\nWhy: regatta why --request " + a.Request.UID + inNamespace(a.Object.Namespace),
		Details: &metav1.StatusDetails{Group: a.Object.Group, Kind: a.Object.Resource, Name: a.Object.Name, Causes: statusCauses(reasons)},
	}
	if a.Request.Operation == points.Evict {
		status.Code, status.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: status, AuditAnnotations: auditAnnotations(rec, reasons)}}
}

// inNamespace is the argument of a command that selects a namespace, for users who may view only that namespace.
func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// storeAnswer stores the answer for users who ask why.
func (r *Reporter) storeAnswer(a *Asked, rec decision.Record, reasons []decision.Hold, verdict explain.Verdict, message string) {
	subject := a.Subject()
	told := records.ExplainDecision(r.engine, rec)
	answer := explain.Answer{
		Subject: subject, Workload: subject, Verdict: verdict, Message: message,
		Policies: rec.Revision, Bundles: rec.Bundles, Rules: rec.Rules, Outcome: rec.Outcome, Error: rec.Error, Decided: rec.Time,
		Request: &explain.Request{
			UID: a.Request.UID, Operation: a.Request.Operation, DryRun: a.Request.DryRun, User: a.Request.User.Name,
			Group: a.Object.Group, Version: a.Object.Version, Resource: a.Object.Resource,
		},
	}
	answer.NearBytes = questionBytes(rec)
	answer.Basis = &whatif.Basis{Engine: r.engine, Records: []decision.Record{rec}}
	answer.Near = func(ctx context.Context) *nearest.Result { return explain.NearestOf(ctx, r.engine, rec) }
	if a.Object.Owner != nil {
		answer.Workload = decision.Subject{Group: a.Object.Owner.Group, Kind: a.Object.Owner.Kind, Namespace: subject.Namespace, Name: a.Object.Owner.Name}
	}
	for i, h := range reasons {
		if i > 0 {
			answer.Others = append(answer.Others, h)
			continue
		}
		answer.Reason, answer.Rule, answer.Until = h.Reason, h.Rule, h.Until
		for _, known := range told.Reasons {
			if known.Rule == h.Rule {
				answer.Title, answer.Bundle, answer.Place = known.Title, known.Bundle, known.Place
				// The answer names the object anyway.
				answer.Facts = explain.CollectFacts(known.Facts, "count(object)", "count(request)", "object.group", "object.kind", "object.name", "object.namespace", "object.resource")
			}
		}
	}
	r.answers.PutRefusal(answer)
}

// questionBytes is how much memory the input of a decision takes. All of its text is counted, since users choose
// which parts are long.
func questionBytes(rec decision.Record) int {
	text, err := json.Marshal(rec.Input)
	if err != nil {
		return math.MaxInt // the size is not known, so the input is not kept
	}
	return 2 * len(text)
}

// statusCauses tell programs which rules refused; users read that in the message. The field of a
// cause, which for a schema error is the wrong field, is the rule.
func statusCauses(reasons []decision.Hold) []metav1.StatusCause {
	out := make([]metav1.StatusCause, len(reasons))
	for i, h := range reasons {
		out[i] = metav1.StatusCause{Type: metav1.CauseType(h.Reason), Message: h.Message, Field: h.Rule}
	}
	return out
}

// RefusedBy is the first reason in the error of a request that a Reporter refused,
// nil for any other error.
func RefusedBy(err error) *decision.Hold {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	s := status.Status()
	if s.Reason != metav1.StatusReasonForbidden && s.Reason != metav1.StatusReasonTooManyRequests || s.Details == nil || len(s.Details.Causes) == 0 {
		return nil
	}
	c := s.Details.Causes[0]
	if c.Field == "" || c.Type == "" {
		return nil
	}
	return &decision.Hold{Rule: c.Field, Reason: string(c.Type), Message: c.Message}
}

// joinMessages joins the messages of all reasons.
func joinMessages(reasons []decision.Hold) string {
	var out []string
	for _, h := range reasons {
		out = append(out, h.Message)
	}
	return strings.Join(out, " ")
}

// auditAnnotations are the annotations for the audit log of the API server.
func auditAnnotations(rec decision.Record, reasons []decision.Hold) map[string]string {
	var rules []string
	for _, h := range reasons {
		rules = append(rules, fmt.Sprintf("%s (%s)", h.Rule, h.Reason))
	}
	return map[string]string{"rules": strings.Join(rules, ", "), "policies": rec.Revision}
}

func objectReference(o points.Object) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: schema.GroupVersion{Group: o.Group, Version: o.Version}.String(), Kind: o.Kind,
		Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID),
	}
}
