// SPDX-License-Identifier: Apache-2.0

// Package keys has the flags that name keys: those that sign, and those that are trusted. The names of the flags are those of opa.
package keys

import (
	"errors"
	"fmt"
	"os"
	"strings"

	opabundle "github.com/open-policy-agent/opa/v1/bundle"
	"github.com/spf13/pflag"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// Trust has the flags that name the trusted keys.
type Trust struct {
	keys                 []string
	id, scope, algorithm string
}

// AddFlags adds the flags. signed is what must have been signed, such as "the bundle".
func (t *Trust) AddFlags(flags *pflag.FlagSet, signed string) {
	flags.StringArrayVar(&t.keys, "verification-key", nil, "file of a public key (PEM) or a secret that must have signed "+signed+", or ID=FILE; may be repeated")
	flags.StringVar(&t.id, "verification-key-id", "", "id of the key to use, whatever the signature says")
	flags.StringVar(&t.scope, "scope", "", "what the signature must have been made for")
	flags.StringVar(&t.algorithm, "signing-alg", "", "algorithm of the signature; it follows from the key")
}

// NewVerification returns what the flags say; nil if no key was named.
func (t *Trust) NewVerification() (*bundle.Verification, error) {
	if len(t.keys) == 0 {
		if t.id != "" || t.scope != "" || t.algorithm != "" {
			return nil, exit.UsageError(errors.New("name a key with --verification-key; without one nothing is verified"))
		}
		return nil, nil
	}
	v := &bundle.Verification{Keys: map[string]*opabundle.KeyConfig{}, KeyID: t.id, Scope: t.scope, Required: true}
	for _, k := range t.keys {
		id, file, ok := strings.Cut(k, "=")
		if !ok {
			id, file = "default", k
		}
		if _, ok := v.Keys[id]; ok {
			return nil, exit.UsageError(fmt.Errorf("two keys have the id %s; give them ids with --verification-key ID=FILE", id))
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the key: %w", err)
		}
		v.Keys[id] = &opabundle.KeyConfig{Key: string(text), Algorithm: t.algorithm}
	}
	err := v.CheckKeys()
	var algorithm bundle.AlgorithmError
	var unknown bundle.UnknownKeyError
	switch {
	case errors.As(err, &algorithm):
		return nil, exit.UsageError(fmt.Errorf("--signing-alg: %w", err))
	case errors.As(err, &unknown):
		return nil, exit.UsageError(fmt.Errorf("--verification-key-id: %w", err))
	case err != nil:
		return nil, fmt.Errorf("reading --verification-key: %w", err)
	}
	return v, nil
}
