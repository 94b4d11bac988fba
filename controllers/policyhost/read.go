// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"bytes"

	opabundle "github.com/open-policy-agent/opa/v1/bundle"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// Read makes a bundle from an archive, for an object of either kind. It verifies the signature unless
// by is nil.
func Read(b policy.AnyPolicyBundle, archive []byte, by *bundle.Verification, opts ...bundle.Option) (*bundle.Bundle, error) {
	if ns := b.GetNamespace(); ns != "" {
		opts = append(opts, bundle.AsTenant(ns))
	}
	return bundle.FromArchive(b.GetName(), bytes.NewReader(archive), by, opts...)
}

// NewVerification returns the verification that spec.verification asks for; nil if it asks for none.
func NewVerification(v *policy.PolicyVerification) *bundle.Verification {
	if v == nil {
		return nil
	}
	out := &bundle.Verification{Keys: map[string]*opabundle.KeyConfig{}, KeyID: v.KeyID, Scope: v.Scope, Required: true}
	if out.KeyID == "" && len(v.Keys) == 1 {
		out.KeyID = v.Keys[0].ID // opa sign calls every key default
	}
	for _, k := range v.Keys {
		out.Keys[k.ID] = &opabundle.KeyConfig{Key: k.PublicKey, Algorithm: k.Algorithm}
	}
	return out
}
