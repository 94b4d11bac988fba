// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/engine/bundle"
)

func (c *commands) newSignCommand() *cobra.Command {
	var output string
	var with bundle.Signing
	cmd := &cobra.Command{
		Use:   "sign BUNDLE",
		Short: "Sign a bundle as OPA does",
		Long: `Sign puts the file .signatures.json into an archive that build made: a JWT over the
hashes of all files, as opa makes it. A signature that was there is replaced. The
algorithm follows from a private key; a secret needs --signing-alg HS256.`,
		Example: `  regatta policy sign bundle.tar.gz --signing-key key.pem
  regatta policy sign bundle.tar.gz --signing-key secret.txt --signing-alg HS256 -o signed.tar.gz`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if with.Key == "" {
				return exit.UsageError(errors.New("name the file of a private key or a secret with --signing-key"))
			}
			if _, err := os.Stat(with.Key); err != nil {
				return fmt.Errorf("reading the key: %w", err)
			}
			text, err := readArchive(args[0])
			if err != nil {
				return err
			}
			var out bytes.Buffer
			if err := bundle.SignArchive(&out, bytes.NewReader(text), with); err != nil {
				return wrapAlgorithmError(wrapRefusal(err))
			}
			if output == "" {
				output = args[0]
			}
			return writeArchive(cmd, output, out.Bytes())
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "the archive to write; it is signed in place if empty, and - is the standard output")
	cmd.Flags().StringVar(&with.Key, "signing-key", "", "file of a private key (PEM) or a secret")
	cmd.Flags().StringVar(&with.Algorithm, "signing-alg", "", "RS256, PS256, ES256, EdDSA, HS256 and their kin; it follows from a private key")
	cmd.Flags().StringVar(&with.KeyID, "key-id", "", "id of the key, for those who trust more than one")
	cmd.Flags().StringVar(&with.Scope, "scope", "", "what the signature is for")
	return cmd
}

// wrapAlgorithmError turns the error of an algorithm that does not suit the key into a usage
// error.
func wrapAlgorithmError(err error) error {
	var algorithm bundle.AlgorithmError
	if errors.As(err, &algorithm) {
		return exit.UsageError(fmt.Errorf("--signing-alg: %w", err))
	}
	return err
}
