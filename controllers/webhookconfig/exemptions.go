// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhookEntry is a webhook of a configuration.
type webhookEntry interface {
	admissionv1.MutatingWebhook | admissionv1.ValidatingWebhook
}

// selectorOf returns the name of a webhook and a pointer to its namespace selector.
func selectorOf[T webhookEntry](w *T) (name string, selector **metav1.LabelSelector) {
	switch w := any(w).(type) {
	case *admissionv1.MutatingWebhook:
		return w.Name, &w.NamespaceSelector
	case *admissionv1.ValidatingWebhook:
		return w.Name, &w.NamespaceSelector
	}
	return "", new(*metav1.LabelSelector)
}

// exemptions are requirements that other clients have added to webhooks to leave out namespaces, by the names of the
// webhooks.
type exemptions map[string][]metav1.LabelSelectorRequirement

// requirementID identifies a requirement of any length.
type requirementID [sha256.Size]byte

func identifyRequirement(r metav1.LabelSelectorRequirement) requirementID {
	return sha256.Sum256(fmt.Appendf(nil, "%q", append([]string{r.Key, string(r.Operator)}, slices.Sorted(slices.Values(r.Values))...)))
}

// filterRequirements returns the exemptions for which is returns true.
func (e exemptions) filterRequirements(is func(requirementID) bool) exemptions {
	out := exemptions{}
	for name, all := range e {
		for _, r := range all {
			if is(identifyRequirement(r)) {
				out[name] = append(out[name], r)
			}
		}
	}
	return out
}

// listIDs returns the IDs of all requirements.
func (e exemptions) listIDs() map[requirementID]bool {
	out := map[requirementID]bool{}
	e.filterRequirements(func(id requirementID) bool { out[id] = true; return true })
	return out
}

// isExemption reports whether a requirement leaves out namespaces with a label that is neither one of Kubernetes nor one of Regatta.
// A requirement that selects only namespaces with a label would leave out all others, and a label of Kubernetes may be on any
// namespace.
func isExemption(r metav1.LabelSelectorRequirement) bool {
	if r.Operator != metav1.LabelSelectorOpDoesNotExist && r.Operator != metav1.LabelSelectorOpNotIn {
		return false
	}
	domain, _, qualified := strings.Cut(r.Key, "/")
	return !qualified || !slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "kruise.io"}, func(own string) bool {
		return domain == own || strings.HasSuffix(domain, "."+own)
	})
}

// withoutExemptions returns webhooks without the exemptions of other clients, and these exemptions.
func withoutExemptions[T webhookEntry](read []T) (rest []T, left exemptions) {
	rest, left = slices.Clone(read), exemptions{}
	for i := range rest {
		name, selector := selectorOf(&rest[i])
		if *selector == nil || !slices.ContainsFunc((*selector).MatchExpressions, isExemption) {
			continue
		}
		own := (*selector).DeepCopy()
		own.MatchExpressions = slices.DeleteFunc(own.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
			exempt := isExemption(r)
			if exempt {
				left[name] = append(left[name], r)
			}
			return exempt
		})
		*selector = own
	}
	return rest, left
}

// withExemptions returns webhooks with the exemptions for their names.
func withExemptions[T webhookEntry](webhooks []T, left exemptions) []T {
	out := slices.Clone(webhooks)
	for i := range out {
		name, selector := selectorOf(&out[i])
		if more := left[name]; len(more) > 0 && *selector != nil {
			with := (*selector).DeepCopy()
			with.MatchExpressions = append(with.MatchExpressions, more...)
			*selector = with
		}
	}
	return out
}

// formatMessage says which namespaces are left out, and by whom.
func (e exemptions) formatMessage(who string) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(e)) {
		for _, r := range e[name] {
			texts = append(texts, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Key, r.Operator, strings.Join(r.Values, ","))))
		}
	}
	slices.Sort(texts)
	return fmt.Sprintf("%s has webhooks leave out namespaces, and does so again when that is put back: what is in them is not protected. Of %s, only namespaces are sent with %s",
		who, joinTexts(slices.Sorted(maps.Keys(e))), joinTexts(slices.Compact(texts)))
}

// changesMessage says what another client has changed.
func changesMessage[T webhookEntry](who string, read, want []T) string {
	return fmt.Sprintf("%s has changed %s. It is put back each time, after a wait of up to %s while it is changed again and again", who, joinTexts(changesOf(read, want)), changePace.longest)
}

// changesOf says how webhooks differ from the wanted ones.
func changesOf[T webhookEntry](read, want []T) (out []string) {
	is, should := fieldsOf(read), fieldsOf(want)
	for _, name := range slices.Sorted(maps.Keys(should)) {
		if is[name] == nil {
			out = append(out, name+", which it removed")
			continue
		}
		var differ []string
		all := maps.Clone(should[name])
		maps.Copy(all, is[name])
		for _, field := range slices.Sorted(maps.Keys(all)) {
			if string(is[name][field]) != string(should[name][field]) {
				differ = append(differ, field)
			}
		}
		if len(differ) > 0 {
			out = append(out, fmt.Sprintf("%s of %s", strings.Join(differ, ", "), name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if should[name] == nil {
			out = append(out, name+", which it added")
		}
	}
	if len(out) == 0 {
		return []string{"the order of webhooks or an annotation"}
	}
	return out
}

// fieldsOf returns the fields of webhooks as JSON, by the names of the webhooks.
func fieldsOf[T webhookEntry](webhooks []T) map[string]map[string]json.RawMessage {
	out := map[string]map[string]json.RawMessage{}
	for i := range webhooks {
		name, _ := selectorOf(&webhooks[i])
		fields := map[string]json.RawMessage{}
		if encoded, err := json.Marshal(webhooks[i]); err == nil {
			_ = json.Unmarshal(encoded, &fields) // it was encoded just now
		}
		out[name] = fields
	}
	return out
}

// writersOf names the other clients that have written a field of an object, such as the webhooks of a configuration, by the managed fields of
// the object.
func writersOf(configuration client.Object, field string) string {
	var names []string
	for _, m := range configuration.GetManagedFields() {
		if m.Manager != Owner && m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), `"f:`+field+`"`) {
			names = append(names, "client "+m.Manager)
		}
	}
	if len(names) == 0 {
		return "another client"
	}
	slices.Sort(names)
	return joinTexts(slices.Compact(names))
}

// mostNamed and longestName bound the names in a message.
const mostNamed, longestName = 3, 80

// joinTexts joins the first of some texts.
func joinTexts(texts []string) string {
	more := ""
	if len(texts) > mostNamed {
		texts, more = texts[:mostNamed], fmt.Sprintf(" and %d more", len(texts)-mostNamed)
	}
	short := make([]string, len(texts))
	for i, text := range texts {
		if short[i] = text; len(text) > longestName {
			short[i] = strings.ToValidUTF8(text[:longestName], "") + "..."
		}
	}
	return strings.Join(short, "; ") + more
}
