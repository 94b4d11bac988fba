// SPDX-License-Identifier: Apache-2.0

package decision

import "strings"

// What a hold takes in memory besides its texts, and what each entry of a map takes.
const (
	holdBytes  = 192
	whereBytes = 96
)

// CountBytes is about how many bytes the hold takes in memory.
func (h *Hold) CountBytes() int {
	n := holdBytes
	for _, text := range h.listTexts() {
		n += len(*text)
	}
	for k, v := range h.Where {
		n += whereBytes + len(k) + len(v)
	}
	return n
}

// listTexts are those of the hold, but for the groups.
func (h *Hold) listTexts() []*string {
	return []*string{&h.Rule, &h.Reason, &h.Message, &h.Pod, &h.Namespace, &h.Until, &h.Run, &h.NewPods}
}

// CloneHolds copies holds and their texts, equal texts once. A text of an answer may be a part of a much longer one, all of which
// it keeps in memory.
func CloneHolds(holds []Hold) []Hold {
	known := map[string]string{}
	clone := func(text string) string {
		own, ok := known[text]
		if !ok {
			own = strings.Clone(text)
			known[own] = own
		}
		return own
	}
	out := make([]Hold, len(holds))
	for i := range holds {
		out[i] = holds[i]
		for _, text := range out[i].listTexts() {
			*text = clone(*text)
		}
		if holds[i].Where != nil {
			out[i].Where = make(map[string]string, len(holds[i].Where))
		}
		for k, v := range holds[i].Where {
			out[i].Where[clone(k)] = clone(v)
		}
	}
	return out
}
