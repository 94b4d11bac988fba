// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	opabundle "github.com/open-policy-agent/opa/v1/bundle"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
)

// origin is the archive that a bundle was loaded from, and the keys that it was
// verified by.
type origin struct{ digest, keys, content string }

// origins are the origins of the loaded bundles. The zero value is empty.
type origins struct {
	mu  sync.Mutex
	all map[Key]map[policy.PolicyMode]origin
}

// hasOrigin reports whether the loaded bundle with a content has this origin.
func (o *origins) hasOrigin(key Key, mode policy.PolicyMode, from origin, content string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	from.content = content
	return o.all[key][mode] == from
}

func (o *origins) recordOrigin(key Key, mode policy.PolicyMode, from origin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[Key]map[policy.PolicyMode]origin{}
	}
	if o.all[key] == nil {
		o.all[key] = map[policy.PolicyMode]origin{}
	}
	o.all[key][mode] = from
}

func (o *origins) removeOrigin(key Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, key)
}

// unreadableError reports an archive that has not changed since it was accepted, but that this build
// of the program cannot read.
type unreadableError struct{ err error }

func (e unreadableError) Error() string { return e.err.Error() }
func (e unreadableError) Unwrap() error { return e.err }

// anyKey returns a verification by any usable key of a spec, or by the key that the spec names.
func anyKey(b policy.AnyPolicyBundle) *bundle.Verification {
	v := b.DesiredSpec().Verification
	by := NewVerification(v).WithUsableKeys()
	if by != nil {
		by.KeyID = v.KeyID
	}
	return by
}

// readSigned reads an archive that was accepted with the keys of that time. Its signature still counts
// if any current key has made it, whichever key it names: the name did not matter while there was one
// key, and a second key that is added must not revoke the signature.
func readSigned(b policy.AnyPolicyBundle, archive []byte, by *bundle.Verification, opts ...bundle.Option) (*bundle.Bundle, error) {
	found, err := Read(b, archive, by, opts...)
	if by == nil || b.DesiredSpec().Verification.KeyID != "" || !errors.As(err, new(bundle.SignatureError)) {
		return found, err
	}
	for _, id := range slices.Sorted(maps.Keys(by.Keys)) {
		only := *by
		only.Keys, only.KeyID = map[string]*opabundle.KeyConfig{id: by.Keys[id]}, id
		if found, err := Read(b, archive, &only, opts...); !errors.As(err, new(bundle.SignatureError)) {
			return found, err
		}
	}
	return nil, err
}

// explainUnloadable returns why an accepted archive is not loaded. About a signature that does not
// count any more it names the key of the signature and the field that should have the key.
func explainUnloadable(b policy.AnyPolicyBundle, a *policy.PolicyArtifact, archive []byte, err error) error {
	if !errors.As(err, new(bundle.SignatureError)) {
		return unreadableError{err}
	}
	found, _ := bundle.FromArchive(b.GetName(), bytes.NewReader(archive), nil)
	switch {
	case found == nil:
		return err
	case found.Signature == nil:
		return fmt.Errorf("revision %s has no signature, and spec.verification asks for one: %w", a.Revision, err)
	}
	names := fmt.Sprintf("the key %q", found.Signature.KeyID)
	if found.Signature.KeyID == "" {
		names = "no key"
	}
	field := "no key of spec.verification.keys has made it"
	if id := b.DesiredSpec().Verification.KeyID; id != "" {
		field = fmt.Sprintf("spec.verification.keyID asks for that of %q", id)
	}
	return fmt.Errorf("the signature of revision %s names %s, and %s: %w", a.Revision, names, field, err)
}

// whyStrict returns the reason in the status of a bundle that is missing.
func whyStrict(problem error) string {
	switch {
	case errors.As(problem, new(bundle.SignatureError)):
		return policy.PolicyBundleSignatureRevokedReason
	case endsProcess(problem):
		return policy.PolicyBundleEndsProcessReason
	}
	return policy.PolicyBundleNotLoadedReason
}

// findReplacement returns a revision that decides in place of an artifact that cannot be loaded: the
// active one, or a copy on disk, preferably with the same content. It is nil if none is trusted, or if
// the signature of the artifact is the problem.
func (h *Host) findReplacement(b policy.AnyPolicyBundle, a *policy.PolicyArtifact, now *bundle.Bundle, why error) *bundle.Bundle {
	if errors.As(why, new(bundle.SignatureError)) {
		return nil
	}
	by := anyKey(b)
	var found *bundle.Bundle
	for _, candidate := range append([]*bundle.Bundle{now}, h.copies.readCopies(keyOf(b), a, h.library.marks)...) {
		if candidate == nil || !by.TrustsBundle(candidate) {
			continue
		}
		candidate = alignCanary(candidate, a)
		if a.Is(candidate.Revision) {
			if endsProcess(why) {
				continue
			}
			return candidate
		}
		if found == nil {
			found = candidate
		}
	}
	return found
}

// alignCanary returns the bundle with the canary namespaces of an artifact, which may have changed.
func alignCanary(b *bundle.Bundle, a *policy.PolicyArtifact) *bundle.Bundle {
	namespaces := slices.Sorted(slices.Values(a.Namespaces))
	if a.Mode != policy.PolicyModeCanary || slices.Equal(b.Canary, namespaces) {
		return b
	}
	out := *b
	bundle.AsCanary(namespaces...)(&out)
	return &out
}

// copies are the bundles that were on disk when the process started, until those of the
// cluster decide.
type copies struct {
	mu  sync.Mutex
	all []stored
}

// replaceCopies replaces the copies.
func (c *copies) replaceCopies(all []stored) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = all
}

// readCopies returns the copies of a bundle that decided in the namespaces of an artifact.
func (c *copies) readCopies(key Key, a *policy.PolicyArtifact, marks *marks) (out []*bundle.Bundle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.all {
		if s.key() != key || s.Withheld || s.Missing != "" || (len(s.Canary) > 0) != (a.Mode == policy.PolicyModeCanary) {
			continue
		}
		if marks.beginLoad(s.Content, key) != nil {
			continue
		}
		if b, err := s.readBundle(); err == nil && len(b.CheckContract()) == 0 {
			out = append(out, b)
		}
		marks.scheduleClear(s.Content)
	}
	return out
}

// missingOf describes to the engine an artifact that cannot be loaded. For a bundle of a namespace it names all points: how the
// platform's bundles use its rules may have changed since the points were recorded.
func missingOf(b policy.AnyPolicyBundle, a *policy.PolicyArtifact, why error) engine.Missing {
	m := engine.Missing{Bundle: nameOf(keyOf(b)), Reason: decision.TruncateText(why.Error(), longestReason), Spares: isBundle}
	for _, p := range a.Points {
		m.Points = append(m.Points, decision.Name(p))
	}
	switch ns := b.GetNamespace(); {
	case ns != "":
		m.Namespaces, m.Points = []string{ns}, bundle.PointsOfTenants()
	case a.Mode == policy.PolicyModeCanary:
		m.Namespaces = slices.Sorted(slices.Values(a.Namespaces))
	}
	return m
}

// missingFromDisk describes to the engine a bundle on disk that does not decide. The points that it
// takes part in are not on the disk.
func missingFromDisk(key Key, canary []string, why error) engine.Missing {
	m := engine.Missing{Bundle: nameOf(key), Reason: decision.TruncateText(why.Error(), longestReason), Spares: isBundle}
	switch {
	case key.Namespace != "":
		m.Namespaces, m.Points = []string{key.Namespace}, bundle.PointsOfTenants()
	case len(canary) > 0:
		m.Namespaces = canary
	}
	return m
}

// missingForPlatform describes to the engine the bundle of a namespace that a bundle of the platform displaces.
func missingForPlatform(key, platform Key) []engine.Missing {
	return []engine.Missing{missingFromDisk(key, nil, fmt.Errorf("it has a package or data that cluster bundle %s has", platform.Name))}
}

// endsProcess reports whether a bundle is left out, or waits, because processes ended.
func endsProcess(err error) bool {
	return errors.As(err, new(endsProcessError)) || errors.As(err, new(waitsError))
}

// longestReason is how many bytes of an error the records of decisions have.
const longestReason = 500

// nameOf returns the name of a bundle in records.
func nameOf(key Key) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}

// isBundle reports whether a decision is about a bundle itself. A bundle that is missing, or withheld,
// takes no part in such a decision, so that users can change or delete it.
func isBundle(s decision.Subject) bool {
	return s.Group == policy.GroupVersion.Group && (s.Kind == "PolicyBundle" || s.Kind == "ClusterPolicyBundle")
}

// unfitStages returns the stages of a bundle that cannot decide together with the others: the current
// ones, and missing ones where it has none.
func unfitStages(b policy.AnyPolicyBundle, now, want Stages, why error) Stages {
	out, st := now, b.GetStatus()
	out.Missing = slices.Clone(want.Missing)
	if now.Enforced == nil && want.Enforced != nil {
		out.Missing = append(out.Missing, missingOf(b, st.Active, why))
	}
	if now.Canary == nil && want.Canary != nil {
		out.Missing = append(out.Missing, missingOf(b, st.Candidate, why))
	}
	if now.Withheld == nil && want.Withheld != nil {
		out.Missing = append(out.Missing, missingOf(b, st.Withheld, why))
	}
	return out
}

// allMissing returns all revisions that should decide but cannot, in a fixed order.
func allMissing(stands map[Key]Stages) (out []engine.Missing) {
	for _, k := range slices.SortedFunc(maps.Keys(stands), compareKeys) {
		out = append(out, stands[k].Missing...)
	}
	return out
}

// tellMissing logs when a bundle becomes missing, and when it is loaded again.
func tellMissing(key Key, was, now Stages) {
	switch {
	case len(now.Missing) > 0 && !slices.EqualFunc(was.Missing, now.Missing, engine.Missing.Equal):
		klog.ErrorS(nil, "A policy bundle cannot decide; decisions that it takes part in are strict fallbacks until it can", "bundle", key, "reason", now.Missing[0].Reason)
	case len(now.Missing) == 0 && len(was.Missing) > 0:
		klog.InfoS("A policy bundle that could not decide is missing no more", "bundle", key)
	}
}

// missingCollector counts the bundles that are missing.
type missingCollector struct {
	engine *engine.Engine
	desc   *prometheus.Desc
}

func newMissingCollector(e *engine.Engine) missingCollector {
	return missingCollector{e, prometheus.NewDesc("regatta_policy_bundles_missing",
		"1 for each bundle that should decide and cannot, so that decisions that it takes part in are strict fallbacks; namespace is empty for those of the platform.",
		[]string{"namespace", "bundle"}, nil)}
}

// Describe implements prometheus.Collector.
func (c missingCollector) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

// Collect implements prometheus.Collector.
func (c missingCollector) Collect(to chan<- prometheus.Metric) {
	told := map[string]bool{}
	for _, m := range c.engine.ActiveSnapshot().MissingBundles() {
		if told[m.Bundle] {
			continue
		}
		told[m.Bundle] = true
		namespace, name, tenant := strings.Cut(m.Bundle, "/")
		if !tenant {
			namespace, name = "", m.Bundle
		}
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, 1, namespace, cmp.Or(name, m.Bundle))
	}
}

// DecisionPoints returns the decision points, and their rules, that the loaded revision of an artifact
// takes part in; none if another revision is loaded.
func (h *Host) DecisionPoints(key Key, a *policy.PolicyArtifact) (out []string) {
	s := h.library.BundleStages(key)
	b := s.Enforced
	if a.Mode == policy.PolicyModeCanary {
		b = s.Canary
	}
	if b == nil || !a.Is(b.Revision) {
		return nil
	}
	for _, p := range h.engine.ActiveSnapshot().PointsOf(b) {
		out = append(out, string(p))
	}
	return out
}
