// SPDX-License-Identifier: Apache-2.0

package launchpriority

// EarlyContainers are the names of the containers that start before those of the last group, in the order of
// the spec.
func (o OrderOutput) EarlyContainers(in OrderInput) []string {
	last, found := int64(0), false
	for _, priority := range o.Priorities {
		if !found || priority < last {
			last, found = priority, true
		}
	}
	var out []string
	for _, c := range in.Containers {
		if o.Priorities[c.Name] > last {
			out = append(out, c.Name)
		}
	}
	return out
}

// PermitsNative reports whether the containers become init containers: the answer has it so, the gate is on,
// and no container is bound that would have to become one. Barriers keep the order everywhere else.
func (o OrderOutput) PermitsNative(in OrderInput) bool {
	if !o.Native || !in.NativeSidecars {
		return false
	}
	early := map[string]bool{}
	for _, name := range o.EarlyContainers(in) {
		early[name] = true
	}
	for _, c := range in.Containers {
		if early[c.Name] && c.Bound != "" {
			return false
		}
	}
	return len(early) > 0
}
