// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// Signer has the flags that say how something is signed.
type Signer struct{ bundle.Signing }

// AddFlags adds the flags.
func (s *Signer) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.Key, "signing-key", "", "file of a private key (PEM) or a secret")
	flags.StringVar(&s.Algorithm, "signing-alg", "", "RS256, PS256, ES256, EdDSA, HS256 and their kin; it follows from a private key")
	flags.StringVar(&s.KeyID, "key-id", "", "id of the key, for those who trust more than one")
	flags.StringVar(&s.Scope, "scope", "", "what the signature is for")
}

// CheckKey returns an error if no key is named, or if there is no file with it.
func (s *Signer) CheckKey() error {
	if s.Key == "" {
		return exit.UsageError(errors.New("name the file of a private key or a secret with --signing-key"))
	}
	if _, err := os.Stat(s.Key); err != nil {
		return fmt.Errorf("reading the key: %w", err)
	}
	return nil
}

// WrapAlgorithmError turns the error of an algorithm that does not suit the key into a usage error.
func WrapAlgorithmError(err error) error {
	var algorithm bundle.AlgorithmError
	if errors.As(err, &algorithm) {
		return exit.UsageError(fmt.Errorf("--signing-alg: %w", err))
	}
	return err
}
