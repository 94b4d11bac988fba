// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/keys"
	"github.com/regatta-sh/regatta/engine/bundle"
)

func (c *commands) newSignCommand() *cobra.Command {
	var output string
	var with keys.Signer
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
			if err := with.CheckKey(); err != nil {
				return err
			}
			text, err := readArchive(args[0])
			if err != nil {
				return err
			}
			var out bytes.Buffer
			if err := bundle.SignArchive(&out, bytes.NewReader(text), with.Signing); err != nil {
				return keys.WrapAlgorithmError(wrapRefusal(err))
			}
			if output == "" {
				output = args[0]
			}
			return writeArchive(cmd, output, out.Bytes())
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "the archive to write; it is signed in place if empty, and - is the standard output")
	with.AddFlags(cmd.Flags())
	return cmd
}
