// SPDX-License-Identifier: Apache-2.0

// Package version is the command that tells which program this is, and which
// policies are built into it.
package version

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// released is the version of the release. The linker sets it where images are built, since Go does not tell there what was built.
var released string

// Version is what is printed.
type Version struct {
	// Regatta is the version of the module: a tag, or the commit it was built of;
	// (devel) where the build did not say.
	Regatta string `json:"regatta"`
	// Policies is the built-in bundle as records and explanations name it. Where a
	// manager names another, a laptop may answer otherwise than the cluster.
	Policies string `json:"policies"`
	// OPA is the version of the engine's OPA, empty where the build did not say.
	OPA      string `json:"opa,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// NewCommand makes the command. builtin are the policies of the program.
func NewCommand(builtin fs.FS) *cobra.Command {
	form := output.New(output.Text, output.JSON)
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Tell which program this is, and which policies are built in",
		Example: `  regatta version
  regatta version -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := ReadVersion(builtin)
			if err != nil {
				return err
			}
			return v.printVersion(cmd.OutOrStdout(), form.String())
		},
	}
	form.AddTo(cmd)
	return cmd
}

// ReadVersion tells which program this is. builtin are its policies.
func ReadVersion(builtin fs.FS) (Version, error) {
	b, err := bundle.ReadBuiltin(builtin)
	if err != nil {
		return Version{}, err
	}
	info, _ := debug.ReadBuildInfo()
	return newVersion(b, info), nil
}

// newVersion makes it of what the linker kept, which may be nothing.
func newVersion(b *bundle.Bundle, info *debug.BuildInfo) Version {
	v := Version{Regatta: cmp.Or(released, "(devel)"), Policies: b.ID(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return v
	}
	if info.Main.Version != "" && released == "" {
		v.Regatta = info.Main.Version
	}
	for _, d := range info.Deps {
		if d.Path == "github.com/open-policy-agent/opa" {
			v.OPA = d.Version
		}
	}
	return v
}

func (v Version) printVersion(w io.Writer, form string) error {
	if form == output.JSON {
		return output.PrintJSON(w, v)
	}
	_, err := fmt.Fprintf(w, "regatta   %s\npolicies  %s\nopa       %s\ngo        %s %s\n", v.Regatta, bundle.ShortID(v.Policies), v.OPA, v.Go, v.Platform)
	return err
}
