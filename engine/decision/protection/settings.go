// SPDX-License-Identifier: Apache-2.0

package protection

// Settings are the knobs of protection: the rule settings.
type Settings struct {
	// Kinds are protected by the label besides those that are built in, by
	// resource and group, such as cronjobs.batch.
	Kinds map[string]KindSettings `json:"kinds,omitempty"`
	// BreakGlass names who may break it.
	BreakGlass BreakGlass `json:"breakGlass,omitzero"`
}

// KindSettings say what the label's value Cascading is about on objects of a kind.
type KindSettings struct {
	// Cascading is replicas, or empty where the value protects nothing.
	Cascading string `json:"cascading,omitempty"`
}

// BreakGlass names those whose annotation policy.kruise.io/break-glass counts.
type BreakGlass struct {
	// Users are names, as the API server knows them.
	Users []string `json:"users,omitempty"`
	// Groups are names of groups, as the API server knows them.
	Groups []string `json:"groups,omitempty"`
}
